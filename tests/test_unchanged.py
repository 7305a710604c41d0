"""The answers of small fits over all that a selector can do: nothing may change them unnoticed."""

from __future__ import annotations

import json

import numpy as np
import pytest
import unchanged_fits

SAVED = json.loads(unchanged_fits.FILE.read_text("utf-8"))


@pytest.mark.parametrize("name", unchanged_fits.FITS)
def test_a_fit_answers_as_before(name: str) -> None:
    if {"mlp", "cnn"} & {name.partition(",")[0]}:
        pytest.importorskip("torch")
    found = unchanged_fits.answer(name)
    assert found.keys() == SAVED[name].keys()
    for what, expected in SAVED[name].items():
        if isinstance(np.ravel(expected)[0] if len(expected) else 0, float):
            # Losses have single precision, and other processors round otherwise.
            np.testing.assert_allclose(found[what], expected, rtol=1e-4, atol=1e-5, err_msg=what)
        else:
            assert found[what] == expected, what
