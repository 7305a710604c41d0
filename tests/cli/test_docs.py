"""What docs/command-line.md shows is what happens."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_examples_give_what_they_show(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    blocks = re.findall(r"^```console\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    examples = [each.partition("\n") for block in blocks for each in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    assert len(examples) > 10
    for command, _, expected in examples:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        assert done.returncode == 0, (command, done.stdout)
        same = doctest.OutputChecker().check_output(expected, done.stdout, doctest.ELLIPSIS)
        assert same, f"$ {command}\n{done.stdout}\ninstead of\n{expected}"


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert links
    assert all((ROOT / "docs" / link).exists() for link in links)
