"""The report is one file that says what the result says, whatever the names in it."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from math import nan
from pathlib import Path
from typing import Any

import pytest
import report_cases as cases

from ngp._formatting import number
from ngp.predictors import SSFN
from ngp.report import write_report
from ngp.report.html import draw_svg
from ngp.report.page import BRIER, describe, seen
from ngp.report.result import Result

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


def words_of(result: Result, folder: Path) -> str:
    """A page whose figures are left out, which is quick."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ngp.report.html.draw_svg", lambda *_: "")
        return written(result, folder)


@cache
def html_of(name: str) -> str:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        return written(cases.CASES[name]().result, Path(folder))


@pytest.fixture(params=["regression", "categories", "digits", "nasty", "nothing", "halved", "exchanges"])
def page(request: pytest.FixtureRequest) -> Page:
    return Page(html_of(request.param))


def test_every_page_is_complete_and_accessible(page: Page) -> None:
    for name in ("src", "href", "xlink:href", "action", "data", "srcset", "poster"):
        assert all(link.startswith(("#", "data:")) for link in page.attributes(name))
    assert not {"script", "iframe", "object", "embed", "img"} & {tag for tag, _ in page.elements}
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", "".join(page.attributes("style") + page.all("style")))
    assert "@import" not in "".join(page.all("style"))
    # Ids are unique, and links lead somewhere.
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    links = [link for link in page.attributes("href") if link.startswith("#")]
    named = [name for names in page.attributes("aria-labelledby") for name in names.split()]
    clips = re.findall(r"url\(#([\w-]+)\)", " ".join(page.attributes("clip-path") + page.attributes("style")))
    assert {link[1:] for link in links} | set(named) | set(clips) <= set(ids)
    # It can be read aloud and walked through.
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
    # Every figure has a caption and a table.
    assert page.all("figure")
    assert len(page.all("figcaption")) == len(page.all("figure")) == page.all("summary").count("The figure as a table")
    assert all(caption.strip() for caption in page.all("figcaption"))


def test_it_answers_in_a_sentence() -> None:
    page, result = Page(html_of("regression")), cases.regression().result
    assert page.all("h1") == ["Which of 8 features predict yield?"]
    answer = " ".join(page.all("p", **{"class": "answer"})[0].split())
    names = "{}, {} and {}".format(*result.order)
    assert answer == (f"3 features, {names}, predict 40 held-out rows with R² {result.fit.r2:.3f}.")


def test_without_held_out_rows_it_answers_with_the_cross_validated_score() -> None:
    page, answer = Page(html_of("categories")), cases.categories().result.answer
    headline = " ".join(page.all("p", **{"class": "answer"})[0].split())
    accuracy = f"accuracy {100 * answer.score:.1f} ± {100 * answer.score_error:.1f}%"
    assert f"with {accuracy} in cross-validation" in headline
    assert "hold rows out for an honest estimate" in "".join(page.all("p"))
    assert "training" not in html_of("categories")


def test_the_selection_is_held_against_all_columns_and_none() -> None:
    result = cases.regression().result
    assert describe(result)["scores"].rows == [
        ["The selection", f"{result.answer.score:.3f} ± {result.answer.score_error:.3f}"],
        ["All columns", f"{result.answer.all_columns_score:.3f}"],
        ["The constant prediction", "0.000"],
    ]
    assert describe(cases.categories().result)["scores"].rows[-1][0] == "The fixed columns alone"
    assert result.fit is not None
    assert describe(result)["tiles"][1:4] == [
        ("R²", f"{result.fit.r2:.3f}", "on 40 held-out rows"),
        ("R² of all columns", f"{result.answer.all_columns_score:.3f}", "cross-validated"),
        ("constant prediction", f"{result.fit.constant:.3f}".replace("-", "−"), "on the same rows"),
    ]
    assert describe(cases.categories().result)["tiles"][3][::2] == ("fixed columns alone", "for comparison")
    fit = cases.digits().result.fit
    assert fit is not None
    assert describe(cases.digits().result)["tiles"][3][:2] == ("most frequent class", f"{100 * fit.constant:.1f}%")


@pytest.mark.parametrize("name", ["regression", "categories", "digits", "halved"])
def test_changes_of_the_loss_are_those_of_the_losses_beside_them(name: str) -> None:
    result = cases.CASES[name]().result
    table = describe(result)["path"]
    place = table.header.index("Change of the loss")
    losses = [step.loss for step in result.path]
    changes = [f"{100 * (now / before - 1):+,.1f}%".replace("-", "−") for before, now in pairwise(losses)]
    assert [row[place] for row in table.rows] == ["", *changes]


def test_a_loss_of_classes_says_what_it_is() -> None:
    assert ("Judged by", BRIER) in describe(cases.digits().result)["asked"]
    assert ("Judged by", "mean squared error") in describe(cases.regression().result)["asked"]


def test_a_leak_is_told(tmp_path: Path) -> None:
    result = cases.regression().result
    assert "This may be a leak" not in html_of("regression")
    first = replace(result.path[1], score=0.995, name="paid")
    html = words_of(replace(result, path=[result.path[0], first, *result.path[2:]]), tmp_path)
    assert "paid explains nearly everything by itself (R² 0.995): is it known before the target is?" in html


def test_the_other_cut_is_told(tmp_path: Path) -> None:
    result = cases.regression().result
    answer = replace(result.answer, cuts={"significant": 3, "best": 5}, all_columns_score=0.5)
    html = " ".join(Page(words_of(replace(result, answer=answer), tmp_path)).all("p", **{"class": "answer"})[0].split())
    assert "3 features are beyond chance; 5 predict best (R² " in html
    assert ", all columns 0.500)." in html


def test_it_says_where_nothing_was_selected() -> None:
    page = Page(html_of("nothing"))
    assert (
        "None of them: nothing was selected, and the prediction is constant." in page.all("p", **{"class": "answer"})[0]
    )
    assert "What matters most" not in page.all("h2")


def test_a_partial_result_is_marked(tmp_path: Path) -> None:
    result = cases.regression().result
    answer = replace(result.answer, partial=True, stop_reason="the time of 5 seconds is up")
    html = words_of(replace(result, answer=answer), tmp_path)
    assert "This is a partial result.</b> The run was cut short: the time of 5 seconds is up." in html
    assert "partial result" not in html_of("regression")


def test_drops_and_exchanges_are_explained_where_there_are_any() -> None:
    html = html_of("exchanges")
    for text in (
        "After each addition, features that no longer paid were dropped; at the end, features were exchanged as long",
        "a triangle is a drop, hollow blue marks are additions that a later step has undone",
        "Dropped on the way: x4 (for x6), x3, x6.",
        "the line after it the steps in which it is selected; a cross marks a drop.",
    ):
        assert text in html
        assert text not in html_of("regression")
    assert ("Wrong picks", "dropped or exchanged") in describe(cases.exchanges().result)["asked"]
    assert "Wrong picks" not in dict(describe(cases.regression().result)["asked"])


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({}, "In each step, every candidate was tried together with"),
        ({"screen": 4}, "a cheap first pass ranked the candidates, and the best of them were tried together with"),
    ],
)
def test_screening_is_described(parameters: dict[str, Any], text: str, tmp_path: Path) -> None:
    result = cases.regression().result
    asked = replace(result.asked, parameters=result.asked.parameters | parameters)
    html = words_of(replace(result, asked=asked), tmp_path)
    assert text in html
    assert ("All candidates that were tried," in html) is ("screen" in parameters)


def test_that_significant_candidates_come_first_is_said_where_they_do() -> None:
    text = "the one with the lowest validation loss was added"
    assert f"{text}, of significant ones if there were any." in html_of("regression")
    assert f"{text}." in html_of("exchanges")


def test_held_out_rows_are_called_so() -> None:
    assert "40 rows that were held out" in "".join(Page(html_of("regression")).all("p"))


def test_each_section_is_there_where_there_is_something_to_say() -> None:
    matters, curves, pairs = "What matters most", "What each column does", "What works together"
    always, groups = ["How sure the choice is", "All candidates"], "The groups"
    end = ["What was passed over", "How well it predicts", "What was done", "To do it again"]
    assert Page(html_of("regression")).all("h2") == ["The path", matters, curves, pairs, *always, *end]
    assert Page(html_of("digits")).all("h2") == ["The path", matters, "The image", pairs, *always, groups, *end]
    expected = ["The path", matters, curves, pairs, always[0], groups, *end[1:]]
    assert Page(html_of("categories")).all("h2") == expected


def test_a_heat_map_needs_three_steps(tmp_path: Path) -> None:
    result = cases.regression().result
    for n_kept, exists in ((2, False), (3, True)):
        path = [replace(step, kept=step.kept and number <= n_kept) for number, step in enumerate(result.path)]
        html = words_of(replace(result, path=path), tmp_path)
        assert ("All candidates" in Page(html).all("h2")) is exists


def test_what_was_done_to_the_data_is_told(tmp_path: Path) -> None:
    result = cases.regression().result
    asked = replace(result.asked, data=["houses.csv: 160 rows.", "Dropped <b>."], command="ngp select houses.csv")
    page = Page(words_of(replace(result, asked=asked), tmp_path))
    assert {"houses.csv: 160 rows.", "Dropped <b>."} <= set(page.all("li"))
    assert page.all("code")[0] == "ngp select houses.csv"


def test_pairs_that_only_work_together_are_named(tmp_path: Path) -> None:
    result = cases.regression().result
    assert "No two of the selected features work only together" in html_of("regression")
    strong = replace(result.together[0], groups=[2, 5], share=0.9, size=0.4)
    html = words_of(replace(result, together=[strong]), tmp_path)
    assert "<b>x2 and x5</b> work mostly together" in html
    assert ">90%</td><td>0.40<" in html


def test_candidates_within_a_standard_error_are_counted() -> None:
    result = cases.digits().result
    rows = describe(result)["calls"]["table"].rows
    for step, row in zip(result.path[1:], rows, strict=True):
        limit = step.losses[step.group] + step.standard_error
        n_near = int((step.losses < limit).sum()) - 1
        assert row[6].partition(":")[0] == (str(n_near) if n_near else "none")


def test_close_calls_are_gaps_below_a_standard_error() -> None:
    for name in ("regression", "digits"):
        result = cases.CASES[name]().result
        calls = describe(result)["calls"]
        steps = [step for step in result.path if step.kept and step.runner_up is not None]
        gaps = [(step.runner_up_loss - step.loss) / step.standard_error for step in steps]
        assert calls["n"] == sum(gap < 1 for gap in gaps)
        assert [row[4] for row in calls["table"].rows] == [f"{gap:.2f}" for gap in gaps]
        assert [row[8] for row in calls["table"].rows] == ["close" if gap < 1 else "clear" for gap in gaps]
        assert f"{calls['n']} of {len(gaps)} picks" in "".join(Page(html_of(name)).all("p"))


def test_it_says_how_stable_the_selection_is(tmp_path: Path) -> None:
    result = cases.halved().result
    found, page = result.stability, html_of("halved")
    assert found is not None
    assert "The selection was repeated on 30 random halves of the rows" in page
    assert f"<b>{len(found.stable)} feature" in page
    assert "hardly any both: x0 and x5" in page
    table = describe(result)["halves"]["table"]
    shares = [float(row[1][:-1]) for row in table.rows]
    assert shares == sorted(shares, reverse=True)
    assert {row[0] for row in table.rows if row[2] == "yes"} == set(result.order)
    alone = replace(result, stability=replace(found, stand_ins=[]))
    assert "hardly any both" not in words_of(alone, tmp_path)
    assert "How stable it is" not in html_of("regression")


def test_without_a_standard_error_no_pick_is_called_close(tmp_path: Path) -> None:
    result = cases.regression().result
    single = replace(result, path=[replace(step, standard_error=nan) for step in result.path])
    html = words_of(single, tmp_path)
    assert "no pick can be called close or clear" in html
    assert "close calls</b>" not in html


def test_of_many_candidates_those_that_came_near_are_shown(tmp_path: Path) -> None:
    result = cases.many().result
    table = describe(result)["candidates"]
    assert 20 <= len(table.rows) <= 60
    assert [row[0] for row in table.rows[:7]] == result.order
    assert f"Of 300 candidates, the {len(table.rows)} that were picked or came closest to it." in words_of(
        result, tmp_path
    )
    first = result.groups.names.index(table.rows[9][0])
    assert table.rows[9][1:] == [number(step.losses[first]) for step in result.path[1:]]


def test_the_code_does_it_again() -> None:
    case = cases.regression()
    code = Page(html_of("regression")).all("code")[-1]
    scope: dict[str, Any] = {"X": case.X, "y": case.y, "SSFN": SSFN}
    exec(code, scope)
    assert scope["selector"].order_.tolist() == case.selector.order_.tolist()
    assert code.endswith(f"# {case.selector.order_.tolist()}")


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


def test_a_result_from_a_file_gives_the_same_report(tmp_path: Path) -> None:
    cases.nasty().result.write(tmp_path / "result.json")
    result = Result.read(tmp_path / "result.json")
    (tmp_path / "result.json").unlink()
    assert written(result, tmp_path) == html_of("nasty")


def test_half_a_pair_of_surrogates_is_shown_as_its_escape(tmp_path: Path) -> None:
    """As JSON can hold it, wherever a result has texts that come from users."""
    result = cases.regression().result
    half = "half \ud800"
    asked = replace(result.asked, target=half, call=half, command=half, data=[half])
    features = replace(result.features, names=[f"{name} {half}" for name in result.features.names])
    result = replace(result, asked=asked, features=features)
    result.write(tmp_path / "result.json")
    write_report(Result.read(tmp_path / "result.json"), tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text("utf-8").count(r"half \ud800") > 5


def test_the_users_style_of_figures_changes_nothing(tmp_path: Path) -> None:
    from matplotlib import rc_context

    with rc_context({"axes.facecolor": "red", "font.size": 40, "lines.linewidth": 9, "svg.fonttype": "path"}):
        assert written(cases.regression().result, tmp_path) == html_of("regression")


def test_a_figure_follows_the_colours_of_the_page() -> None:
    svg = draw_svg(lambda ax: ax.plot([0, 1], color="#000000"), "a", "<t>", "d & e", 3, 2)
    assert "stroke: var(--ink)" in svg
    assert "#000000" not in svg
    assert '<title id="a-title">&lt;t&gt;</title><desc id="a-desc">d &amp; e</desc>' in svg
    assert 'style="max-width: 288px"' in svg
    assert "font-family" not in svg


def test_many_names_are_cut_short(tmp_path: Path) -> None:
    result = cases.regression().result
    html = words_of(replace(result, order=result.order * 5), tmp_path)
    answer = " ".join(Page(html).all("p", **{"class": "answer"})[0].split())
    assert answer.startswith("15 features, ")
    assert " and 7 more, predict 40 held-out rows" in answer


def test_the_path_says_what_became_of_each_step() -> None:
    result = cases.exchanges().result
    table = describe(result)["path"]
    assert table.header[:3] == ["Step", "Added or dropped", "Selected"]
    assert [(row[1], row[-1]) for row in table.rows] == [
        ("(constant prediction)", "yes"),
        ("add x3", "dropped in step 8"),
        ("add x4", "exchanged in step 7"),
        ("add x1", "yes"),
        ("add x2", "yes"),
        ("add x0", "yes"),
        ("add x6", "taken back"),
        ("swap x6 in, x4 out after step 5", "dropped in step 9"),
        ("drop x3", "yes"),
        ("drop x6", "yes"),
        ("add x8", "yes"),
        ("add x5", "taken back"),
    ]
    assert [int(row[2]) for row in table.rows] == [step.n_selected for step in result.path]


def test_a_path_of_additions_names_them_alone() -> None:
    table = describe(cases.regression().result)["path"]
    assert table.header[:3] == ["Step", "Added", "R² ± standard error"]
    assert [row[-1] for row in table.rows] == ["yes"] * 4 + ["taken back"] * (len(table.rows) - 4)
    assert len(table.rows) > 4
    assert all(" " not in row[1] for row in table.rows[1:])


def test_the_path_has_p_values_if_they_were_computed() -> None:
    asked, other = (describe(case.result)["path"] for case in (cases.regression(), cases.decoy()))
    place = asked.header.index("p-value")
    assert [row[place] for row in asked.rows][:2] == ["", "<0.001"]
    assert float(asked.rows[4][place]) > 0.01
    assert "p-value" not in other.header


def test_what_was_dropped_has_no_rank() -> None:
    result = cases.exchanges().result
    page = describe(result)
    assert [row[1] for row in page["ranking"].rows] == result.order
    drops = [place for place, step in enumerate(result.path) if step.action == "drop"]
    header = page["candidates"].header
    assert [place for place, text in enumerate(header) if text.endswith("(without it)")] == drops


def test_it_says_what_became_of_the_runner_up() -> None:
    result = cases.digits().result
    picked = {step.group: place for place, step in enumerate(result.path)}
    for step, row in zip(result.path[1:], describe(result)["calls"]["table"].rows, strict=True):
        later = picked.get(step.runner_up)
        assert row[7] == ("passed over" if later is None else f"picked in step {later}")


def test_the_runner_up_of_an_exchange_is_replaced() -> None:
    rows = {row[0]: row for row in describe(cases.exchanges().result)["calls"]["table"].rows}
    assert rows["7"][1:3] == ["x6", "x4"]
    assert rows["7"][7] == "replaced"
    assert rows["1"][7] == "picked in step 2"  # and exchanged later
    assert rows["3"][7] == "passed over"
    assert "11" not in rows  # it was taken back
