"""
A pipeline, and a search for the number of columns
==================================================

The selector is a scikit-learn transformer. In a pipeline it passes its columns to a classifier,
and a search can try several numbers of columns. Each fold selects on its own training rows, so
the selection never sees the validation rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from ngp import NeuralGreedyPursuit
from ngp.predictors import SSFN

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_new, y_train, y_new = train_test_split(X, y, stratify=y, random_state=0)

# %%
# A search fits many times, so the selector is a fast one: a single draw of its random layer.

pipeline = Pipeline(
    [
        ("select", NeuralGreedyPursuit(SSFN(n_draws=1), random_state=0)),
        ("scale", StandardScaler()),
        ("classify", LogisticRegression(max_iter=1000)),
    ]
)
numbers = [1, 2, 3, 5, 8, 12]
grid = {"select__n_features_to_select": numbers}
search = GridSearchCV(pipeline, grid, scoring="roc_auc", cv=4)
search.fit(X_train, y_train)
best = search.best_params_["select__n_features_to_select"]
print(f"best number: {best}; area under the curve, new rows: {search.score(X_new, y_new):.3f}")
print("columns:", *search.best_estimator_["select"].get_feature_names_out(), sep="\n- ")

# %%
# Where the curve is flat, the best number is a matter of luck, and a smaller one may do as
# well.

mean = search.cv_results_["mean_test_score"]
figure, ax = plt.subplots(figsize=(7, 4))
for fold in range(4):
    scores = search.cv_results_[f"split{fold}_test_score"]
    label = "single folds" if fold == 0 else None
    ax.plot(numbers, scores, color="0.7", linewidth=1, label=label)
ax.plot(numbers, mean, marker="o", linewidth=2, label="mean")
ax.scatter(best, mean.max(), s=180, facecolor="none", edgecolor="C1", linewidth=2, label="best")
ax.set_xticks(numbers)
ax.set(xlabel="number of selected columns", ylabel="area under the ROC curve")
ax.set_title("How well a classifier does with so many columns")
ax.legend(loc="lower right")
plt.show()
