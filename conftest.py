"""What has to be known before any test is collected.

Modules whose examples can't be collected, or run, without the packages that they are for; and that Triton interprets
its kernels where there is no GPU to compile them for.
"""

import os
from importlib.util import find_spec

import pytest

from ngp.kernels.devices import has_nvidia_driver

NEEDS_TORCH = ["scoring_torch", "networks", "deeplift"]
NEEDS_TRITON = ["perceptron_gpu", "scoring_triton"]
DRAWS = ["comparison_plots", "plots"]

collect_ignore = [
    f"src/ngp/{folder}/{module}.py"
    for package, folder, modules in (
        ("torch", "kernels", NEEDS_TORCH),
        ("triton", "kernels", NEEDS_TRITON),
        ("matplotlib", "report", DRAWS),
    )
    for module in modules
    if find_spec(package) is None
]

os.environ.setdefault("MPLBACKEND", "agg")  # examples draw, and nobody looks
if not has_nvidia_driver():
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(autouse=True)
def examples_write_elsewhere(request, tmp_path_factory, monkeypatch):  # type: ignore[no-untyped-def]
    """Examples in docstrings may write files; they aren't to be left in the repository."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path_factory.mktemp("example"))
