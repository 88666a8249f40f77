from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.shell import Linnet
from tests.cli.stream.conftest import Diary
from tests.cli.village import up

from linnet.cli.stream.policy import heading, read_disallowed
from linnet.core.errors import BadText
from linnet.core.ids import TopicId
from linnet.identity.keys import device_id
from linnet.identity.text import Sort, to_text
from linnet.streams.commands import ReadersAre


def test_an_owner_decides_about_a_stream(running: Linnet, shell: Linnet) -> None:
    friend = shell.json("init")["person"]
    assert "everyone may publish" in running.ok("declare", "me/open")
    assert "you and 0 others" in running.ok("declare", "me/news", "--only-me")
    assert len(running.json("declare", "me/news", "--publisher", friend)["ids"]) == 1


def test_what_cannot_be_declared_is_told(running: Linnet, shell: Linnet) -> None:
    found = shell.json("init")
    running.fails(1, "declare", f"{found['person']}/news", "--only-me")
    assert "where a person id" in running.fails(2, "declare", "me/news", "--publisher", found["device"])
    assert "write KEY@HOST:PORT" in running.fails(2, "declare", "me/news", "--tracker", "here")


def test_it_is_one_line_and_a_new_one_each_time(diary: Diary) -> None:
    first = diary.bea.run("stream", "request", diary.stream)
    assert first.stdout.startswith("lr1")
    assert first.stdout.count("\n") == 1
    assert "linnet stream allow me/diary LINE" in first.stderr
    asked = diary.bea.json("stream", "request", diary.stream)
    assert asked["topic"].startswith("lt1")
    assert asked["request"] != first.stdout.strip()


def test_who_has_nothing_to_ask_is_told(diary: Diary, shell: Linnet) -> None:
    assert "reads it anyway" in diary.ada.fails(1, "stream", "request", "me/diary")
    assert "everyone reads it" in diary.bea.fails(1, "stream", "request", "weather")
    shell.ok("init")
    shell.fails(69, "stream", "request", diary.stream)


def test_a_line_lets_one_device_in_once(diary: Diary) -> None:
    line = diary.bea.ok("stream", "request", diary.stream)
    told = diary.ada.json("stream", "allow", "me/diary", "-", given=line)
    assert [reader["label"] for reader in told["changed"]] == ["bea"]
    assert told["readers"] == told["changed"]
    assert "granted before" in diary.ada.fails(1, "stream", "allow", "me/diary", line)


def test_what_cannot_be_taken_is_told(diary: Diary) -> None:
    line = diary.bea.ok("stream", "request", diary.stream).strip()
    for given, words in (
        ("rain", "should begin with lr1"),
        (line[:-9], "cut short"),
        (line[:60] + ("a" if line[60] != "a" else "b") + line[61:], "checksum"),
    ):
        assert words in diary.ada.fails(1, "stream", "allow", "me/diary", given)
    other = diary.bea.ok("stream", "request", diary.stream.replace("/diary", "/other"))
    assert "another stream" in diary.ada.fails(1, "stream", "allow", "me/diary", other)
    assert "does not seal" in diary.ada.fails(1, "stream", "allow", "me/open", line)


KEY = b"k" * 32


def test_a_person_or_a_device_is_meant() -> None:
    person = to_text(Sort.PERSON, KEY)
    assert read_disallowed("s", f" {person.upper()} ").person == KEY
    assert read_disallowed("s", to_text(Sort.DEVICE, KEY)).device == device_id(KEY)
    assert read_disallowed("s", "5268357E181C9BC5").device == bytes.fromhex("5268357e181c9bc5")
    for nobody in ("bea", "5268357e181c9bcx", to_text(Sort.EVENT, KEY)):
        with pytest.raises(BadText):
            read_disallowed("s", nobody)


def test_who_is_put_out_is_named_and_who_was_never_in_is_not(diary: Diary) -> None:
    diary.ada.ok("stream", "allow", "me/diary", diary.bea.ok("stream", "request", diary.stream))
    device = diary.bea.json("status")["device"]
    assert "put out bea" in diary.ada.ok("stream", "disallow", "me/diary", device)
    assert "no reader" in diary.ada.fails(1, "stream", "disallow", "me/diary", device)
    diary.ada.ok("stream", "allow", "me/diary", diary.bea.ok("stream", "request", diary.stream))
    told = diary.ada.json("stream", "disallow", "me/diary", diary.bea.json("status")["person"])
    assert [reader["key"] for reader in told["changed"]] == [device]
    assert told["readers"] == []


def test_readers_are_listed_with_the_age_of_the_key(diary: Diary) -> None:
    diary.ada.ok("stream", "allow", "me/diary", diary.bea.ok("stream", "request", diary.stream))
    told = diary.ada.ok("stream", "readers", "me/diary")
    assert "is sealed; its key is number" in told
    assert f"bea   {diary.ada.json('stream', 'readers', 'me/diary')['readers'][0]['device']}" in told
    diary.ada.ok("stream", "disallow", "me/diary", diary.bea.json("status")["person"])
    assert diary.ada.json("stream", "readers", "me/diary")["readers"] == []
    assert "does not seal" in diary.bea.fails(1, "stream", "readers", diary.stream)


def test_a_stream_in_which_nothing_was_said() -> None:
    assert "nobody let in yet" in heading("s", ReadersAre(TopicId(bytes(32)), 0, None, ()))


def test_a_stream_changes_over_and_back_and_remembers(tmp_path: Path) -> None:
    home = tmp_path / "ada"
    options = ("--tracker-role", "--store", "tea", "--overlay", "tracker")
    shell = Linnet(home)
    with up(home, *options) as ada:
        told = ada.fails(1, "stream", "overlay", "tea", "ring")
        assert "linnet up --overlay ring" in told
        assert "one of" in ada.fails(2, "stream", "overlay", "tea", "mesh")
    assert "start one with: linnet up" in shell.fails(69, "stream", "overlay", "tea", "ring")


def test_with_both_overlays_it_goes_both_ways(tmp_path: Path) -> None:
    with up(tmp_path / "ada", "--tracker-role", "--overlay", "ring", "--store", "tea") as ada:
        assert (
            ada.ok("stream", "overlay", "tea", "tracker") == "tea changes over from overlay ring to tracker\n"
        )
        assert ada.json("status")["streams"][0]["overlay"] == "tracker"
        back = ada.json("stream", "overlay", "tea", "ring")
        assert (back["before"], back["overlay"]) == ("tracker", "ring")
