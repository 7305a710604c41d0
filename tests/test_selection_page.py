"""What docs/selection.md shows is what happens."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path

from ngp import chance
from ngp.stopping import BeyondChance

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "selection.md").read_text(encoding="utf-8")


def test_examples_give_what_they_show() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "selection.md", None, 0)
    assert len(test.examples) > 10
    outcome = doctest.DocTestRunner().run(test)
    assert outcome.failed == 0


def test_figures_of_stopping_are_those_that_were_measured() -> None:
    results = json.loads((ROOT / "benchmarks" / "results" / "stopping.json").read_text())["designs"]
    for design, found in results.items():
        rates = f"{found['fpsr']:.4f} | {found['fnsr']:.4f} | {found['times_a_plain_run']:.1f} |"
        assert f"| {design} | {found['nothing_selected']} of {found['n_runs']} | {rates}" in PAGE
    assert f"from {chance.FEWEST_DRAWS} to {chance.MOST_DRAWS} times" in PAGE
    assert f"is {BeyondChance().level} at most" in PAGE
