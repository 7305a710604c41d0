"""Reports in a real browser: nothing goes wrong, everything is seen, at both ends of the widths and of the colours.

Needs Debian's ``chromium``, node, and what ``npm ci --prefix tests/report/browser`` installs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import report_cases as cases

from ngp.report import write_report

FOLDER = Path(__file__).parent / "browser"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def missing() -> str:
    """What a browser test lacks, and how to get it."""
    if CHROMIUM is None:
        return "Chromium is not installed: apt-get install chromium"
    if shutil.which("node") is None:
        return "node is not installed: apt-get install nodejs npm"
    if not (FOLDER / "node_modules" / "axe-core").is_dir():
        return "packages of the browser tests are not installed: npm ci --prefix tests/report/browser"
    return ""


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What the browser saw of each report, small in light and wide in dark colours."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    if reason := missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("reports")
    pages = []
    others_have_all_of_it = {"decoy", "exchanges", "regression"}
    for name, case in cases.CASES.items():
        if name in others_have_all_of_it:
            continue
        pages.append(folder / f"{name}.html")
        write_report(case().result, pages[-1])
    command = ["node", str(FOLDER / "inspect.mjs"), str(CHROMIUM), *map(str, pages)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    seen: list[dict[str, Any]] = json.loads(run.stdout)
    assert len(seen) == 2 * len(pages)
    return seen


def where(view: dict[str, Any]) -> str:
    return f"{Path(view['file']).stem} at {view['width']} pixels, {view['scheme']}"


def test_the_console_stays_empty(views: list[dict[str, Any]]) -> None:
    for view in views:
        assert view["messages"] == [], where(view)


def test_nothing_but_the_file_is_loaded(views: list[dict[str, Any]]) -> None:
    for view in views:
        others = [url for url in view["requests"] if not url.startswith("data:")]
        assert [url.split("/")[0] for url in others] == ["file:"], where(view)
        assert (view["scripts"], view["images"]) == (0, 0), where(view)


def test_every_figure_is_seen_once(views: list[dict[str, Any]]) -> None:
    for view in views:
        assert view["figures"], where(view)
        for figure in view["figures"]:
            small, place = "All curves" in figure["caption"], f"{where(view)}: {figure['caption']}"
            assert small or len(figure["drawings"]) == 1, place
            for drawing in figure["drawings"]:
                assert drawing["width"] > (180 if small else 250), place
                assert drawing["height"] > 80, place
                assert 0 <= drawing["left"] < drawing["right"] <= view["clientWidth"], place


def test_nothing_scrolls_sideways(views: list[dict[str, Any]]) -> None:
    for view in views:
        assert view["clientWidth"] == view["width"]
        assert view["scrollWidth"] <= view["clientWidth"], where(view)
        assert view["openedScrollWidth"] <= view["clientWidth"], f"{where(view)}, tables open"


def test_axe_finds_nothing(views: list[dict[str, Any]]) -> None:
    for view in views:
        assert view["violations"] == [], where(view)


def test_ids_and_links_hold(views: list[dict[str, Any]]) -> None:
    for view in views:
        assert (view["twice"], view["broken"]) == ([], []), where(view)


def test_light_and_dark_differ(views: list[dict[str, Any]]) -> None:
    grounds = {(view["scheme"], view["background"]) for view in views}
    assert len(grounds) == 2
    assert len({ground for _, ground in grounds}) == 2


def test_nasty_names_are_read_as_text(views: list[dict[str, Any]]) -> None:
    for view in views:
        if "nasty" in view["file"]:
            assert "<script>alert(1)</script>" in view["text"]
            assert "</svg><img src=x onerror=alert(2)>" in view["text"]
            assert any("<script>" in text for f in view["figures"] for text in f["texts"])
