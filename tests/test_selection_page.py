"""What docs/selection.md shows is what happens."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs" / "selection.md").read_text(encoding="utf-8")


def test_examples_give_what_they_show() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "selection.md", None, 0)
    assert len(test.examples) > 10
    outcome = doctest.DocTestRunner().run(test)
    assert outcome.failed == 0
