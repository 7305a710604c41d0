"""What has to be known before any test is collected.

Modules whose examples can't be collected without the packages that they are for; and that Triton interprets its kernels
where there is no GPU to compile them for.
"""

import os
from importlib.util import find_spec

from ngp.compute.devices import has_nvidia_driver

NEEDS_TORCH = ["regressions", "scoring_gpu", "stacks", "training", "convolutional", "deeplift"]
NEEDS_TRITON = ["perceptron_gpu", "layer_kernels", "scoring_fused"]

collect_ignore = [
    f"src/ngp/compute/{module}.py"
    for package, modules in (("torch", NEEDS_TORCH), ("triton", NEEDS_TRITON))
    for module in modules
    if find_spec(package) is None
]

if not has_nvidia_driver():
    os.environ.setdefault("TRITON_INTERPRET", "1")
