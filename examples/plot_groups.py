"""
One-hot columns that enter as a whole
=====================================

A category becomes several columns of 0 and 1. Selecting half of a category makes little
sense, so they are one candidate: automatically for a category column of a data frame, by
``groups`` for columns that are already encoded.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ngp import NeuralGreedyPursuit

rng = np.random.default_rng(0)
n = 300
levels = {"Bonn": 9.0, "Jena": 11.0, "Kiel": 12.5, "Trier": 8.0, "Ulm": 14.0}
heatings = ["gas", "heat pump", "oil", "wood"]
flats = pd.DataFrame(
    {
        "town": pd.Categorical(rng.choice(list(levels), n)),
        "heating": pd.Categorical(rng.choice(heatings, n)),
        "area": rng.uniform(30, 120, n),
        "age": rng.uniform(0, 80, n),
        "floor": rng.integers(0, 6, n),
        "letters in the name": rng.integers(3, 20, n),
    }
)
level = flats["town"].map(levels).astype(float)
rent = level * flats["area"] + 0.05 * (flats["age"] - 40) ** 2 + rng.normal(0, 40, n)

# %%
# The data frame goes in as it is.

whole = NeuralGreedyPursuit(tol=0.09, random_state=0).fit(flats, rent)
print("categories:", [step.name for step in whole.path_[1:] if step.kept])

# %%
# Columns that ``get_dummies`` made get a label each, and the labels are the groups. Without
# groups, each of them is a candidate of its own.

coded = pd.get_dummies(flats, prefix_sep=": ")
labels = [name.partition(":")[0] for name in coded.columns]
grouped = NeuralGreedyPursuit(groups=labels, tol=0.09, random_state=0).fit(coded, rent)
print("groups:    ", [step.name for step in grouped.path_[1:] if step.kept])
single = NeuralGreedyPursuit(tol=0.09, random_state=0).fit(coded, rent)
print("one by one:", [step.name for step in single.path_[1:] if step.kept])

# %%
# As a whole the town takes one step (orange). In pieces it takes several.

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), sharey=True)
axes[0].set(title="Groups", ylabel="validation loss")
axes[1].set(title="Each column by itself")
for ax, selector in zip(axes, (grouped, single), strict=True):
    steps = [step for step in selector.path_ if step.kept]
    losses = [step.loss for step in steps]
    town = [number for number, step in enumerate(steps) if step.name.startswith("town")]
    ax.plot(losses, color="C0", marker="o")
    marked = [losses[number] for number in town]
    ax.plot(town, marked, "o", color="C1", markersize=9, label="the town")
    names = ["none", *(step.name for step in steps[1:])]
    ax.set_xticks(range(len(steps)), names, rotation=30, ha="right")
    ax.set(yscale="log", xlabel="added in the step")
axes[0].legend()
plt.show()
