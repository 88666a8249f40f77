from __future__ import annotations

import subprocess
import sys

import pytest

import linnet


@pytest.mark.parametrize("name", linnet.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(linnet, name).__name__ == name
    assert name in dir(linnet)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        linnet.Nonsense  # noqa: B018


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, linnet; print([name for name in sys.modules if name[:6] in ('linnet', 'asynci')])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "['linnet']"
