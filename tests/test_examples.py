"""The gallery's examples are whole; make docs runs them."""

from __future__ import annotations

import ast
import runpy
from importlib import import_module
from pathlib import Path

import pytest

from ngp import NeuralGreedyPursuit

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "examples").glob("plot_*.py"))


def test_there_are_enough_in_a_stated_order() -> None:
    assert len(SCRIPTS) >= 10
    pytest.importorskip("matplotlib")
    order = runpy.run_path(str(ROOT / "docs" / "gallery_look.py"))["ORDER"]
    assert sorted(order) == [script.stem.removeprefix("plot_") for script in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_has_a_title_text_and_a_picture(script: Path) -> None:
    source = script.read_text(encoding="utf-8")
    assert 25 <= len(source.splitlines()) <= 70
    title, line, empty, *text = (ast.get_docstring(ast.parse(source)) or "").splitlines()
    assert line == "=" * len(title)
    assert empty == ""
    assert text
    assert "import matplotlib.pyplot as plt" in source
    assert source.endswith("plt.show()\n")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_names_exist(script: Path) -> None:
    nodes = list(ast.walk(ast.parse(script.read_text(encoding="utf-8"))))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ngp")]
    for node in imports:
        assert all(hasattr(import_module(str(node.module)), name.name) for name in node.names)
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    of_ngp = {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "ngp"}
    assert all(hasattr(import_module("ngp"), name) for name in of_ngp)
    assert imports or of_ngp
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    selectors = [call for call in calls if ast.unparse(call.func).endswith("NeuralGreedyPursuit")]
    given = {keyword.arg for call in selectors for keyword in call.keywords if keyword.arg}
    assert given <= NeuralGreedyPursuit().get_params().keys()
