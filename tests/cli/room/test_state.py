from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.village import RELAY, Tea, up

from linnet.cli.exits import Failure
from linnet.cli.room.state import relay_row, setting
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.rooms.commands import RelayStatus


def test_a_room_moves_to_another_relay_with_all_that_the_old_one_holds(tea: Tea, tmp_path: Path) -> None:
    tea.another("moving")
    old = tea.relay.address
    tea.ada.ok("room", "relays", "moving", "--add", old)
    tea.until(lambda: any(each["up"] for each in tea.ada.json("room", "relays", "moving")["relays"]))
    for number in range(3):
        tea.ada.ok("room", "send", "moving", f"number {number}")
    key = old.partition("@")[0]
    assert "KEY@HOST:PORT" in tea.ada.fails(
        2, "room", "relays", "moving", "--move", key, tea.bea.address.partition("@")[0]
    )
    assert "no relay of this room" in tea.ada.fails(
        2, "room", "relays", "moving", "--move", tea.bea.address, old
    )
    with up(tmp_path / "second", *RELAY) as second:
        moved = tea.ada.json("room", "relays", "moving", "--move", key, second.address)
        assert (moved["old"], moved["new"]) == (key, second.address.partition("@")[0])
        assert moved["held"] == moved["wanted"] > 6
        assert (moved["compared"], moved["refused"]) == (True, {})
        (left,) = tea.ada.json("room", "relays", "moving")["relays"]
        assert left["relay"] == moved["new"]
        assert left["signs"] is True
        assert left["fault"] is None


def test_a_move_to_a_relay_that_is_away_fails_and_removes_nothing(tea: Tea, tmp_path: Path) -> None:
    tea.another("staying")
    old = tea.relay.address
    tea.ada.ok("room", "relays", "staying", "--add", old)
    with up(tmp_path / "third", *RELAY) as third:
        tea.ada.ok("room", "relays", "staying", "--add", third.address)
        new = third.address.partition("@")[0]
        tea.until(lambda: len(tea.ada.json("room", "relays", "staying")["relays"]) == 2)
    said = tea.ada.fails(
        1, "room", "relays", "staying", "--move", old.partition("@")[0], new, "--patience", "2"
    )
    assert "is not in reach: nothing was removed" in said
    assert len(tea.ada.json("room", "relays", "staying")["relays"]) == 2


def test_what_holds_and_setting_it(tea: Tea) -> None:
    tea.ada.ok("room", "create", "walls")
    assert tea.ada.ok("room", "state", "walls", "--set", "color/wall=green").startswith("set ")
    assert tea.ada.ok("room", "state", "walls", "--rule", "public").startswith("join by public")
    said = tea.ada.ok("room", "state", "walls")
    assert "join    public" in said
    assert any(line.split()[:3] == ["color", "wall", "green"] for line in said.splitlines())
    tea.ada.ok("room", "state", "walls", "--set", "name=floors")
    assert tea.ada.json("room", "state", "floors")["digest"]


def test_what_is_set() -> None:
    assert setting("name=tea") == ("name", "", "tea")
    assert setting("a/b/c=d=e") == ("a", "b/c", "d=e")
    for text in ("name", "=x", ""):
        with pytest.raises(Failure, match="sets nothing"):
            setting(text)


def test_one_at_a_time(tea: Tea) -> None:
    assert "one at a time" in tea.ada.fails(2, "room", "state", "tea", "--set", "a=b", "--rule", "public")
    assert "no_power" in tea.bea.fails(1, "room", "state", "tea", "--set", "name=coffee")


def test_shown_and_decided(tea: Tea) -> None:
    tea.ada.ok("room", "create", "kept")
    assert "nothing is decided" in tea.ada.ok("room", "retention", "kept")
    assert tea.ada.ok("room", "retention", "kept", "2h").startswith("relays keep events for 2h 0m")
    assert tea.ada.json("room", "retention", "kept")["seconds"] == 7200
    tea.ada.ok("room", "retention", "kept", "forever")
    assert tea.ada.ok("room", "retention", "kept") == "relays keep events until they are full\n"
    assert "is no length of time" in tea.ada.fails(2, "room", "retention", "kept", "long")


def test_a_relay_is_asked_used_and_taken_out(tea: Tea) -> None:
    room = tea.another("held")
    assert "add one with --add" in tea.ada.ok("room", "relays", "held")
    assert tea.ada.ok("room", "relays", "held", "--add", tea.relay.address).startswith("relay   ld1")

    def is_up() -> bool:
        return any(each["up"] for each in tea.ada.json("room", "relays", "held")["relays"])

    tea.until(is_up)
    said = tea.ada.ok("room", "relays", "held")
    assert tea.relay.address.partition("@")[0] in said
    assert "sent to 1 member online and 1 relay" in tea.ada.ok("room", "send", "held", "for later")
    report = tea.until(lambda: tea.relay.ok("relay", "report"))
    assert f"Room {room}" in report
    assert f"{tea.people['ada']} is a member" in report
    tea.ada.ok("room", "relays", "held", "--drop", tea.relay.address)
    tea.until(lambda: not tea.ada.json("room", "relays", "held")["relays"])


def test_wrong_words(tea: Tea) -> None:
    assert "one at a time" in tea.ada.fails(2, "room", "relays", "tea", "--add", "x", "--drop", "y")
    assert "has no address" in tea.ada.fails(2, "room", "relays", "tea", "--add", "x")
    assert "device id" in tea.ada.fails(2, "room", "relays", "tea", "--drop", "x")
    assert "linnet up --role relay" in tea.ada.fails(1, "relay", "report")


@pytest.mark.parametrize(
    ("up", "chosen", "failure", "state"),
    [
        (True, True, None, "up"),
        (True, False, Reason.TIMEOUT, "up"),
        (False, True, None, "linking"),
        (False, False, None, "idle: not linked now"),
        (False, False, Reason.TIMEOUT, "down: timeout"),
    ],
)
def test_a_relay_that_is_not_linked_now_is_not_down(
    up: bool, chosen: bool, failure: Reason | None, state: str
) -> None:
    assert relay_row(RelayStatus(PeerId(bytes(32)), (), up, chosen, None, None, failure))[1] == state
