"""What the README and the tables of the guide and of figures name is there."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import ngp.data.groups
from ngp import NeuralGreedyPursuit
from ngp.baselines import registry

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
FIGURES = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")


def test_commands_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?:^|`)make ([a-z-]+)", README + FIGURES, flags=re.MULTILINE))
    assert {"demo", "test"} <= targets
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)
    modules = set(re.findall(r"python -m ([a-z_.]+)", README + FIGURES))
    assert modules
    for module in modules:
        assert (ROOT / Path(*module.split("."))).with_suffix(".py").is_file() or find_spec(module)


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert links
    assert all((ROOT / link).exists() for link in links if not link.startswith("https://"))


@pytest.mark.parametrize("name", re.findall(r"`([a-z_]+)=", README + GUIDE))
def test_named_parameters_exist(name: str) -> None:
    assert name in NeuralGreedyPursuit().get_params()


@pytest.mark.parametrize("name", registry)
def test_every_method_is_explained(name: str) -> None:
    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    assert re.search(rf"^\|[^|]*`{name}`[^|]*\|", text, flags=re.MULTILINE)


def test_written_forms_are_accepted() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    for parameters in re.findall(r"`(groups=[\[{][^`]*)`", GUIDE):
        selector = eval(f"NeuralGreedyPursuit({parameters}, n_features_to_select=1, random_state=0)")
        assert selector.fit(X, X[:, 0] + X[:, 1]).support_.any()
    windows = re.search(r"`groups=(ngp\.groups\.image_windows[^`]*)`", GUIDE)
    assert windows is not None
    assert eval(windows[1], {"ngp": ngp}).n_groups == 169


def test_the_map_of_the_code_is_complete() -> None:
    """CONTRIBUTING.md says what lives where: of every module and package, and of nothing else."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `ngp/")]
    named = set(re.findall(r"`ngp/(\w+)(?:\.py|/)`", "".join(row.split("|")[1] for row in rows)))
    named |= set(re.findall(r"`(\w+)\.py`", next(row for row in rows if "`ngp/report/result.py`" in row)))
    home = ROOT / "src" / "ngp"
    there = {file.stem for file in home.glob("[a-z]*.py")} | {init.parent.name for init in home.glob("*/__init__.py")}
    assert named == there
