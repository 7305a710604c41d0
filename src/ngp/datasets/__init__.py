"""The paper's artificial data, and loaders of real data.

Loaders look for files in the folder named by the environment variable ``NGP_DATA``, then in the folder ``ngp`` of
scikit-learn's data home. All but COIL-20 and the wide tables are otherwise fetched from OpenML by scikit-learn,
which keeps them.
"""

from ngp.datasets.generators import Dataset, make_artificial, make_gravitation, make_ohm, make_planck
from ngp.datasets.loaders import (
    RealDataset,
    load_airfoil,
    load_boston,
    load_coil20,
    load_fashion_mnist,
    load_mice,
    load_mnist,
    load_vowel,
    load_wide,
)

__all__ = [
    "Dataset",
    "RealDataset",
    "load_airfoil",
    "load_boston",
    "load_coil20",
    "load_fashion_mnist",
    "load_mice",
    "load_mnist",
    "load_vowel",
    "load_wide",
    "make_artificial",
    "make_gravitation",
    "make_ohm",
    "make_planck",
]
