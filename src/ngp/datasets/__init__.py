"""The paper's artificial data, and loaders for real data."""

from ngp.datasets.generators import Dataset, make_artificial, make_gravitation, make_ohm, make_planck
from ngp.datasets.images import load_coil20, load_fashion_mnist, load_mnist
from ngp.datasets.tables import Table, load_airfoil, load_boston, load_isolet, load_mice, load_vowel

__all__ = [
    "Dataset",
    "Table",
    "load_airfoil",
    "load_boston",
    "load_coil20",
    "load_fashion_mnist",
    "load_isolet",
    "load_mice",
    "load_mnist",
    "load_vowel",
    "make_artificial",
    "make_gravitation",
    "make_ohm",
    "make_planck",
]
