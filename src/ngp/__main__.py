"""``python -m ngp`` and the command ``ngp``."""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say what it needs."""
    missing = [package for package in ("click", "rich") if find_spec(package) is None]
    if missing:
        print(
            f"ngp: the command line needs {' and '.join(missing)}: run pip install 'neural-greedy-pursuit[cli]'.",
            file=sys.stderr,
        )
        sys.exit(2)
    from ngp.cli import cli

    cli(prog_name="ngp")


if __name__ == "__main__":
    main()
