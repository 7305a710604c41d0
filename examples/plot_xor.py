"""
Columns that only matter together
=================================

The target is the exclusive or of two bits. Each bit alone says nothing about it, so a pursuit
that looks at one column at a time picks one at random. With ``look_ahead=2``, pairs are
scored.
"""

import matplotlib.pyplot as plt
import numpy as np

from ngp import NeuralGreedyPursuit
from ngp.predictors import SSFN

rng = np.random.default_rng(0)
X = rng.integers(0, 2, size=(400, 30))
y = (X[:, 3] ^ X[:, 17]).astype(float) + 0.2 * rng.normal(size=400)

# %%
# 30 columns have 435 pairs, which are all tried.

quick = SSFN(n_draws=2)
plain = NeuralGreedyPursuit(quick, n_features_to_select=2, random_state=0)
ahead = NeuralGreedyPursuit(quick, n_features_to_select=2, look_ahead=2, random_state=0)
for name, selector in (("one at a time", plain), ("pairs", ahead)):
    n_fits = sum(step.n_fits for step in selector.fit(X, y).path_)
    print(f"{name:13} selects {selector.order_} with {n_fits} trainings")

# %%
# A dot is the loss with this column added to the selected ones. In the first step no column is
# significantly better than the constant prediction, and plain selection takes the lowest dot by
# luck. Looking ahead, one of the two bits is selected because of the pair, and the other stands
# out in the second step.

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.8), sharey=True)
panels = [
    (plain.losses_[0], plain.order_[0], "First step, by itself"),
    (plain.losses_[1], plain.order_[1], f"Plain: second step, with x{plain.order_[0]}"),
    (ahead.losses_[1], ahead.order_[1], f"look_ahead=2: second step, with x{ahead.order_[0]}"),
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
