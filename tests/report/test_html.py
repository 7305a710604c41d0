"""The report is one file that says what the result says, whatever the names in it."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import report_cases as cases
from sklearn.base import clone

from ngp._formatting import number
from ngp.report import write_report
from ngp.report.page import describe, seen
from ngp.report.result import Result
from ngp.report.svg import draw_svg

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """Elements of a page with their attributes, and the text that lies directly or deeper in each."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[list[str]] = []
        self._open: list[int] = []
        self.feed(html)
        assert self._open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.append([])
        if tag not in VOID:
            self._open.append(len(self.elements) - 1)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.append([])

    def handle_endtag(self, tag: str) -> None:
        assert self.elements[self._open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        for place in self._open:
            self.texts[place].append(data)

    def all(self, tag: str, **attributes: str) -> list[str]:
        """Texts of all elements of a kind."""
        return [
            "".join(text)
            for (name, own), text in zip(self.elements, self.texts, strict=True)
            if name == tag and attributes.items() <= own.items()
        ]

    def attributes(self, name: str) -> list[str]:
        return [own[name] or "" for _, own in self.elements if name in own]


def written(result: Result, folder: Path) -> str:
    write_report(result, folder / "report.html")
    assert [file.name for file in folder.iterdir()] == ["report.html"]
    return (folder / "report.html").read_text(encoding="utf-8")


@cache
def html_of(name: str) -> str:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        return written(cases.CASES[name]().result, Path(folder))


@pytest.fixture(params=list(cases.CASES))
def page(request: pytest.FixtureRequest) -> Page:
    return Page(html_of(request.param))


def test_it_loads_nothing(page: Page) -> None:
    for name in ("src", "href", "xlink:href", "action", "data", "srcset", "poster"):
        assert all(link.startswith(("#", "data:")) for link in page.attributes(name))
    assert not {"script", "iframe", "object", "embed", "img"} & {tag for tag, _ in page.elements}
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", "".join(page.attributes("style") + page.all("style")))
    assert "@import" not in "".join(page.all("style"))


def test_ids_are_unique_and_links_lead_somewhere(page: Page) -> None:
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    links = [link for link in page.attributes("href") if link.startswith("#")]
    named = [name for names in page.attributes("aria-labelledby") for name in names.split()]
    clips = re.findall(r"url\(#([\w-]+)\)", " ".join(page.attributes("clip-path") + page.attributes("style")))
    assert {link[1:] for link in links} | set(named) | set(clips) <= set(ids)


def test_it_can_be_heard_and_walked_through(page: Page) -> None:
    tags = [tag for tag, _ in page.elements]
    assert [tags.count(tag) for tag in ("main", "header", "footer", "nav", "h1")] == [1] * 5
    headings = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert set(headings[1:]) == {2}
    assert next(own for tag, own in page.elements if tag == "html")["lang"] == "en"
    assert page.elements[tags.index("body") + 1][1]["href"] == "#main"
    for tag, own in page.elements:
        if tag == "svg":
            assert own["role"] == "img"
        if tag == "th":
            assert own["scope"] in ("row", "col", "rowgroup")
    assert len(page.all("svg")) == len(page.all("title")) - 1 == len(page.all("desc"))
    assert all(page.all("title") + page.all("desc"))
    assert len(page.all("caption")) == tags.count("table")


def test_every_figure_has_a_caption_and_a_table(page: Page) -> None:
    assert page.all("figure")
    assert len(page.all("figcaption")) == len(page.all("figure")) == page.all("summary").count("The figure as a table")
    assert all(caption.strip() for caption in page.all("figcaption"))


def test_it_answers_in_a_sentence() -> None:
    page, result = Page(html_of("regression")), cases.regression().result
    assert page.all("h1") == ["Which of 8 features predict yield?"]
    answer = " ".join(page.all("p", **{"class": "answer"})[0].split())
    saved = 1 - result.answer["loss"] / result.answer["constant_loss"]
    names = "{}, {} and {}".format(*result.answer["names"])
    assert answer == (
        f"3 features, {names}, lower the validation loss by {100 * saved:.1f}% against a constant prediction and "
        f"predict 40 held-out rows with R² {result.fit['r2']:.3f}."
    )


def test_it_says_where_nothing_was_selected() -> None:
    page = Page(html_of("nothing"))
    assert (
        "None of them: nothing was selected, and the prediction is constant." in page.all("p", **{"class": "answer"})[0]
    )
    assert "The ranking" not in page.all("h2")


@pytest.mark.parametrize("partial", [True, False])
def test_a_partial_result_is_marked(partial: bool, tmp_path: Path) -> None:
    result = cases.regression().result
    changed = {"partial": partial, "stop_reason": "the time of 5 seconds is up"}
    page = Page(written(replace(result, answer=result.answer | changed), tmp_path))
    said = any("This is a partial result. The run was cut short: the time of 5 s" in text for text in page.all("p"))
    assert said is partial


def test_drops_and_exchanges_are_explained_where_there_are_any() -> None:
    html = html_of("exchanges")
    for text in (
        "After each addition, what no longer paid was dropped; in the end, features were exchanged as long as that",
        "a triangle is a drop, hollow blue marks are additions that a later step has undone",
        "among the ones before were some that were dropped later: x4 (for x6), x3, x6.",
        "the line after it says that it is in, and a cross that it was dropped.",
    ):
        assert text in html
        assert text not in html_of("regression")
    assert "What was picked first matters most." in html_of("regression")
    assert "What was picked first matters most." not in html
    assert ("Wrong picks", "dropped or exchanged") in describe(cases.exchanges().result)["asked"]
    assert "Wrong picks" not in dict(describe(cases.regression().result)["asked"])


@pytest.mark.parametrize(
    ("parameters", "asked", "told"),
    [
        ({"look_ahead": 2}, "features in pairs", "In each step candidates were tried in pairs, together with"),
        (
            {"look_ahead": 3, "beam_width": 5},
            "features in sets of 3, grown from the best 5 smaller ones",
            "In each step candidates were tried in sets of 3, together with what was in already, and of those",
        ),
        (
            {"look_ahead": 2, "beam_width": 1, "screen": 20},
            "features in pairs, grown from the best 1 smaller one",
            "what was in already and if a cheap pass promised much of them, and of those",
        ),
    ],
)
def test_looking_ahead_is_told(parameters: dict[str, Any], asked: str, told: str, tmp_path: Path) -> None:
    case = cases.regression()
    selector = clone(case.selector).set_params(**parameters, n_features_to_select=2).fit(case.X, case.y)
    result = Result.of(selector, case.X, case.y)
    assert ("Looking ahead", asked) in describe(result)["asked"]
    assert told in written(result, tmp_path)
    assert "Looking ahead" not in dict(describe(case.result)["asked"])


def test_screening_is_told(tmp_path: Path) -> None:
    case = cases.regression()
    selector = clone(case.selector).set_params(screen=4, n_features_to_select=3).fit(case.X, case.y)
    html = written(Result.of(selector, case.X, case.y), tmp_path)
    assert "In each step a cheap pass ranked the candidates, the best of them were tried together with" in html
    assert "All candidates that were tried, those that were picked first." in html
    assert "In each step every candidate was tried together with" in html_of("regression")
    assert "All candidates, those that were picked first." in html_of("regression")


def test_training_rows_are_called_flattering() -> None:
    assert "rows that the predictor was trained on, so the figure flatters it" in "".join(
        Page(html_of("categories")).all("p")
    )
    assert "flatters" not in html_of("regression")
    assert "40 rows that were held out" in "".join(Page(html_of("regression")).all("p"))


def test_each_section_is_there_where_there_is_something_to_say() -> None:
    always = ["What was asked", "The path", "The ranking", "Close calls", "All candidates"]
    end = ["What was passed over", "How well it predicts", "To do it again"]
    assert Page(html_of("regression")).all("h2") == always + end
    assert Page(html_of("digits")).all("h2") == [*always, "The image", "The groups", *end]
    assert Page(html_of("categories")).all("h2") == [*always, "The groups", *end]


def test_close_calls_are_gaps_below_a_standard_error() -> None:
    for name in ("regression", "digits", "many"):
        result = cases.CASES[name]().result
        calls = describe(result)["calls"]
        gaps = [(s.runner_up_loss - s.loss) / s.standard_error for s in result.steps if s.runner_up is not None]
        assert calls["n"] == sum(gap < 1 for gap in gaps)
        assert [row[4] for row in calls["table"].rows] == [f"{gap:.2f}" for gap in gaps]
        assert [row[8] for row in calls["table"].rows] == ["close" if gap < 1 else "clear" for gap in gaps]
        sure = [f"{100 * step.certainty:.1f}%" for step in result.steps if step.runner_up is not None]
        assert [row[5] for row in calls["table"].rows] == sure
        assert f"{calls['n']} of {len(gaps)} picks" in "".join(Page(html_of(name)).all("p"))


def test_it_says_how_stable_the_selection_is(tmp_path: Path) -> None:
    result = cases.halved().result
    found, page = result.stability, html_of("halved")
    assert found is not None
    assert "The same was done on 30 random halves of the rows" in page
    assert f"<b>{len(found['stable'])} feature" in page
    assert "hardly any both: x0 and x5" in page
    table = describe(result)["stability"]["table"]
    shares = [float(row[1][:-1]) for row in table.rows]
    assert shares == sorted(shares, reverse=True)
    assert {row[0] for row in table.rows if row[2] == "yes"} == set(result.answer["names"])
    alone = replace(result, stability=found | {"stand_ins": []})
    assert "hardly any both" not in written(alone, tmp_path)
    assert "How stable it is" not in html_of("regression")


def test_without_a_standard_error_no_pick_is_called_close(tmp_path: Path) -> None:
    result = cases.regression().result
    single = replace(result, path=[step | {"standard_error": None} for step in result.path])
    html = written(single, tmp_path)
    assert "no pick can be called close or clear" in html
    assert "close calls</b>" not in html


def test_of_many_candidates_those_that_came_near_are_shown() -> None:
    result = cases.many().result
    table = describe(result)["candidates"]
    assert 20 <= len(table.rows) <= 60
    assert [row[0] for row in table.rows[:7]] == result.answer["names"]
    assert f"Of 300 candidates, the {len(table.rows)} that were picked or came nearest to it." in html_of("many")
    first = result.groups["names"].index(table.rows[9][0])
    assert table.rows[9][1:] == [number(step["losses"][first]) for step in result.path[1:]]


@pytest.mark.parametrize("name", ["regression", "digits"])
def test_the_code_does_it_again(name: str) -> None:
    case = cases.CASES[name]()
    code = Page(html_of(name)).all("code")[0]
    compile(code, "report", "exec")
    scope: dict[str, Any] = {}
    exec(code.replace("X, y = ...", "X, y = DATA"), scope | {"DATA": (case.X, case.y)}, scope)
    assert scope["selector"].order_.tolist() == case.result.answer["order"]


def test_names_are_escaped_everywhere() -> None:
    html = html_of("nasty")
    page = Page(html)
    cells = [*page.all("th"), *page.all("td"), *page.all("span"), *page.all("dd")]
    for name in cases.NASTY:
        assert seen(name) in cells
    drawn = " ".join(page.all("svg"))
    assert "<script>alert(1)</script>" in drawn
    assert "two\\nlines" in drawn
    assert "$\\frac{broken$ and $x_1$" in drawn
    assert "\u202e" not in html
    assert page.all("title")[0] == 'What predicts <b>target</b>\\n"; DROP? A selection of features'


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_without_a_package_it_says_what_to_install(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find: Callable[..., Any] = importlib.util.find_spec
    monkeypatch.setattr("ngp.report.html.find_spec", lambda name: None if name == package else find(name))
    message = rf"A report needs {package}: install with pip install 'neural-greedy-pursuit\[report\]'\."
    with pytest.raises(ImportError, match=message):
        write_report(cases.regression().result, tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_the_same_result_gives_the_same_file(tmp_path: Path) -> None:
    assert written(cases.regression().result, tmp_path) == html_of("regression")


def test_a_result_from_a_file_gives_the_same_report(tmp_path: Path) -> None:
    cases.nasty().result.write(tmp_path / "result.json")
    result = Result.read(tmp_path / "result.json")
    (tmp_path / "result.json").unlink()
    assert written(result, tmp_path) == html_of("nasty")


def test_the_users_style_of_figures_has_no_say(tmp_path: Path) -> None:
    from matplotlib import rc_context

    with rc_context({"axes.facecolor": "red", "font.size": 40, "lines.linewidth": 9, "svg.fonttype": "path"}):
        assert written(cases.regression().result, tmp_path) == html_of("regression")


def test_a_figure_follows_the_colours_of_the_page() -> None:
    svg = draw_svg(lambda ax: ax.plot([0, 1], color="#000000"), 3, 2, name="a", title="<t>", description="d & e")
    assert "stroke: var(--ink)" in svg
    assert "#000000" not in svg
    assert '<title id="a-title">&lt;t&gt;</title><desc id="a-desc">d &amp; e</desc>' in svg
    assert 'style="max-width: 288px"' in svg
    assert "font-family" not in svg
