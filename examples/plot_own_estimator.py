"""
Columns for your own model
==========================

Any scikit-learn regressor or classifier can take the place of the network. Columns are then
selected for what they contribute to this model. A model that can't use a column doesn't select
it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from ngp import NeuralGreedyPursuit

# %%
# Friedman's function: :math:`10 \sin(\pi x_0 x_1) + 20 (x_2 - 1/2)^2 + 10 x_3 + 5 x_4`, and
# five columns of noise. The square of x2 is symmetric, so no straight line sees it.

X, y = make_friedman1(300, n_features=10, noise=1.0, random_state=0)
models = {
    "linear regression": LinearRegression(),
    "5 neighbours": make_pipeline(StandardScaler(), KNeighborsRegressor(5)),
    "a tree, 20 rows a leaf": DecisionTreeRegressor(min_samples_leaf=20, random_state=0),
    "the default network": "ssfn",
}
ranks = np.full((len(models), X.shape[1]), np.nan)
for row, (name, model) in enumerate(models.items()):
    selector = NeuralGreedyPursuit(model, tol=0.03, random_state=0).fit(X, y)
    ranks[row, selector.order_] = np.arange(1, len(selector.order_) + 1)
    print(f"{name:22} {selector.order_}")

# %%
# Ranks, by the order of selection. An empty cell: not selected.

figure, ax = plt.subplots(figsize=(8, 3.2))
shades = np.nan_to_num(ranks, nan=9)
ax.pcolormesh(shades, cmap="Blues_r", vmin=0, vmax=9, edgecolors="white", linewidth=2)
for row, column in np.argwhere(np.isfinite(ranks)):
    rank = ranks[row, column]
    look = {"ha": "center", "va": "center", "color": "white" if rank < 4 else "black"}
    ax.text(column + 0.5, row + 0.5, f"{rank:.0f}", fontsize=13, **look)
names = [f"x{column}" if column < 5 else f"x{column}\nnoise" for column in range(10)]
ax.set_xticks(np.arange(10) + 0.5, names)
ax.set_yticks(np.arange(len(models)) + 0.5, models)
ax.invert_yaxis()
ax.grid(visible=False)
ax.tick_params(length=0)
ax.spines[:].set_visible(False)
ax.set_title("Which columns each model selects, and in which order")
plt.show()
