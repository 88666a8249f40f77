from __future__ import annotations

import pytest

from linnet.cli.exits import Failure
from linnet.cli.simulating import progress_bar, simulation


def test_a_missing_extra_is_named() -> None:
    with pytest.raises(Failure, match=r"needs scipy.sparse.*pip install 'linnet\[sim\]'"), simulation():
        raise ModuleNotFoundError("No module named 'scipy.sparse'", name="scipy.sparse")


def test_another_missing_module_is_a_bug() -> None:
    with pytest.raises(ModuleNotFoundError), simulation():
        raise ModuleNotFoundError("No module named 'linnet.nothing'", name="linnet.nothing")


@pytest.mark.parametrize("quiet", [True, False])
def test_nothing_is_drawn_where_nobody_watches(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar(quiet) as progress:
        progress(0.5, "half of it")
    assert capsys.readouterr() == ("", "")
