"""The paper's artificial data, and loaders for real data."""

from ngp.datasets.files import load_mnist
from ngp.datasets.generators import Dataset, make_artificial, make_gravitation, make_ohm, make_planck

__all__ = ["Dataset", "load_mnist", "make_artificial", "make_gravitation", "make_ohm", "make_planck"]
