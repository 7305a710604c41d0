"""
A run on a GPU, if there is one
===============================

``device="auto"``, the default, takes a GPU where there is one, and the CPU elsewhere. Nothing
else changes. This run says where it was.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

from ngp import NeuralGreedyPursuit
from ngp.datasets import make_artificial
from ngp.predictors import MLP, SSFN

# %%
# The multilayer perceptron needs torch. Without it, the default network, which needs none on a
# CPU, takes its place. ``estimate`` says where a fit would run.

if find_spec("torch") is None:
    print("torch isn't installed: the default network takes the perceptron's place")
    predictor, name = SSFN(), "the default network"
else:
    predictor, name = MLP(n_units=20, n_draws=1), "a perceptron of 20 units"
X, y, truth = make_artificial(200, 160, random_state=0)
selector = NeuralGreedyPursuit(predictor, n_features_to_select=3, device="auto", random_state=0)
device = selector.estimate(X, y).device
print(f"device: {device}")

# %%
# In each step a network is trained for each candidate and each fold: all of them together on a
# GPU, one after the other on a CPU. The first fit isn't timed, for it loads what is needed.

selector.fit(X[:, :10], y)
numbers = [20, 40, 80, 160]
seconds = []
for n in numbers:
    selector.fit(X[:, :n], y)
    seconds.append(np.mean([step.seconds for step in selector.path_[1:]]))
    print(f"{n:3} candidates: {seconds[-1]:.3f} s a step, selected {selector.order_}")

# %%
# On a CPU the time grows with the number of candidates. What a GPU does is seen only where the
# script runs on one.

figure, ax = plt.subplots(figsize=(7, 4))
ax.plot(numbers, seconds, marker="o")
ax.set(xlabel="number of candidates", ylabel="seconds a step", ylim=(0, 1.1 * max(seconds)))
ax.set_xticks([0, *numbers])
ax.set_title(f"Time of a step with {name}, device {device!r}")
plt.show()
