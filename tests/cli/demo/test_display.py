from __future__ import annotations

import re

import pytest

from linnet.cli.demo.display import display
from linnet.cli.demo.story import Plan

PLAN = Plan(3, 60, 1)


def test_where_nobody_watches_it_tells_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with display(PLAN, quiet=False) as (tell, progress):
        tell("something happened")
        progress(30, 90)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r" +\d+\.\d s  something happened\n", err)


def test_for_programs_it_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with display(PLAN, quiet=True) as (tell, progress):
        tell("something happened")
        progress(30, 90)
    assert capsys.readouterr() == ("", "")
