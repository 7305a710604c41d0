import gzip
import hashlib
import os
import struct
from io import BytesIO
from urllib.error import URLError

import pytest
from scipy.io import savemat

from ngp.datasets import loaders

NGP_DATA = os.environ.get("NGP_DATA", "")


def idx(array):
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return gzip.compress(header + array.tobytes(), mtime=0)


def mat(**arrays):
    buffer = BytesIO()
    savemat(buffer, arrays)
    return buffer.getvalue()


def offline(*args, **kwargs):
    raise URLError("no\nnetwork")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """An empty NGP_DATA and an empty cache folder; no network."""
    data, home = tmp_path / "data", tmp_path / "home"
    data.mkdir()
    monkeypatch.setenv("NGP_DATA", str(data))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(home))
    monkeypatch.setattr(loaders, "fetch_openml", offline)
    return data, home / "ngp"


@pytest.fixture
def put(monkeypatch):
    """Writes a file into a folder, and makes its checksum the expected one."""

    def write(folder, name, content):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        monkeypatch.setitem(loaders.CHECKSUMS, name, hashlib.sha256(content).hexdigest())
        return path

    return write


@pytest.fixture
def openml(monkeypatch):
    """Puts made-up data on a made-up OpenML; gives the list of what was asked for."""

    def answer(data):
        calls = []

        def fetch(name, **options):
            calls.append((name, options["version"]))
            assert not options["as_frame"]
            return data

        monkeypatch.setattr(loaders, "fetch_openml", fetch)
        return calls

    return answer


@pytest.fixture
def make_idx():
    return idx


@pytest.fixture
def make_mat():
    return mat


@pytest.fixture
def real_files(monkeypatch):
    """Skips a test where NGP_DATA has not all the files; nothing may be fetched instead."""

    def need(*names):
        for name in names:
            if not NGP_DATA or not os.path.isfile(os.path.join(NGP_DATA, name)):
                pytest.skip(f"NGP_DATA names no folder with {name}")
        monkeypatch.setattr(loaders, "fetch_openml", offline)

    return need
