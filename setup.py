"""Declares the C extension; everything else is in pyproject.toml."""

import sys
from glob import glob

from setuptools import Extension, setup

flags = ["-O3", "-std=gnu11", "-ffp-contract=fast", "-fno-math-errno", "-Wall"]

setup(
    ext_modules=[
        Extension(
            "ngp.kernels._kernels",
            sources=["src/ngp/kernels/_kernels.c"],
            depends=sorted(glob("src/ngp/kernels/*.h")),
            define_macros=[("Py_LIMITED_API", "0x030b0000")],
            py_limited_api=True,
            extra_compile_args=[] if sys.platform == "win32" else flags,
            optional=True,  # without a compiler the package falls back to numpy
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
