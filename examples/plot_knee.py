"""
The knee: where to stop
=======================

Five of 30 columns are relevant. The validation loss falls steeply as they are selected, then it
hardly changes. One would like to stop where the path bends; this example compares where several
rules do.
"""

import matplotlib.pyplot as plt

from ngp import NGPRegressor
from ngp.datasets import make_artificial

X, y, truth = make_artificial(1150, 30, random_state=1)
X_train, y_train, X_new, y_new = X[:150], y[:150], X[150:], y[150:]

# %%
# First the whole path, beyond the knee. ``cut`` gives a fitted selector for each number of
# columns on it. Its error on new rows says what the columns are worth.

whole = NGPRegressor(n_features_to_select=10, random_state=0).fit(X_train, y_train)
path = whole.path_
fits = [whole.cut(n, X_train, y_train) for n in range(1, 11)]
new_loss = [((fit.predict(X_new) - y_new) ** 2).mean() for fit in fits]

# %%
# Then the rules. ``stop="auto"`` tests whether a gain is larger than chance would explain,
# which takes several times as long; ``tol`` requires a relative improvement.

rules = {
    'stop="auto"': {"stop": "auto"},
    "tol=0.3": {"tol": 0.3},
    "tol=0.09": {"tol": 0.09},
    "tol=0.02": {"tol": 0.02},
}
ends = {}
for name, rule in rules.items():
    selector = NGPRegressor(**rule, random_state=0).fit(X_train, y_train)
    ends.setdefault(len(selector.order_), []).append(name)
    print(f"{name:11} {len(selector.order_)} columns: {selector.stop_reason_}")

# %%
# A strict rule stops before the knee, a lenient one goes beyond it. The validation loss of the
# selected columns is optimistic, because they were chosen to minimise it: judge by new rows.

figure, ax = plt.subplots(figsize=(8, 4.4))
sizes = [step.n_selected for step in path]
ax.plot(sizes, [step.loss for step in path], marker="o", label="validation loss")
ax.plot(sizes[1:], new_loss, marker="s", label="squared error on new rows")
for size, names in ends.items():
    ax.axvline(size, color="C6", linestyle=":", linewidth=1.2)
    side, shift = ("left", 0.12) if size == max(ends) else ("right", -0.12)
    ax.text(size + shift, path[0].loss, "\n".join(names), ha=side, va="top")
ax.set(xlabel="column added", ylabel="squared error")
ax.set_title("The knee, and where four rules stop")
ax.set_xticks(sizes, ["none", *(step.name for step in path[1:])])
ax.legend(loc="center right")
plt.show()
