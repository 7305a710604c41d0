"""Modules whose examples can't be collected without the packages that they are for."""

from importlib.util import find_spec

NEEDS_TORCH = ["stacks", "training", "convolutional", "deeplift"]
NEEDS_TRITON = ["perceptron_gpu"]

collect_ignore = [
    f"src/ngp/compute/{module}.py"
    for package, modules in (("torch", NEEDS_TORCH), ("triton", NEEDS_TRITON))
    for module in modules
    if find_spec(package) is None
]
