"""
Columns that only matter together
=================================

The target is the exclusive or of two bits. Each bit alone says nothing about it, so the
algorithm of the paper, which looks at one column at a time, picks one at random. By default,
pairs are looked at where no single column is significant.
"""

import matplotlib.pyplot as plt
import numpy as np

from ngp import NeuralGreedyPursuit
from ngp.greedy.stopping import MaxFeatures
from ngp.predictors import SSFN

rng = np.random.default_rng(0)
X = rng.integers(0, 2, size=(400, 30))
y = (X[:, 3] ^ X[:, 17]).astype(float) + 0.2 * rng.normal(size=400)

# %%
# ``stop=MaxFeatures(2)`` computes no p-values. The default does: 30 columns have 435 pairs, and
# the p-value is that of the best of them.

quick = SSFN(n_draws=2)
plain = NeuralGreedyPursuit(quick, stop=MaxFeatures(2), random_state=0).fit(X, y)
pairs = NeuralGreedyPursuit(quick, random_state=0).fit(X, y)
print(f"one at a time: selects {plain.order_}")
print(f"the default:   selects {pairs.order_}, p = {pairs.path_[1].p_value:.2g}")

# %%
# A dot is the loss with this column added to the selected ones. In the first step no column is
# better than the constant prediction, and plain selection takes the lowest dot by luck. By
# default, one of the two bits is selected because of the pair, and the other stands out in the
# second step.

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.8), sharey=True)
panels = [
    (plain.losses_[0], plain.order_[0], "First step, by itself"),
    (plain.losses_[1], plain.order_[1], f"Plain: second step, with x{plain.order_[0]}"),
    (pairs.losses_[1], pairs.order_[1], f"Default: second step, with x{pairs.order_[0]}"),
]
for ax, (losses, pick, title) in zip(axes, panels, strict=True):
    constant = plain.constant_loss_
    ax.axhline(
        constant, color="black", linestyle="--", linewidth=1, label="constant prediction"
    )
    ax.plot(losses, "o", color="0.65", markersize=5, label="candidates")
    ax.plot([3, 17], losses[[3, 17]], "o", color="C0", markersize=8, label="the two bits")
    look = {"facecolor": "none", "edgecolor": "C1", "linewidth": 2, "zorder": 3}
    ax.scatter(pick, losses[pick], s=200, label="picked", **look)
    ax.set_title(title, fontsize="medium")
    ax.set(xlabel="column", ylim=(0, 1.15 * constant))
axes[0].set_ylabel("validation loss")
axes[0].legend(loc="lower left")
plt.show()
