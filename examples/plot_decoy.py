"""
A wrong first pick is undone
============================

A decoy is the sum of four columns, plus noise. It is more informative than each of them, so it
is selected first. Once all four are selected, it is redundant. With ``floating=True`` it is
removed again.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ngp import NeuralGreedyPursuit

rng = np.random.default_rng(0)
X = pd.DataFrame(
    rng.normal(size=(400, 15)),
    columns=["a", "b", "c", "d", *(f"noise {i}" for i in range(1, 12))],
)
total = X[["a", "b", "c", "d"]].sum(axis=1)
X.insert(4, "decoy", total + rng.normal(size=400))
y = total + 0.5 * rng.normal(size=400)

# %%
# We ask for four columns. Plain selection has no room left for the fourth relevant one.

plain = NeuralGreedyPursuit(n_features_to_select=4, random_state=0).fit(X, y)
floating = NeuralGreedyPursuit(n_features_to_select=4, floating=True, random_state=0).fit(X, y)
for name, selector in (("plain", plain), ("floating", floating)):
    print(f"{name:9} {selector.get_feature_names_out().tolist()}")
    print("         ", [f"{step.action} {step.name}" for step in selector.path_[1:]])

# %%
# The last step on the right exchanges the decoy for the column that was missing. A hollow
# circle is an addition that a later step has undone.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.4), sharey=True)
plain.plot_path(ax=left)
left.set_title("Plain")
floating.plot_path(ax=right)
right.set_title("floating=True")
right.set_ylabel("")
plt.show()
