from __future__ import annotations

import pytest
from tests.cli.shell import Linnet

from linnet.cli.running_node import stream_name
from linnet.core.errors import BadText
from linnet.node.home import HomeError


def test_own_streams_are_named_for_their_person(shell: Linnet) -> None:
    person = shell.json("init")["person"]
    assert stream_name("me/diary", shell.home) == f"{person}/diary"
    assert stream_name("weather", shell.home) == "weather"
    assert stream_name("men/diary", shell.home) == "men/diary"


def test_without_a_home_nobody_is_me(shell: Linnet) -> None:
    with pytest.raises(HomeError, match="linnet init"):
        stream_name("me/diary", shell.home)
    with pytest.raises(BadText):
        stream_name("", shell.home)


@pytest.mark.parametrize("name", ["weather/#", "weather/*", "+/rain", "weather/rain*", "a/>"])
def test_what_looks_like_a_wildcard_is_taken_literally_with_a_word(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stream_name(name, None) == name
    told = capsys.readouterr().err
    assert "names of streams are literal" in told
    assert "linnet content subscribe" in told


@pytest.mark.parametrize("name", ["weather", "c++", "c#/news", "#general", "5+5/x"])
def test_other_names_are_no_wildcards(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert stream_name(name, None) == name
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["lp1xx/news", "ld1abc/x", "lt1/x"])
def test_a_broken_id_names_no_stream(name: str) -> None:
    with pytest.raises(BadText, match="is an id"):
        stream_name(name, None)
