"""
A committee of predictors
=========================

Which predictor suits the data? If you don't know, give a list. In each step every member tries
every candidate, all are judged by the same loss on the same folds, and the best pair of a
member and a column wins.
"""

import matplotlib.pyplot as plt
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from ngp import NeuralGreedyPursuit
from ngp.datasets import make_gravitation

X, y, truth = make_gravitation(150, random_state=1)
members = {
    "SSFN": "ssfn",
    "Kernel": "kernel",
    "KNeighborsRegressor": KNeighborsRegressor(),
    "Ridge": Ridge(),
}

# %%
# The force :math:`m_1 m_2 / r^2` has three inputs. The committee, and each of its members
# alone, selects four columns; the fourth can only be noise.

four = NeuralGreedyPursuit(n_features_to_select=4, random_state=0)
committee = clone(four).set_params(predictor=list(members.values())).fit(X, y)
alone = {name: clone(four).set_params(predictor=members[name]).fit(X, y) for name in members}
for step in committee.path_[1:]:
    print(f"{step.n_selected}. {step.name}  won by {step.predictor:20} loss {step.loss:.5f}")

# %%
# Thin lines are the members alone. Each step of the committee has the mark of the member that
# won it.

figure, ax = plt.subplots(figsize=(7.5, 4.4))
for name, selector in alone.items():
    ax.plot([step.loss for step in selector.path_], linewidth=1, label=f"{name} alone")
losses = [step.loss for step in committee.path_]
ax.plot(losses, color="black", linewidth=3, alpha=0.35, label="the committee")
for number, (name, mark) in enumerate(zip(members, "osD^", strict=True)):
    won = [step.n_selected for step in committee.path_ if step.predictor == name]
    if won:
        look = {"color": f"C{number}", "markersize": 10, "label": f"step won by {name}"}
        ax.plot(won, [losses[size] for size in won], mark, **look)
ax.set(yscale="log", xlabel="number of columns", ylabel="validation loss")
ax.set_xticks(range(5))
ax.set_title("Who wins which step")
ax.legend(loc="lower left")
plt.show()
