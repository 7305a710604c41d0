"""
How many rows does it take to find a law?
=========================================

The force between two masses is :math:`m_1 m_2 / r^2`. A table has these three inputs, and 27
columns of noise. With few rows they are missed in most runs; from some number on they are found
in every run. How many rows that takes, and what else is selected, differs from method to
method.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from ngp import NeuralGreedyPursuit
from ngp.baselines import registry
from ngp.datasets import make_gravitation

N_RUNS = 8
ROWS = [10, 14, 20, 28, 40, 60]

# %%
# Both methods choose how many columns they take: the pursuit by a smallest gain, the LASSO by
# cross-validation. They warn where they find nothing, which happens with few rows.

warnings.simplefilter("ignore")


def selected(method, X, y, seed):
    if method == "NGP":
        selector = NeuralGreedyPursuit(tol=0.09, random_state=seed)
    else:
        selector = registry["lasso-cv"]()
    return set(selector.fit(X, y).get_support(indices=True))


all_found = {method: np.zeros((len(ROWS), N_RUNS)) for method in ("NGP", "LASSO")}
n_false = {method: np.zeros((len(ROWS), N_RUNS)) for method in all_found}
for i, n_rows in enumerate(ROWS):
    for run in range(N_RUNS):
        X, y, truth = make_gravitation(n_rows, 30, random_state=run)
        for method in all_found:
            found = selected(method, X, y, run)
            all_found[method][i, run] = found >= set(truth)
            n_false[method][i, run] = len(found - set(truth))

# %%
# Finding all inputs is only half of it. A method that selects many columns finds them sooner,
# together with noise: the right half of the picture shows the columns of noise that were
# selected.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
for method, marker in (("NGP", "o"), ("LASSO", "s")):
    left.plot(ROWS, 100 * all_found[method].mean(axis=1), marker=marker, label=method)
    right.plot(ROWS, n_false[method].mean(axis=1), marker=marker, label=method)
left.set(title="All three inputs found", ylabel="share of the runs (%)", ylim=(-5, 105))
right.set(title="Noise selected beside them", ylabel="columns, mean of the runs")
for ax in (left, right):
    ax.set_xscale("log")
    ax.set_xticks(ROWS, map(str, ROWS))
    ax.minorticks_off()
    ax.set_xlabel("number of rows")
left.legend(loc="lower right")
plt.show()
