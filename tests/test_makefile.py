"""What `make` does when it was stopped before."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Stand in for Python: one that makes an environment, and that of an environment, which needs its pip.
MAKES_PIP = '#!/bin/sh\ncp "$0" .venv/bin/pip\n'
NEEDS_PIP = "#!/bin/sh\ntest -x .venv/bin/pip\n"


@pytest.mark.skipif(shutil.which("make") is None, reason="make isn't installed")
def test_an_environment_without_pip_is_made_anew(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "setup.py"):
        shutil.copy(ROOT / name, tmp_path)
    half_made = tmp_path / ".venv" / "bin" / "python"
    half_made.parent.mkdir(parents=True)
    for program, text in ((half_made, NEEDS_PIP), (tmp_path / "python", MAKES_PIP)):
        program.write_text(text)
        program.chmod(0o755)
    subprocess.run(["make", "PYTHON=./python", ".venv/.installed"], cwd=tmp_path, check=True)
    assert (tmp_path / ".venv" / ".installed").exists()
