from __future__ import annotations

import pytest

from linnet.cli.progress_bar import counting_bar


@pytest.mark.parametrize("quiet", [True, False])
def test_nothing_is_drawn_where_nobody_watches(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with counting_bar("reading", quiet) as progress:
        progress(1, 2)
    assert capsys.readouterr() == ("", "")
