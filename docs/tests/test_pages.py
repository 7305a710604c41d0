"""Pages say what is so: examples give what they show, and names, links and commands exist."""

from __future__ import annotations

import doctest
import inspect
import os
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pydoc import locate
from typing import Any

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

from ngp import NeuralGreedyPursuit

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BUILT = {"_build", "generated", "gallery"}
TEXTS = {
    page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8")
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")))
    if not BUILT & set(page.parts)
}
EXAMPLES = re.compile(r"^```python\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
PAGES = {name: "\n".join(blocks) for name, text in TEXTS.items() if (blocks := EXAMPLES.findall(text))}
COMMANDS = re.compile(r"^```console\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
CONSOLES = {name: blocks for name, text in TEXTS.items() if (blocks := COMMANDS.findall(text))}


@pytest.mark.parametrize("name", PAGES)
def test_examples_give_what_they_show(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # One name space for all blocks of a page.
    test = doctest.DocTestParser().get_doctest(PAGES[name], {}, name, None, 0)
    lines = [line for line in PAGES[name].splitlines() if line.startswith((">>>", "..."))]
    assert sum(example.source.count("\n") for example in test.examples) == len(lines)
    output: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(test, out=output.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(output)


@pytest.mark.parametrize("name", CONSOLES)
def test_commands_give_what_they_show(name: str, tmp_path: Path) -> None:
    paths = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}
    blocks = CONSOLES[name]
    examples = [each.partition("\n") for block in blocks for each in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    assert examples
    for command, _, expected in examples:
        call = ["bash", "-c", command]
        done = subprocess.run(
            call, cwd=tmp_path, env=os.environ | paths, stdout=-1, stderr=subprocess.STDOUT, encoding="utf-8"
        )
        assert done.returncode == 0, (command, done.stdout)
        same = doctest.OutputChecker().check_output(expected, done.stdout, doctest.ELLIPSIS)
        assert same, f"$ {command}\n{done.stdout}\ninstead of\n{expected}"


def test_names_exist() -> None:
    names = set(re.findall(r"`(ngp(?:\.\w+)+)`", "".join(TEXTS.values())))
    assert [name for name in sorted(names) if locate(name) is None] == []
    parameters = set(re.findall(r"`([a-z_]+)=", TEXTS["docs/getting-started.md"]))
    assert parameters <= {*NeuralGreedyPursuit().get_params(), "sample_weight"}


def test_commands_exist() -> None:
    text = "".join(TEXTS.values())
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?:^|`)make ([a-z-]+)", text, flags=re.MULTILINE))
    assert {"demo", "test"} <= targets
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)
    modules = set(re.findall(r"python -m ([a-z_.]+)", text))
    assert modules
    assert [module for module in sorted(modules) if find_spec(module) is None] == []


def test_links_lead_somewhere() -> None:
    """Sphinx checks those of its pages, but not those of README.md, nor those that leave docs."""
    for name, text in TEXTS.items():
        links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", EXAMPLES.sub("", text))
        local = [link for link in links if not link.startswith("https://")]
        assert [link for link in local if not (ROOT / name).parent.joinpath(link).exists()] == [], name


def test_the_map_of_the_code_is_complete() -> None:
    rows = re.findall(r"^\| `ngp/(\w+)", TEXTS["CONTRIBUTING.md"], flags=re.MULTILINE)
    home = ROOT / "src" / "ngp"
    there = {file.stem for file in home.glob("[a-z]*.py")} | {init.parent.name for init in home.glob("*/__init__.py")}
    assert set(rows) == there


# ---------------------------------------------------------------- docstrings of what docs/api/index.md lists

BLOCKS = re.findall(r"currentmodule:: (\S+)\n(.*?)^```$", TEXTS["docs/api/index.md"], flags=re.DOTALL | re.MULTILINE)
LISTED = [f"{home}.{name}" for home, block in BLOCKS for name in re.findall(r"^   ([\w.]+)$", block, re.MULTILINE)]
# No docstring, parameters or what is returned missing or unknown, descriptions missing.
CHECKED = {"GL08", "PR01", "PR02", "PR03", "PR07", "RT01", "RT03", "SS02", "SS03"}


def test_public_names_are_offered_and_described() -> None:
    missing, faults = [], {}
    for name in LISTED:
        home, _, last = name.rpartition(".")
        if last not in import_module(home).__all__:
            missing.append(name)
            continue
        thing = locate(name)
        faults[name] = complaints(thing) - ({"PR01", "RT01"} if described_elsewhere(thing) else set())
        if inspect.isclass(thing):
            members = [(key, value) for key, value in vars(thing).items() if not key.startswith("_")]
            functions = {key: value for key, value in members if inspect.isfunction(value)}
            faults |= {f"{name}.{key}": {"GL08"} for key, value in functions.items() if not inspect.getdoc(value)}
    assert missing == []
    assert {name: codes for name, codes in faults.items() if codes} == {}


def complaints(thing: Any) -> set[str]:
    """Codes of numpydoc's complaints."""
    return CHECKED & {code for code, _ in validate(get_doc_object(thing))["errors"]}


def described_elsewhere(thing: Any) -> bool:
    """Whether fields are described as attributes, or in another docstring; or a class is a protocol."""
    text = " ".join((inspect.getdoc(thing) or "").split())
    return "Attributes ---" in text or " are those of `" in text or getattr(thing, "_is_protocol", False)
