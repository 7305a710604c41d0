"""What `import ngp` offers, and when it is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ngp


def test_every_public_name_is_there() -> None:
    assert set(ngp.__all__) <= set(dir(ngp))
    assert all(hasattr(ngp, name) for name in ngp.__all__)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="module 'ngp' has no attribute 'Pursuit'"):
        ngp.Pursuit  # noqa: B018


def test_what_takes_long_to_import_waits_until_it_is_asked_for() -> None:
    code = "import sys, ngp; print('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_an_import_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise AttributeError("no attribute 'Tensor'")

    monkeypatch.setattr(ngp, "import_module", fail)
    monkeypatch.delitem(vars(ngp), "compare", raising=False)
    with pytest.raises(ImportError, match=r"ngp.compare can't be imported: no attribute 'Tensor'"):
        ngp.compare  # noqa: B018
