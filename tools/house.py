"""How large and how tangled the source is: ``python -m tools.house [--beside REV] [--tests] [--json FILE]``.

Lines: a docstring is what ast takes for one, quotes included; blank and comment lines are those outside of strings; the
rest is code. Documented are the names in the autosummary blocks of docs/api/index.md, and their public methods and
properties, inherited ones too where ngp defines them. Constants are ALL_CAPS names of two letters or more, assigned in
a module's body. Words are counted in docs/**/*.md, save what is built (docs/_build, docs/api/generated, docs/gallery).

Trace: of ``NeuralGreedyPursuit(n_features_to_select=2, random_state=0).fit(X, y)``, 60 rows and 5 columns, from
entering `fit` until a function named `add_losses` first returns. An entry is a call, in the main thread, of a function
whose file is in src/ngp; resuming a generator is a call, returning to a caller is none. Bodies of modules and classes
are not functions; comprehensions and generator expressions are part of the function around them; a lambda is one of its
own; methods that dataclasses generate have no file and don't count. *modules*: those with an entry; *functions*:
distinct ones entered; *switches*: entries into another module than the entry before; *entered again*: modules that were
entered, left for another and entered anew.

Imports: see tools/imports.py.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from types import CodeType, FrameType
from typing import Any

from tools.imports import FUNCTIONS, Trees, find, lineage, tangle

ROOT = Path(__file__).resolve().parents[1]


def docstring_lines(nodes: Iterable[ast.AST]) -> int:
    """Count the lines of these nodes' own docstrings."""
    able = [node for node in nodes if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Module))]
    texts = [node.body[0] for node in able if ast.get_docstring(node) is not None]
    return sum((text.end_lineno or 0) - text.lineno + 1 for text in texts)


def size(root: Path, files: list[Path], trees: Trees) -> dict[str, Any]:
    """How much there is of what."""
    lines = blank = comment = 0
    for path in files:
        with tokenize.open(path) as file:
            tokens = list(tokenize.generate_tokens(file.readline))
        lines += tokens[-1].start[0] - 1
        blank += sum(token.type == tokenize.NL and not token.line.strip() for token in tokens)
        comment += sum(token.type == tokenize.COMMENT and token.line.lstrip().startswith("#") for token in tokens)
    page = (root / "docs/api/index.md").read_text("utf-8")
    blocks = re.findall(r"(?ms)currentmodule:: (\S+)\n(.*?)^```$", page)
    names = [f"{module}.{name}" for module, block in blocks for name in re.findall(r"(?m)^   ([\w.]+)$", block)]
    found = {name: find(trees, *name.rsplit(".", 1)) for name in names}
    bodies = [node for each in found.values() for cls in lineage(trees, each) for node in cls.body]
    methods = [node for node in bodies if isinstance(node, FUNCTIONS) and not node.name.startswith("_")]
    documented = docstring_lines({*methods, *(each[1] for each in found.values() if each)})
    docstrings = docstring_lines(node for tree in trees.values() for node in ast.walk(tree))
    assigned = [node for tree in trees.values() for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    stored = [n.id for a in assigned for n in ast.walk(a) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    selector = lineage(trees, find(trees, "ngp.selector", "NeuralGreedyPursuit"))
    made = [m for cls in selector for m in cls.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"]
    return {
        "Python files": len(files),
        "Python lines": lines,
        "  code": lines - docstrings - blank - comment,
        "  docstrings": docstrings,
        "    outside the documented API": docstrings - documented,
        "  blank": blank,
        "  comments": comment,
        "C lines": sum(len(path.read_bytes().splitlines()) for path in (root / "src/ngp").rglob("*.[ch]")),
        "module-level constants": sum(bool(re.fullmatch("_?[A-Z][A-Z0-9_]+", name)) for name in stored),
        "parameters of NeuralGreedyPursuit": len(made[0].args.args + made[0].args.kwonlyargs) - 1 if made else None,
        "public names": len(names),
        "  not found in src/ngp": [name for name in names if found[name] is None],
    }


def trace() -> dict[str, int]:
    """Count what a fit enters before its first candidate is scored."""
    import numpy as np

    import ngp

    source, entries = os.path.join(os.path.dirname(str(ngp.__file__)), ""), list[CodeType]()

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if code.co_filename.startswith(source):
            if event == "call" and (code.co_name[0] != "<" or code.co_name == "<lambda>"):
                entries.append(code)
            elif event == "return" and code.co_name == "add_losses":
                sys.setprofile(None)

    X = np.random.default_rng(0).standard_normal((60, 5))
    selector = ngp.NeuralGreedyPursuit(n_features_to_select=2, random_state=0)
    sys.setprofile(profile)
    selector.fit(X, X[:, 0] + X[:, 1] ** 2)
    if sys.getprofile() is not None:
        raise RuntimeError("no add_losses of ngp ran in the main thread")
    stays = [file for file, _ in groupby(code.co_filename for code in entries)]
    return {
        "modules entered before the first score": len(set(stays)),
        "  functions": len({(code.co_filename, code.co_firstlineno, code.co_name) for code in entries}),
        "  switches between modules": len(stays) - 1,
        "  modules entered again": sum(stays.count(file) > 1 for file in set(stays)),
    }


def command() -> dict[str, int]:
    """Count the modules that `ngp select` has imported when it ends; the one that was run is among them."""
    rows = [f"{i % 7},{i * i % 11},{i * 5 % 13},{i % 7 + i * i % 11}" for i in range(60)]
    Path("data.csv").write_text("\n".join(["a,b,c,y", *rows]), encoding="utf-8")
    sys.argv = ["ngp", "select", "data.csv", "--target", "y", "--report", "r.html"]
    try:
        runpy.run_module("ngp", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code:
            raise
    modules = [module for name, module in sys.modules.items() if f"{name}.".startswith("ngp.")]
    return {"modules that `ngp select` imports": 1 + sum(str(module.__file__).endswith(".py") for module in modules)}


def run(paths: list[Path], folder: Path, *arguments: str) -> list[str]:
    """Run Python in a folder, importing from these paths, and give the lines that it printed; none, if it failed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "MPLBACKEND": "agg"}
    call = [sys.executable, "-P", *arguments]
    done = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        said = (done.stdout + done.stderr).splitlines()
        print(f"{' '.join(arguments)} failed:", *said[-3:], sep="\n  ", file=sys.stderr)
    return [] if done.returncode else done.stdout.splitlines()


def apart(root: Path, job: str) -> dict[str, int]:
    """Do one of the two jobs above on a tree; nothing, if it fails."""
    with TemporaryDirectory() as folder:
        said = run([root / "src", ROOT], Path(folder), "-m", "tools.house", "--job", job)
    return dict(json.loads(said[-1])) if said else {}


def measure(root: Path, cases: bool) -> dict[str, Any]:
    """Everything, of one tree."""
    files = sorted((root / "src/ngp").rglob("*.py"))
    names = [".".join(path.relative_to(root / "src").with_suffix("").parts) for path in files]
    trees = {n.removesuffix(".__init__"): ast.parse(path.read_bytes()) for n, path in zip(names, files, strict=True)}
    found = size(root, files, trees) | tangle(trees)
    found["compiled kernel"] = "yes" if any((root / "src/ngp").rglob("*.so")) else "no"
    found |= {**apart(root, "trace"), **apart(root, "command"), "  of all modules": len(files)}
    pages = {path.relative_to(root / "docs").as_posix(): path for path in (root / "docs").rglob("*.md")}
    words = {name: len(path.read_text("utf-8").split()) for name, path in pages.items()}
    left_out = ("_build/", "api/generated/", "gallery/", "developer/")
    found["words in docs"] = sum(count for name, count in words.items() if not name.startswith(left_out))
    found["  in docs/developer"] = sum(count for name, count in words.items() if name.startswith("developer/"))
    tests = [len(path.read_bytes().splitlines()) for path in (root / "tests").rglob("*.py")]
    found |= {"test files": len(tests), "test lines": sum(tests)}
    if cases:
        said = run([root / "src"], root, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
        told = re.search(r"(\d+) tests? collected", "\n".join(said[-3:]))
        found["test cases"] = int(told[1]) if told else None
    return found


def measure_revision(revision: str, cases: bool) -> dict[str, Any]:
    """Everything, of a git revision, with the kernel that is compiled here if it works there."""
    git = ["git", "-C", str(ROOT), "worktree"]
    with TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "tree"
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), revision], check=True)
        try:
            for kernel in (ROOT / "src/ngp").rglob("*.so"):
                for source in (tree / "src/ngp").rglob(f"{kernel.name.split('.')[0]}.c"):
                    copy = Path(shutil.copy(kernel, source.parent))
                    if not apart(tree, "trace"):
                        copy.unlink()
            return measure(tree, cases)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def show(columns: dict[str, dict[str, Any]]) -> None:
    """Print the numbers beside one another, and below them the names that were counted."""
    rows = dict.fromkeys(row for column in columns.values() for row, value in column.items() if type(value) is not dict)
    width = max(map(len, rows))
    print(" " * width, *(f"{title[:14]:>14}" for title in columns))
    for row in rows:
        values = [column.get(row) for column in columns.values()]
        cells = [len(value) if isinstance(value, list) else "—" if value is None else value for value in values]
        print(f"{row:{width}}", *(f"{cell:>14}" for cell in cells))
    for title, column in columns.items():
        for row, value in column.items():
            if value and isinstance(value, list | dict):
                lines = [f"{k}: {v}" for k, v in value.items()] if isinstance(value, dict) else [", ".join(value)]
                wrapped = [fill(line, 120, initial_indent="  ", subsequent_indent="    ") for line in lines]
                print(f"\n{title}: {row.strip()}", *wrapped, sep="\n")


def main() -> None:
    """Measure this tree, and another if one is named."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=str(__doc__).partition(":")[0])
    parser.add_argument("--beside", metavar="REV", help="measure this git revision too")
    parser.add_argument("--tests", action="store_true", help="count the test cases, which takes a while")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there")
    parser.add_argument("--job", choices=["trace", "command"], help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.job:
        print("\n" + json.dumps(trace() if asked.job == "trace" else command()))
        return
    columns = {asked.beside: measure_revision(asked.beside, asked.tests)} if asked.beside else {}
    columns["now"] = measure(ROOT, asked.tests)
    if asked.json:
        asked.json.write_text(json.dumps(columns, indent=2) + "\n", encoding="utf-8")
    show(columns)


if __name__ == "__main__":
    main()
