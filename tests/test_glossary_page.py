"""docs/glossary.md has all that Algorithm 1 has."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs" / "glossary.md").read_text(encoding="utf-8")


def test_every_line_of_the_algorithm_is_there() -> None:
    lines = [
        r"\mathcal{D}'",
        r"\varnothing",
        r"k \leftarrow k + 1",
        r"\arg\min",
        r"\mathcal{A} - i_k^\star",
        r"\mathcal{S}_k = \mathcal{S}_{k-1} \cup i_k^\star",
        r"< \eta",
        r"\hat{\mathcal{S}} = \mathcal{S}_{k-1}",
        r"i_1^\star, i_2^\star",
    ]
    assert [line for line in lines if line not in PAGE] == []
    included = re.findall(r"literalinclude\} (\S+)\n:pyobject: (\S+)", PAGE)
    assert len(included) == 2
    for file, name in included:
        assert f"def {name.rpartition('.')[2]}(" in (Path(__file__).parents[1] / "docs" / file).read_text()
