"""What docs/large-data.md shows is what happens."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs" / "large-data.md").read_text(encoding="utf-8")


def test_examples_give_what_they_show() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "large-data.md", "large-data.md", 0)
    assert len(test.examples) > 20
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


def test_figures_are_those_of_the_code() -> None:
    from ngp.sources.mapped import MOST_MAPPED
    from ngp.sources.zarrs import KEPT_BYTES

    assert f"up to {KEPT_BYTES // 2**20} MB" in PAGE
    assert f"about {MOST_MAPPED // 2**30} GB" in PAGE
