from __future__ import annotations

import pytest
from tests.cli.village import Tea

from linnet.cli.room.relays import row
from linnet.node.control_types import RelayView


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
        (True, False, "timeout", "up"),
        (False, True, None, "linking"),
        (False, False, None, "idle: not linked now"),
        (False, False, "timeout", "down: timeout"),
    ],
)
def test_a_relay_that_is_not_linked_now_is_not_down(
    up: bool, chosen: bool, failure: str | None, state: str
) -> None:
    assert row(RelayView("ld1…", (), up, chosen, None, None, failure))[1] == state
