"""Where real data come from: a folder named by the user, a cache folder, or OpenML."""

import hashlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml, get_data_home
from sklearn.utils import Bunch

__all__ = ["WrongData", "fetch", "load", "read_files"]

XyTuple = TypeVar("XyTuple", bound=tuple[Any, ...])

# sha256 of every file that a loader may find on disk
CHECKSUMS = {
    "boston.csv": "79ac716620024011b03c0c44d2bf99069b8173649181926d9109c25475a3804c",
    "airfoil.csv": "fb151b0cbec217a33731fa35b220a7e70f1ae3bbe820dfe7c9ff0883562f4152",
    "vowel.mat": "321bd5d0fc34824ffc4302b59d549aa06e07d3df9f589b74b47d2c2fab010053",
    "mnist/train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "mnist/train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "mnist/t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "mnist/t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    "fs/fashion-mnist/t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "fs/fashion-mnist/t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    "fs/Data_Cortex_Nuclear.csv": "1d6722b089db85dccfcb84d62e7299dcffd17b41223c3da54321890b63fff7ad",
    "fs/COIL20.mat": "4595ebdda07f47b0eb014fcfaddc22b452f9aed9c1d9261a0d5bc336c1ee1344",
    "fs/Isolet.mat": "ea73c69b1342a7def8199458e53a70307a83d557eceb2579863dda57c3ccd2b1",
}

# What `_summary` gives for the files. OpenML's copies are printed otherwise, so a checksum can't recognise them.
SUMMARIES: dict[str, tuple[float, ...]] = {
    "Boston housing": (506, 13, 0, 70.073967, 37.3216973, 54.5887016, 22.5328063, 10.6641819),
    "Airfoil self-noise": (1503, 5, 0, 588.834262, 282.579551, 7.98410968, 124.835943, 62.7302774),
    "Vowel": (990, 10, 0, -0.103180404, -0.053730844, 0.0400564871, 5.0, 2.51011122),
    "ISOLET": (1560, 617, 0, 0.0793423305, 0.0382909091, 0.0239134851, 12.5, 8.41484926),
    "Mice protein expression": (1080, 77, 1396, 0.678922417, 0.339450797, 0.274885641, 3.38888889, 2.32909845),
    "COIL-20": (1440, 1024, 0, 0.301555713, 0.152017544, 0.146029567, 9.5, 6.41365532),
}


class WrongData(ValueError):
    """Data that are there, but are not the original ones."""


def read_files(*names: str) -> list[bytes] | None:
    """Contents of the files, once their checksums are right; None if one of them is nowhere."""
    paths = [_find(name) for name in names]
    contents = []
    for name, path in zip(names, paths, strict=True):
        if path is None:
            return None
        contents.append(path.read_bytes())
        found = hashlib.sha256(contents[-1]).hexdigest()
        if found != CHECKSUMS[name]:
            raise WrongData(
                f"{path} is damaged or another file: its sha256 is {found}, expected {CHECKSUMS[name]}; "
                "replace it by the original."
            )
    return contents


def fetch(
    title: str,
    name: str,
    version: int,
    remedy: str,
    *,
    parser: Literal["pandas", "liac-arff"] = "liac-arff",
    target: str | list[str] = "default-target",
) -> Bunch:
    """The data as OpenML has them; `remedy` tells the user what to do where that fails.

    The parser "liac-arff" needs no pandas, and turns a nominal feature into the positions of its values in
    ``categories``.
    """
    print(f"ngp: fetching {title} from OpenML (scikit-learn keeps it for the next time)", file=sys.stderr)
    try:
        with _moving_bar(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*has flag is_row_identifier")
            return fetch_openml(name, version=version, as_frame=False, parser=parser, target_column=target)
    except (OSError, ValueError, HTTPException) as error:
        reason = " ".join(str(error).split())
        raise OSError(f"{title} is not on disk and could not be fetched from OpenML ({reason}); {remedy}.") from error


def _moving_bar() -> AbstractContextManager[object]:
    """A bar that moves, and the time that passes, where somebody looks; scikit-learn doesn't say how far it is."""
    if not sys.stderr.isatty() or find_spec("rich") is None:
        return nullcontext()
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeElapsedColumn

    bar = Progress(BarColumn(), TimeElapsedColumn(), console=Console(stderr=True), transient=True)
    bar.add_task("fetch", total=None)
    return bar


def load(
    title: str,
    file: str,
    parse: Callable[[bytes], XyTuple],
    name: str,
    version: int,
    convert: Callable[[Bunch], XyTuple],
    target: str | list[str] = "default-target",
) -> XyTuple:
    """What `parse` makes of the file, or `convert` of OpenML's copy; both give X and y first."""
    contents = read_files(file)
    if contents is not None:
        return parse(contents[0])
    remedy = f"set NGP_DATA to a folder that holds {file}"
    data = fetch(title, name, version, remedy, target=target)
    try:
        converted = convert(data)
        same = np.allclose(_summary(*converted[:2]), SUMMARIES[title], rtol=1e-5, atol=1e-7)
    except (ValueError, TypeError, LookupError):
        same = False
    if not same:
        raise WrongData(f"OpenML's {name} (version {version}) is not the {title} that is expected here; {remedy}.")
    return converted


def _folders() -> Iterator[Path]:
    """Folders to look in, first one first."""
    if folder := os.environ.get("NGP_DATA"):
        yield Path(folder).expanduser()
    yield Path(get_data_home()) / "ngp"


def _find(name: str) -> Path | None:
    """Where the file is, or None."""
    return next((folder / name for folder in _folders() if (folder / name).is_file()), None)


def _summary(X: NDArray[np.float64], y: NDArray[Any]) -> tuple[float, ...]:
    """Sizes, number of missing values, and means, weighted by position to notice another order."""
    down, across = np.linspace(0, 1, X.shape[0]), np.linspace(0, 1, X.shape[1])
    means = np.nanmean(X), np.nanmean(X * down[:, None]), np.nanmean(X * across), np.mean(y), np.mean(y * down)
    return (*X.shape, int(np.isnan(X).sum()), *map(float, means))
