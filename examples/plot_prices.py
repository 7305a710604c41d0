"""
Columns with a price
====================

Some columns are cheaper to obtain than others. With costs, the candidate with the largest
improvement per unit of cost wins each step.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from ngp import NeuralGreedyPursuit
from ngp.data.groups import make_groups

X, y = load_diabetes(return_X_y=True, as_frame=True)

# %%
# Age, sex, body mass index and blood pressure can be had at once; s1 to s6 take a blood test.
# The prices are invented: five times as much for each value of the blood.

prices = np.where(X.columns.str.match(r"s\d"), 5, 1)
dear = NeuralGreedyPursuit(n_features_to_select=6, random_state=0).fit(X, y)
priced = make_groups(None, X.shape[1], costs=prices)
cheap = NeuralGreedyPursuit(n_features_to_select=6, groups=priced, random_state=0).fit(X, y)
for name, selector in (("without prices", dear), ("with prices", cheap)):
    print(f"{name:15} {[step.name for step in selector.path_[1:]]}")

# %%
# The further down and to the left, the better. Losses of one more column are means over five
# folds, with noise of their own: a line may rise.

figure, ax = plt.subplots(figsize=(7.5, 4.4))
for selector, label, marker, up in (
    (dear, "largest improvement", "s", 8),
    (cheap, "improvement per price", "o", -16),
):
    paid = np.cumsum(prices[selector.order_])
    steps = selector.path_[1:]
    ax.plot(paid, [step.loss for step in steps], marker=marker, label=label)
    for price, step in zip(paid, steps, strict=True):
        ax.annotate(
            step.name, (price, step.loss), (0, up), textcoords="offset points", ha="center"
        )
ax.set_xticks(range(0, 21, 2))
ax.margins(y=0.12)
ax.set(
    xlabel="price of all selected columns",
    ylabel="validation loss",
    title="What one gets for the price",
)
ax.legend()
plt.show()
