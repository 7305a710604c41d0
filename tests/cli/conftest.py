"""What the tests of the command line share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from ngp.cli import cli


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, where the commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call() -> Callable[..., Any]:
    """Run ``ngp`` with arguments, in this process."""
    return lambda *arguments, stdin=None: CliRunner().invoke(cli, [str(each) for each in arguments], input=stdin)


@pytest.fixture
def houses(folder: Path) -> pd.DataFrame:
    """A table with numbers, text and booleans, saved as houses.csv: size and town make the price."""
    rng = np.random.default_rng(0)
    n = 80
    frame = pd.DataFrame(
        {
            "size": rng.uniform(50, 200, n).round(1),
            "town": rng.choice(["Bonn", "Kiel", "Ulm"], n),
            "garden": rng.choice([True, False], n),
            "noise": rng.normal(size=n).round(3),
            "rooms": rng.integers(1, 9, n),
        }
    )
    frame["price"] = frame["size"] * 3 + frame["town"].map({"Bonn": 400, "Kiel": 0, "Ulm": 90}) + rng.normal(size=n)
    frame.to_csv(folder / "houses.csv", index=False)
    return frame
