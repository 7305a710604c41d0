"""Options take what their help says, and nothing makes the parser stumble."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ngp.cli import cli, options


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("1.5h", 5400), ("90", 90), (" 2 m ", 120)])
def test_durations(text: str, seconds: float) -> None:
    assert options.duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0m", "-1s", "1d", "inf", "1,5h", "٣s"])
def test_no_durations(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is no duration above zero: write 30s, 10m or 1\.5h"):
        options.duration(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no name of a file: give one"),
        ("a\0b", "is no name of a file: give one"),
        ("x" * 5000, "'x{60}'… is too long for the name of a file: give another"),
    ],
)
def test_no_files(text: str, message: str) -> None:
    for kind in (options.file, options.data):
        with pytest.raises(click.BadParameter, match=message):
            kind(text)


@pytest.mark.parametrize("text", ["", "1", "-5", "1.0", "nan"])
def test_no_validation(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no way of validation: give a number of folds"):
        options.validation(text)


@pytest.mark.parametrize("text", ["", "0", "1.5", "٣"])
def test_no_screening(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no number of candidates: give one from 1 on, or auto"):
        options.screening(text)


@given(st.text() | st.from_regex(r"[0-9.]{1,8}\s?[a-z]{0,2}", fullmatch=True))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        seconds = options.duration(text)
    except click.BadParameter:
        return
    assert isfinite(seconds)
    assert seconds > 0


@given(st.text() | st.floats().map(str) | st.integers().map(str))
def test_any_text_is_a_validation_or_refused(text: str) -> None:
    try:
        found = options.validation(text)
    except click.BadParameter:
        return
    assert (
        found in ("loo", "time", "auto")
        or (isinstance(found, int) and found >= 2)
        or (isinstance(found, float) and 0 < found < 1)
    )


@given(st.text() | st.floats().map(str))
def test_any_text_is_a_share_or_refused(text: str) -> None:
    try:
        found = options.share(text)
    except click.BadParameter:
        return
    assert 0 < found < 1


@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_every_share_is_taken(share: float) -> None:
    assert options.share(repr(share)) == options.validation(repr(share)) == share


OPTIONS = [
    *("--target", "-t", "--features", "--tol", "--predictor", "--groups", "--fixed", "--drop", "--task", "--missing"),
    *("--hold-out", "--cv", "--seed", "--jobs", "--device", "--max-time", "--screen", "--checkpoint"),
    *("--out", "--report", "--reduced", "--quiet", "-q", "--json", "--methods", "--runs", "--fast", "--", "-"),
]
WORDS = st.sampled_from(["select", "compare", "report", *OPTIONS, "y", "a", "5", "0.2", "loo", "10m"])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    command=st.sampled_from(["select", "compare", "report"]),
    words=st.lists(WORDS | st.text(max_size=8), max_size=8),
)
def test_any_options_end_in_a_sentence(command: str, words: list[str], folder: Path) -> None:
    # The data are not there, so that nothing is run: whatever the options say, it ends with a refusal.
    result = CliRunner().invoke(cli, [command, *words], input="")
    told = result.exit_code == 0 and "Usage: " in result.stdout
    assert told or (result.exit_code == 2 and result.stderr.startswith(("Error: ", "Usage: "))), result.output
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
