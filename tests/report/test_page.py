"""Words and tables of the report say what became of steps and runners-up."""

from __future__ import annotations

from dataclasses import replace

import pytest
import report_cases as cases

from ngp.report.page import describe


def test_many_names_are_cut_short() -> None:
    result = cases.many().result
    assert len(result.answer["names"]) == 7
    longer = replace(result, answer=result.answer | {"names": result.answer["names"] * 2})
    answer = describe(longer)["answer"]
    assert (len(answer["names"]), answer["n_more"], answer["count"]) == (8, 6, "14 features")


def test_the_path_says_what_became_of_each_step() -> None:
    result = cases.exchanges().result
    table = describe(result)["path"]
    assert table.header[:3] == ["Step", "Added or dropped", "Selected"]
    assert [(row[1], row[-1]) for row in table.rows] == [
        ("constant prediction", "yes"),
        ("x3 added", "dropped in step 8"),
        ("x4 added", "exchanged in step 7"),
        ("x1 added", "yes"),
        ("x2 added", "yes"),
        ("x0 added", "yes"),
        ("x6 added", "taken back"),
        ("x6 instead of x4", "dropped in step 9"),
        ("x3 dropped", "yes"),
        ("x6 dropped", "yes"),
        ("x8 added", "yes"),
        ("x5 added", "taken back"),
    ]
    assert [int(row[2]) for row in table.rows] == [step["n_selected"] for step in result.path]
    assert "the gain of an exchange is that of what came in" in table.caption


def test_a_path_of_additions_names_them_alone() -> None:
    table = describe(cases.regression().result)["path"]
    assert table.header[:3] == ["Step", "Added", "Loss"]
    assert [row[-1] for row in table.rows] == ["yes"] * 4 + ["taken back"]
    assert all(" " not in row[1] for row in table.rows[1:])


def test_the_path_says_how_probable_gains_are_by_chance_where_somebody_asked() -> None:
    asked, other = (describe(case.result)["path"] for case in (cases.regression(), cases.categories()))
    place = asked.header.index("By chance")
    assert [row[place] for row in asked.rows][:2] == ["", "<0.001"]
    assert float(asked.rows[-1][place]) > 0.01
    assert "By chance" not in other.header


@pytest.mark.parametrize("name", list(cases.FLOATING))
def test_what_was_dropped_has_no_rank(name: str) -> None:
    result = cases.FLOATING[name]().result
    page = describe(result)
    assert [row[1] for row in page["ranking"].rows] == result.answer["names"] == page["answer"]["names"]
    drops = [number for number, step in enumerate(result.path) if step["action"] == "drop"]
    header = page["candidates"].header
    assert [place for place, text in enumerate(header) if text.endswith("(without it)")] == drops


def test_it_says_what_became_of_the_runner_up() -> None:
    result = cases.digits().result
    picked = {step["group"]: number for number, step in enumerate(result.path)}
    for step, row in zip(result.path[1:], describe(result)["calls"]["table"].rows, strict=True):
        later = picked.get(step["runner_up"])
        assert row[7] == ("passed over" if later is None else f"picked in step {later}")


def test_the_runner_up_of_an_exchange_is_replaced() -> None:
    rows = {row[0]: row for row in describe(cases.exchanges().result)["calls"]["table"].rows}
    assert rows["7"][1:3] == ["x6", "x4"]
    assert rows["7"][7] == "replaced"
    assert rows["1"][7] == "picked in step 2"  # and exchanged later
    assert rows["11"][7] == "passed over"
