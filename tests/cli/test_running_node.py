from __future__ import annotations

import pytest
from tests.cli.shell import Linnet

from linnet.cli.running_node import Session
from linnet.core.errors import BadText
from linnet.node.home import HomeError


def test_own_streams_are_named_for_their_person(shell: Linnet) -> None:
    person = shell.json("init")["person"]
    assert Session(shell.home).stream_name("me/diary") == f"{person}/diary"
    assert Session(shell.home).stream_name("weather") == "weather"
    assert Session(shell.home).stream_name("men/diary") == "men/diary"


def test_without_a_home_nobody_is_me(shell: Linnet) -> None:
    with pytest.raises(HomeError, match="linnet init"):
        Session(shell.home).stream_name("me/diary")
    with pytest.raises(BadText):
        Session(shell.home).stream_name("")


@pytest.mark.parametrize("name", ["weather/#", "weather/*", "+/rain", "weather/rain*", "a/>"])
def test_what_looks_like_a_wildcard_is_taken_literally_with_a_word(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Session(None).stream_name(name) == name
    told = capsys.readouterr().err
    assert "names of streams are literal" in told
    assert "linnet content subscribe" in told


@pytest.mark.parametrize("name", ["weather", "c++", "c#/news", "#general", "5+5/x"])
def test_other_names_are_no_wildcards(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert Session(None).stream_name(name) == name
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["lp1xx/news", "ld1abc/x", "lt1/x"])
def test_a_broken_id_names_no_stream(name: str) -> None:
    with pytest.raises(BadText, match="is an id"):
        Session(None).stream_name(name)


def test_an_answer_is_printed_as_json_as_lines_or_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    people, programs = Session(), Session(as_json=True)
    people.say({"n": 1}, "one")
    people.say({"n": 2}, ["two", "lines"])
    people.say_table({"n": 3}, ("name", "count "), [("tea", 3)])
    people.say_table({"n": 0}, ("name",), [], "nothing is there")
    lines = capsys.readouterr().out.split("\n")
    assert lines[:3] == ["one", "two", "lines"]
    assert lines[-3].split() == ["tea", "3"]
    assert lines[-2] == "nothing is there"
    programs.say({"n": 1}, "one")
    programs.say_table({"n": 3}, ("name", "count "), [("tea", 3)])
    programs.say_table({"n": 0}, ("name",), [], "nothing is there")
    assert capsys.readouterr().out == '{"n":1}\n{"n":3}\n{"n":0}\n'
