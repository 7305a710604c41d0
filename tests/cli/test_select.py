"""``ngp select`` does what its help says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import report_cases as cases
from sklearn.datasets import load_diabetes
from sklearn.model_selection import TimeSeriesSplit

from ngp import NeuralGreedyPursuit
from ngp._formatting import step_in_words
from ngp.cli.select import select as select_command
from ngp.greedy.checkpoint import Checkpoint
from ngp.report.result import Result

Call = Callable[..., Any]


def answer(
    call: Call, *options: str, data: str = "houses.csv", target: str = "price", **settings: Any
) -> dict[str, Any]:
    """The result as a script gets it."""
    result = call("select", data, "--target", target, "--json", *options, **settings)
    assert result.exit_code == 0, (result.output, result.exception)
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_finds_what_matters_and_says_so(houses: pd.DataFrame, call: Call) -> None:
    result = call("select", "houses.csv", "--target", "price")
    assert result.exit_code == 0
    first, *steps = result.stderr.splitlines()
    assert first == (
        "houses.csv: 80 rows, 5 columns (1 of text, one-hot as groups: town) to select from; "
        "target 'price': regression, since it holds fractions (--task overrides)."
    )
    assert steps[0].startswith("step 0  (constant prediction)  R² 0.000  loss ")
    assert [line.split("  ")[1] for line in steps[1:3]] == ["add town", "add size"]
    assert " ± " in steps[1]
    assert re.search(r"  R² 0\.\d{3} ± 0\.\d{3}  loss .* \(−\d\d\.\d%\)  p <0.001$", steps[1])
    selected, header, *evidence, score, why, taken_back = result.stdout.splitlines()
    assert header.split() == ["importance", "p-value"]
    for name, line in zip(["town", "size"], evidence, strict=True):
        assert re.fullmatch(rf"  {name}  \d\d\.\d ± \d+\.\d%   <0\.001", line)
    assert re.fullmatch(r"In cross-validation: R² \d\.\d{3} ± 0\.\d{3} \(all columns: \d\.\d{3}\)\.", score)
    assert selected == "Selected 2 of 5 features, most important first: town, size."
    assert why.startswith("Why it stopped: the last 3 steps are not significant, p = 0.")
    assert taken_back.startswith("Tried and taken back: ")


def test_the_answer_is_that_of_the_selector(houses: pd.DataFrame, call: Call) -> None:
    X = houses.drop(columns="price").astype({"town": "category"})
    selector = NeuralGreedyPursuit(n_features_to_select=3, cv=3, random_state=7).fit(X, houses["price"].to_numpy())
    found = answer(call, "--features", "3", "--cv", "3", "--seed", "7")
    assert found["order"] == [X.columns[column] for column in selector.order_]
    assert [step["loss"] for step in found["path"]] == pytest.approx([step.loss for step in selector.path_])


def test_halves_of_the_rows_say_how_stable_it_is(houses: pd.DataFrame, call: Call) -> None:
    result = call("select", "houses.csv", "--target", "price", "--features", "2", "--resamples", "4")
    assert result.exit_code == 0, result.output
    assert "\nSelected on three quarters of the 4 halves of the rows: " in result.stdout
    assert answer(call, "--features", "2", "--resamples", "4")["stability"]["n_halves"] == 4
    odd = call("select", "houses.csv", "--target", "price", "--resamples", "3")
    assert odd.exit_code == 2
    assert "--resamples 3 is odd, but halves come in pairs: give an even number." in odd.stderr


def n_tried(step: dict[str, Any]) -> int:
    return sum(loss is not None for loss in step["losses"])


def test_screening_leaves_candidates_out(houses: pd.DataFrame, call: Call) -> None:
    path = answer(call, "--features", "2", "--screen", "2")["path"]
    assert [n_tried(step) for step in path] == [0, 2, 2]
    assert [n_tried(step) for step in answer(call, "--features", "2", "--screen", "auto")["path"]] == [0, 5, 4]


@pytest.fixture
def decoy(folder: Path) -> NeuralGreedyPursuit:
    """A table whose last column is the target, saved as decoy.npy, and a selector that was fitted to it."""
    case = cases.decoy()
    np.save("decoy.npy", np.column_stack([case.X, case.y]))
    return case.selector


def test_floating_says_what_it_dropped(decoy: NeuralGreedyPursuit, call: Call) -> None:
    result = call("select", "decoy.npy", "--target", "-1", "--tol", "0.05", "--floating")
    assert result.exit_code == 0, result.output
    names = ", ".join(f"x{group}" for group in decoy.order_)
    assert f"Selected 4 of 12 features, most important first: {names}." in result.stdout
    assert f"\nDropped on the way: x4.\nTried and taken back: {decoy.path_[-1].name}." in result.stdout
    words = [step_in_words(step, decoy.path_) for step in decoy.path_[1:]]
    assert words[5] == "drop x4"
    assert [line.split("  ")[:2] for line in result.stderr.splitlines()[2:]] == [
        [f"step {number}", word] for number, word in enumerate(words, 1)
    ]


def test_a_run_goes_on_with_the_numbers_of_its_steps(decoy: NeuralGreedyPursuit, call: Call, folder: Path) -> None:
    options = ["select", "decoy.npy", "-t", "-1", "--tol", "0.05", "--floating", "--checkpoint", "state.npz"]
    whole = call(*options).stderr.splitlines()[1:]
    drop = next(number for number, step in enumerate(decoy.path_) if step.action == "drop")
    saved = Checkpoint.read(folder / "state.npz")
    assert saved is not None
    replace(saved, steps=saved.steps[: drop + 1]).write(folder / "state.npz")  # as if it had been killed then
    rest = call(*options).stderr.splitlines()[1:]
    assert rest[0].startswith(f"step {drop + 1}  ")
    assert [line.split("  ")[:2] for line in rest] == [line.split("  ")[:2] for line in whole[drop + 1 :]]


@pytest.mark.parametrize(("cut", "stop"), [("significant", "auto"), ("best", "plateau")])
def test_rules_that_stop_by_themselves(cut: str, stop: str, houses: pd.DataFrame, call: Call) -> None:
    found = answer(call, "--cut", cut)
    assert found["asked"]["parameters"]["stop"] == stop
    assert found["order"][:2] == ["town", "size"]
    with_limit = answer(call, "--cut", cut, "--features", "1")
    assert with_limit["order"] == ["town"]


def test_the_other_cut_is_offered(folder: Path, call: Call) -> None:
    load_diabetes(as_frame=True).frame.to_csv("diabetes.csv", index=False)
    options = ["select", "diabetes.csv", "-t", "target"]
    significant, best = call(*options).stdout.splitlines(), call(*options, "--cut", "best").stdout.splitlines()
    text = "5 features are beyond chance; 4 predict about as well as any number (R² 0.489 ± 0.031, all columns 0.509)"
    assert significant[8] == f"{text}: --cut best."
    assert best[7] == f"{text}: --cut significant."
    assert [best[0], best[6]] == [
        "Selected 4 of 10 features, most important first: bmi, s5, bp, sex.",
        "In cross-validation: R² 0.489 ± 0.031 (all columns: 0.509).",
    ]


def test_p_values_of_all_columns(houses: pd.DataFrame, call: Call) -> None:
    lines = call("select", "houses.csv", "-t", "price", "--p-values", "all").stdout.splitlines()
    found = {line.split()[0]: line.split()[-1] for line in lines[2:7]}
    assert found.keys() == {*houses.columns} - {"price"}
    assert found["town"] == found["size"] == "<0.001"
    assert all(float(p) > 0.01 for name, p in found.items() if name not in ("town", "size"))


def test_no_other_cut_is_offered_where_the_number_is_given(houses: pd.DataFrame, call: Call) -> None:
    result = call("select", "houses.csv", "-t", "price", "--features", "1")
    assert "beyond chance" not in result.stdout


@pytest.mark.parametrize("options", [[], ["--features", "2"]])
def test_what_only_works_together_is_found(options: list[str], folder: Path, call: Call) -> None:
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(200, 6)), rng.normal(size=200)
    np.save("pair.npy", np.column_stack([X, np.sign(X[:, 1] * X[:, 4]) * 1.5 + 0.1 * noise]))
    found = answer(call, *options, data="pair.npy", target="-1")
    assert sorted(found["order"]) == ["x1", "x4"]


def test_quiet_and_json_keep_standard_output_clean(houses: pd.DataFrame, call: Call) -> None:
    options = ["select", "houses.csv", "-t", "price", "--features", "1"]
    quiet = call(*options, "--quiet")
    assert (quiet.exit_code, quiet.output) == (0, "")
    both = call(*options, "-q", "--json")
    assert both.stderr == ""
    assert json.loads(both.stdout)["schema"].startswith("ngp-result/")


def test_writes_what_was_asked_for(houses: pd.DataFrame, call: Call, folder: Path) -> None:
    options = ["--features", "2", "--out", "out.json", "--reduced", "few.csv", "--checkpoint", "state.npz"]
    result = call("select", "houses.csv", "-t", "price", *options)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-2:] == ["  out.json", "  few.csv"]
    assert Result.read(folder / "out.json").order == ["town", "size"]
    pd.testing.assert_frame_equal(
        pd.read_csv(folder / "few.csv"), houses[["size", "town", "price"]], check_dtype=False, check_exact=True
    )
    # The same command again takes its steps from the checkpoint, and ends with the same.
    again = call("select", "houses.csv", "-t", "price", *options)
    assert "step" not in again.stderr
    assert again.stdout == result.stdout


@pytest.mark.parametrize("suffix", [".tsv", ".parquet", ".feather"])
def test_reduced_data_can_be_read_again(suffix: str, houses: pd.DataFrame, call: Call) -> None:
    options = ["--drop", "town", "--features", "1", "--reduced", f"few{suffix}", "-q"]
    assert call("select", "houses.csv", "-t", "price", *options).exit_code == 0
    found = answer(call, "--features", "1", data=f"few{suffix}")
    assert found["features"]["names"] == ["size"]
    assert found["asked"]["n_samples"] == 80


def test_reduced_data_are_as_they_were(houses: pd.DataFrame, call: Call, folder: Path) -> None:
    houses.loc[3, "size"] = None
    houses.to_csv(folder / "gaps.csv", index=False)
    options = ["--missing", "drop", "--features", "2", "--reduced", "few.parquet"]
    assert call("select", "gaps.csv", "-t", "price", *options).exit_code == 0
    few = pd.read_parquet(folder / "few.parquet")
    pd.testing.assert_frame_equal(few, houses[["size", "town", "price"]], check_dtype=False)


@pytest.mark.parametrize(
    ("target", "options", "task", "why"),
    [
        ("price", [], "regression", "since it holds fractions"),
        ("town", [], "classification", "since it is text with 3 different values"),
        ("garden", [], "classification", "since it is true or false with 2 different values"),
        ("rooms", [], "classification", "since it holds whole numbers with 8 different values"),
        ("rooms", ["--task", "regression"], "regression", "as --task says"),
        ("rooms", ["--task", "classification"], "classification", "as --task says (8 classes)"),
    ],
)
def test_tasks(target: str, options: list[str], task: str, why: str, houses: pd.DataFrame, call: Call) -> None:
    result = call("select", "houses.csv", "-t", target, "--features", "1", "--json", *options)
    assert f"target '{target}': {task}, {why}" in result.stderr
    assert json.loads(result.stdout)["asked"]["task"] == task


def test_whole_numbers_can_be_quantities(folder: Path, call: Call) -> None:
    pd.DataFrame({"a": np.arange(60.0) ** 2, "y": np.arange(60)}).to_csv("data.csv", index=False)
    result = call("select", "data.csv", "-t", "y")
    assert "regression, since it holds 60 different whole numbers" in result.stderr


def test_several_targets(houses: pd.DataFrame, call: Call) -> None:
    houses.assign(other=houses["size"] ** 2).to_csv("two.csv", index=False)
    result = call("select", "two.csv", "-t", "price", "-t", "other", "--features", "2", "--json")
    assert "target 'price', 'other': regression, since there are 2 targets" in result.stderr
    assert json.loads(result.stdout)["asked"]["target"] == "price, other"


def test_columns_that_are_fixed_or_dropped(houses: pd.DataFrame, call: Call) -> None:
    result = call("select", "houses.csv", "-t", "price", "--fixed", "noise", "--drop", "town", "--features", "2")
    assert "4 columns to select from" in result.stderr
    assert "step 0  (fixed columns)" in result.stderr
    assert "Selected 1 of 4 features beside the fixed noise, most important first: size." in result.stdout


def test_groups(houses: pd.DataFrame, call: Call, folder: Path) -> None:
    (folder / "groups.json").write_text(json.dumps({"building": ["size", "rooms"]}))
    found = answer(call, "--groups", "groups.json", "--features", "2")
    assert sorted(found["order"]) == ["building", "town"]
    assert set(found["groups"]["names"]) == {"building", "town", "garden", "noise"}


def test_arrays_and_their_column_numbers(folder: Path, call: Call) -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    np.save("data.npy", np.column_stack([X, X[:, 1] ** 2]))
    found = answer(call, "--drop", "0", data="data.npy", target="-1")
    assert found["order"] == ["x1"]
    assert found["features"]["names"] == ["x1", "x2", "x3"]


def test_standard_input(houses: pd.DataFrame, call: Call, folder: Path) -> None:
    found = answer(call, "--features", "2", data="-", stdin=(folder / "houses.csv").read_bytes())
    assert found["order"] == ["town", "size"]


def test_rows_that_are_held_out(houses: pd.DataFrame, call: Call) -> None:
    options = ["select", "houses.csv", "-t", "price", "--features", "2", "--hold-out", "0.25"]
    result = call(*options)
    assert "houses.csv: 60 rows to learn from and 20 held out" in result.stderr
    assert "On the 20 rows held out: R² 1.000." in result.stdout
    found = json.loads(call(*options, "--json").stdout)
    assert found["asked"]["n_samples"] == 60
    assert found["fit"]["n_rows"] == 20
    other = json.loads(call(*options, "--json", "--seed", "1").stdout)
    assert other["path"][0]["loss"] != found["path"][0]["loss"]


def test_later_rows_are_predicted_from_earlier_ones(houses: pd.DataFrame, call: Call) -> None:
    houses.assign(sold=pd.date_range("2024-01-01", periods=80)).to_csv("sold.csv", index=False)
    found = call("select", "sold.csv", "-t", "price", "--features", "2", "--cv", "time", "--hold-out", "0.2", "--json")
    assert found.exit_code == 0, found.output
    assert "Rows are in the order of 'sold', for --cv time." in found.stderr
    X = houses.drop(columns="price").astype({"town": "category"}).assign(sold=np.arange(80.0))[:64]
    selector = NeuralGreedyPursuit(n_features_to_select=2, cv=TimeSeriesSplit(5), random_state=0)
    losses = [step.loss for step in selector.fit(X, houses["price"][:64]).path_]
    assert [step["loss"] for step in json.loads(found.stdout)["path"]] == pytest.approx(losses)
    caution = call("select", "sold.csv", "-t", "price", "--features", "1").stderr
    assert "if the future is to be predicted from the past, say --cv time." in caution


def test_rows_of_a_group_stay_together(folder: Path, call: Call) -> None:
    # Each patient has an answer of its own and a fingerprint in b: nothing tells of other patients.
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(12), 8)
    frame = pd.DataFrame({"who": who, "b": rng.normal(size=12)[who], "y": rng.normal(size=12)[who]})
    frame["b"] += 1e-3 * rng.normal(size=len(who))
    frame.to_csv("patients.csv", index=False)
    options = ["--drop", "who", "--features", "1"]
    rows = answer(call, *options, data="patients.csv", target="y")["path"]
    groups = answer(call, *options, "--cv-groups", "who", data="patients.csv", target="y")["path"]
    assert rows[1]["loss"] < 0.5 * rows[0]["loss"]
    assert groups[1]["loss"] > 0.9 * groups[0]["loss"]
    dry = call("select", "patients.csv", "-t", "y", *options, "--cv-groups", "who", "--dry-run", "--resamples", "2")
    assert dry.exit_code == 0, dry.output
    halves = call("select", "patients.csv", "-t", "y", *options, "--cv-groups", "who", "--resamples", "2")
    assert halves.exit_code == 0, halves.output


def test_reduced_text_stays_as_it_was(houses: pd.DataFrame, call: Call, folder: Path) -> None:
    houses.assign(size=[f"{size:09.2f}" for size in houses["size"]]).to_csv("codes.csv", index=False)
    assert call("select", "codes.csv", "-t", "price", "--features", "2", "--reduced", "few.csv", "-q").exit_code == 0
    before, after = (pd.read_csv(name, dtype=str) for name in ("codes.csv", "few.csv"))
    pd.testing.assert_frame_equal(after, before[["size", "town", "price"]])
    assert after["size"].str.startswith("00").all()


def test_names_that_break_things(houses: pd.DataFrame, call: Call, folder: Path) -> None:
    names = {"size": "two\nlines", "town": "<script>alert(1)</script>", "noise": "\x1b[31mred", "garden": "[bold]x[/]"}
    houses.rename(columns=names).to_csv("odd.csv", index=False)
    result = call("select", "odd.csv", "-t", "price", "--features", "4", "--out", "out.json", "--reduced", "few.csv")
    assert result.exit_code == 0
    assert "\x1b" not in result.output
    assert "two\\nlines" in result.stdout
    assert "<script>alert(1)</script>" in Result.read(folder / "out.json").order
    assert "two\nlines" in pd.read_csv("few.csv").columns


def test_columns_that_count_the_rows(houses: pd.DataFrame, call: Call) -> None:
    houses.to_csv("index.csv")  # pandas writes the row numbers without a name
    result = call("select", "index.csv", "-t", "price", "--features", "1")
    assert "Left out the column without a name, which only counts the rows." in result.stderr
    assert "Selected 1 of 5 features" in result.stdout
    houses[["price"]].to_csv("index.csv")  # nothing else to select from
    result = call("select", "index.csv", "-t", "price", "--features", "1")
    assert "Left out" not in result.stderr
    assert "Note: 'Unnamed: 0' only counts the rows" in result.stderr
    assert "most important first: Unnamed: 0." in result.stdout
    houses.assign(id=range(1, 81)).to_csv("index.csv", index=False)
    result = call("select", "index.csv", "-t", "price", "--features", "1")
    assert "Note: 'id' only counts the rows; if it is no measurement, leave it out with --drop id." in result.stderr
    assert "Selected 1 of 6 features" in result.stdout


def test_warnings_of_the_selector_are_notes(houses: pd.DataFrame, call: Call) -> None:
    houses.assign(same=1).to_csv("same.csv", index=False)
    result = call("select", "same.csv", "-t", "price", "--features", "1")
    assert "Note: X has constant features, 1 of 6 (same): they are never selected." in result.stderr
    noise = pd.DataFrame(np.random.default_rng(1).normal(size=(50, 2)), columns=["a", "y"])
    noise.to_csv("noise.csv", index=False)
    result = call("select", "noise.csv", "-t", "y", "--tol", "0.5")
    assert result.exit_code == 0
    assert "Selected none of 1 feature: no column pays." in result.stdout


def test_jobs_do_not_change_the_result(houses: pd.DataFrame, call: Call) -> None:
    default, other = (answer(call, "--features", "2", *options) for options in (["--jobs", "1"], ["--jobs", "2"]))
    assert [step["loss"] for step in default["path"]] == [step["loss"] for step in other["path"]]


def test_report(houses: pd.DataFrame, call: Call, folder: Path) -> None:
    options = ["select", "houses.csv", "-t", "price", "--features", "2"]
    result = call(*options, "--report", "one.html", "--out", "out.json")
    assert result.exit_code == 0, result.output
    assert "<html" in (folder / "one.html").read_text(encoding="utf-8")
    made = call("report", "out.json")
    assert made.exit_code == 0
    assert made.stdout == "Report: out.html\n"
    assert (folder / "out.html").read_text(encoding="utf-8") == (folder / "one.html").read_text(encoding="utf-8")
    document = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    document["features"]["names"].clear()
    (folder / "out.json").write_text(json.dumps(document), encoding="utf-8")
    refused = call("report", "out.json")
    assert refused.exit_code == 2
    assert refused.stderr == "Error: out.json is a damaged result, whose parts don't fit together: select again.\n"


def test_every_option_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    for parameter in select_command.params:
        assert max(parameter.opts, key=len) in page or parameter.name == "data", parameter.name
        assert parameter.name == "data" or getattr(parameter, "help", None)


def test_a_dry_run_says_what_it_would_cost_and_writes_nothing(houses: pd.DataFrame, call: Call, folder: Path) -> None:
    before = sorted(folder.iterdir())
    files = ["--out", "out.json", "--report", "out.html", "--reduced", "few.csv", "--checkpoint", "state.npz"]
    options = ["select", "houses.csv", "-t", "price", "--features", "2", "--jobs", "1", "--dry-run", *files]
    result = call(*options)
    assert result.exit_code == 0
    assert " for 2 steps with 9 fits on the cpu, and about " in result.stdout
    assert "step" not in result.stderr
    assert call(*options, "--quiet").output == ""
    found = json.loads(call(*options, "--json", "--quiet").stdout)
    assert (found["n_steps"], found["n_fits"], len(found["seconds"])) == ([2, 2], [9, 9], 2)
    assert sorted(folder.iterdir()) == before


def test_a_dry_run_refuses_what_a_run_refuses(houses: pd.DataFrame, call: Call) -> None:
    options = ["select", "houses.csv", "-t", "price", "--features", "9"]
    dry, real = call(*options, "--dry-run"), call(*options)
    assert dry.exit_code == real.exit_code == 2
    assert dry.stderr == real.stderr
    assert "--features" in dry.stderr
