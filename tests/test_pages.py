"""Every example in the README and the documentation gives what it shows."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = re.compile(r"^```python\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
# It starts clusters, and has a test of its own.
ELSEWHERE = {"docs/clusters.md"}
TEXTS = {
    page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8")
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "_build" not in page.parts
}
PAGES = {name: "\n".join(blocks) for name, text in TEXTS.items() if (blocks := EXAMPLES.findall(text))}


@pytest.mark.parametrize("name", sorted(PAGES.keys() - ELSEWHERE))
def test_examples_give_what_they_show(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "1")
    # One name space for all blocks, as for somebody who reads from top to bottom.
    test = doctest.DocTestParser().get_doctest(PAGES[name], {}, name, None, 0)
    lines = [line for line in PAGES[name].splitlines() if line.startswith((">>>", "..."))]
    assert sum(example.source.count("\n") for example in test.examples) == len(lines)
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


def test_every_block_is_an_example() -> None:
    """A block of another kind would not be run."""
    for name, text in PAGES.items():
        if name not in ELSEWHERE:
            assert text.startswith(">>> "), name


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(ngp(?:\.\w+)+)`", "".join(TEXTS.values())))))
def test_names_exist(name: str) -> None:
    assert found(name) is not None


def found(name: str) -> object:
    """A module, or what is in one."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        home, _, last = name.rpartition(".")
        return getattr(found(home), last)
