"""
How stable is a selection?
==========================

Would other rows give other columns? ``measure_stability`` repeats the selection on random
halves of the rows and counts how often each column is selected.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch
from sklearn.datasets import load_breast_cancer

from ngp import NeuralGreedyPursuit
from ngp.predictors import SSFN

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
quick = SSFN(n_draws=2)
selector = NeuralGreedyPursuit(quick, n_features_to_select=4, random_state=0).fit(X, y)
stability = selector.measure_stability(X, y, n_halves=40)
print("selected on all rows:", ", ".join(X.columns[selector.order_]))
print("on three quarters of the halves:", ", ".join(X.columns[stability.stable(0.75)]))
print(f"expected number of false ones there, at most: {stability.expected_false(0.75):.2f}")

# %%
# Columns with the same information replace each other: most halves select one of them, hardly
# any both.

for first, second, correlation in stability.stand_ins():
    pair = f"{X.columns[first]} or {X.columns[second]}"
    print(f"{pair}: correlation of being selected {correlation:.2f}")

# %%
# A column that is selected on all rows, but on few halves, depends on the rows at hand. A half
# has fewer rows, too, so weak columns are selected less often there. The picture shows the
# columns that were selected most often.

order = np.argsort(stability.frequencies)[-14:]
colours = np.where(np.isin(order, selector.order_), "C0", "C5")
figure, ax = plt.subplots(figsize=(7, 4.2))
ax.barh(X.columns[order], 100 * stability.frequencies[order], color=colours, height=0.7)
ax.axvline(75, color="black", linestyle="--", linewidth=1)
ax.set(xlim=(0, 102), xlabel="share of the halves that select the column (%)")
ax.set_title("Four columns selected on each of 40 halves")
ax.grid(visible=False, axis="y")
patches = [Patch(color="C0"), Patch(color="C5")]
ax.legend(patches, ["selected on all rows", "not selected"], loc="lower right")
plt.show()
