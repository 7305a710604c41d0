"""
Which pixels tell digits apart?
===============================

Images of 8 x 8 pixels. The order in which pixels are selected ranks them; how many does it
take?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from ngp import NeuralGreedyPursuit
from ngp.predictors import SSFN
from ngp.report import plot_pixels

images, digits = load_digits(return_X_y=True)
X_train, X_new, y_train, y_new = train_test_split(
    images, digits, train_size=600, stratify=digits, random_state=0
)

# %%
# Pixels that are the same in all images can't be selected, and are in no group here. Two draws
# of the random layer instead of eight are faster.

varied = np.flatnonzero(X_train.std(axis=0))
groups = [[pixel] for pixel in varied]
quick = SSFN(n_draws=2)
selector = NeuralGreedyPursuit(quick, groups=groups, n_features_to_select=16, random_state=0)
selector.fit(X_train, y_train)
ranked = varied[selector.order_]

# %%
# The selection is useful to other methods, too. Nearest neighbours get the first k selected
# pixels, or k random ones.


def accuracy(pixels):
    neighbours = KNeighborsClassifier(5).fit(X_train[:, pixels], y_train)
    return neighbours.score(X_new[:, pixels], y_new)


numbers = range(1, len(ranked) + 1)
selected = [accuracy(ranked[:n]) for n in numbers]
rng = np.random.default_rng(0)
random = [np.mean([accuracy(rng.permutation(varied)[:n]) for _ in range(8)]) for n in numbers]
everything = accuracy(varied)
print(f"all pixels: {everything:.3f}, the first {len(ranked)}: {selected[-1]:.3f}")

# %%
# Numbers are ranks. The mean of all images is behind them.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), width_ratios=[1, 1.3])
plot_pixels(selector, (8, 8), X_train.mean(axis=0).reshape(8, 8), ax=left)
right.axhline(everything, color="black", linestyle="--", linewidth=1, label="all pixels")
right.plot(numbers, selected, marker="o", label="selected pixels")
right.plot(numbers, random, marker="s", label="random pixels, mean of 8 draws")
right.set(xlabel="number of pixels", ylabel="accuracy on new images")
right.set_title("Nearest neighbours that see few pixels")
right.legend(loc="lower right")
plt.show()
