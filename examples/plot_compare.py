"""
Methods side by side
====================

``ngp.compare`` lets several methods select on the same folds. Then the same predictors are
trained on the columns of each, and judged on the rows that were left out.
"""

import matplotlib.pyplot as plt

import ngp
from ngp.datasets import make_artificial
from ngp.report import plot_comparison

X, y, truth = make_artificial(300, 40, random_state=0)

# %%
# Names are those of ``ngp.baselines.registry``; ``"all"`` selects nothing, for reference. A
# configured selector has a label. None of them knows that five columns are relevant.

methods = {
    "NGP, tol=0.09": ngp.NeuralGreedyPursuit(tol=0.09, random_state=0),
    "LASSO": "lasso-cv",
    "random forest": "random-forest",
    "mutual information": "mutual-information",
    "all columns": "all",
}
table = ngp.compare(X, y, methods, cv=3, downstream=["ridge", "ssfn"], random_state=0)
print(table[["n_selected", "ridge", "ssfn", "agreement"]].round(2).to_string())

# %%
# Beside the scores: how many columns were selected, how long that took, and how well the folds
# agree.

plot_comparison(table)
plt.show()
