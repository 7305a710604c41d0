"""The shape of a result's document: the page names its fields, and files of another shape are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import report_cases as cases

from ngp.report.result import Result
from ngp.report.result_schema import check_document, field_names

SCHEMA_PAGE = Path(__file__).parents[1] / "docs" / "result-schema.md"


def names_in(value: Any, prefix: str = "") -> Iterator[str]:
    """Dotted names of all fields in a document; parameters belong to the user."""
    if isinstance(value, list):
        for item in value:
            yield from names_in(item, f"{prefix}[]")
    if isinstance(value, dict):
        for name, part in value.items():
            dotted = f"{prefix}.{name}" if prefix else name
            yield dotted
            if dotted != "asked.parameters":
                yield from names_in(part, dotted)


def test_fields_of_the_documents_and_of_the_page_agree() -> None:
    documented = re.findall(r"^\| `([^`]+)`", SCHEMA_PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(documented) == len(set(documented))
    written = {field for case in cases.CASES.values() for field in names_in(case().document())}
    assert set(documented) == written == set(field_names())


def test_what_was_written_passes_the_check() -> None:
    for case in cases.CASES.values():
        check_document(case().document())


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"frequencies": [0.5]}, "stability.frequencies must be a list of length 6"),
        ({"stable": [6]}, "groups.names must be long enough"),
        ({"stand_ins": [{"groups": [0, 9], "correlation": -1.0}]}, "groups.names must be long enough"),
        (
            {"stand_ins": [{"groups": [0], "correlation": -1.0}]},
            "groups must be a list of length 2",
        ),
    ],
)
def test_a_stability_that_does_not_fit_is_refused(part: dict[str, Any], message: str) -> None:
    whole = cases.halved().document()
    check_document(whole)
    whole["stability"] |= part
    with pytest.raises(ValueError, match=message):
        check_document(whole)


def broken(change: Callable[[dict[str, Any]], Any]) -> Callable[[], str]:
    """A document that was changed by hand, made when it is needed."""

    def make() -> str:
        changed = cases.digits().document()
        change(changed)
        return json.dumps(changed)

    return make


BROKEN: dict[str, tuple[str | Callable[[], str], str]] = {
    "it is empty": ("", "is no JSON: "),
    "it is cut": ('{"schema": "ngp', "is no JSON: "),
    "it has a token of its own": ('{"schema": NaN}', "is no JSON: it has NaN, which JSON doesn't know"),
    "it is a list": ("[1]", "it is no result of ngp, which would say ngp-result/1"),
    "it is something else": ('{"schema": "other/1"}', "it is no result of ngp"),
    "its version is no number": ('{"schema": "ngp-result/x"}', "it is no result of ngp"),
    "it is newer": (broken(lambda d: d.update(schema="ngp-result/2")), "its schema ngp-result/2 is newer than"),
    "a part is missing": (broken(lambda d: d.pop("fit")), "it lacks the field fit"),
    "a field is missing": (broken(lambda d: d["path"][1].pop("loss")), r"it lacks the field path\[\]\.loss"),
    "a field is of a wrong kind": (broken(lambda d: d["asked"].update(task=1)), r"asked\.task must be text"),
    "a list holds something else": (
        broken(lambda d: d["answer"]["order"].append("x")), r"answer\.order must be a list of a whole number",
    ),
    "a list is none": (broken(lambda d: d.update(path=3)), "path must be a list"),
    "an object is none": (broken(lambda d: d.update(answer=[])), "answer must be an object"),
    "a list is too short": (broken(lambda d: d["path"][1]["losses"].pop()), r"path\[\]\.losses .* a list of length 16"),
    "there is no such group": (broken(lambda d: d["answer"]["order"].append(99)), "long enough for all groups in use"),
    "there is no such column": (broken(lambda d: d["features"]["fixed"].append(99)), "long enough for all columns"),
    "the path is empty": (broken(lambda d: d.update(path=[])), "path must be at least the start"),
    "the matrix isn't square": (broken(lambda d: d["fit"]["confusion"]["counts"].pop()), "a square, one row a class"),
    "the image is of another shape": (broken(lambda d: d["image"]["ranks"].pop()), "must be of the image's shape"),
    "the image has no shape": (broken(lambda d: d["image"].update(shape=[64])), "two or three positive numbers"),
    "the points don't match": (
        broken(lambda d: d["fit"].update(scatter={"output": 0, "truth": [1.0], "predicted": []})),
        "as many truths as predictions",
    ),
    "it is nested too deeply": ("[" * 100_000, "it is nested too deeply|is no JSON"),
}  # fmt: skip


@pytest.mark.parametrize("reason", BROKEN)
def test_a_file_that_is_no_result_is_refused(reason: str, tmp_path: Path) -> None:
    made, message = BROKEN[reason]
    text = made if isinstance(made, str) else made()
    file = tmp_path / "result.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        Result.read(file)
    assert str(caught.value).startswith(str(file))
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes('{"schema": "é"}'.encode("latin-1"))
    with pytest.raises(ValueError, match="is no JSON"):
        Result.read(tmp_path / "latin.json")
    with pytest.raises(ValueError, match=r"can't be read: is a directory\."):
        Result.read(tmp_path)
    with pytest.raises(ValueError, match=r"can't be read: no such file or directory\."):
        Result.read(tmp_path / "missing.json")
