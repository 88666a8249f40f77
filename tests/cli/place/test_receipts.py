"""For every message the host sees which guests have it."""

from __future__ import annotations

from tests.cli.place.parlour import Parlour

from linnet.net.clock import Clock

LIMIT = 90.0


def test_a_guest_has_a_message_and_has_said_so(parlour: Parlour) -> None:
    said = parlour.ada.json("place", "announce", "tea", "Who has this?")["message"]
    clock = Clock()
    limit = clock.now() + LIMIT
    while (told := parlour.ada.json("place", "receipts", "tea", str(said)))["receipts"][0][
        "state"
    ] != "delivered":
        assert clock.now() < limit, told
    assert [(each["person"], each["at_ms"] > 0) for each in told["receipts"]] == [
        (parlour.people["bea"], True)
    ]
    assert parlour.people["bea"] in parlour.ada.ok("place", "receipts", "tea", str(said))
    assert "delivered" in parlour.ada.ok("place", "receipts", "tea", str(said))


def test_the_last_message_and_who_may_ask(parlour: Parlour) -> None:
    last = parlour.ada.json("place", "status", "tea")["place"]["message"]
    assert parlour.ada.json("place", "receipts", "tea")["message"] == last
    parlour.hosted("empty")
    assert "nobody is in yet" in parlour.ada.ok("place", "receipts", "empty")
    assert "not_allowed" in parlour.bea.fails(1, "place", "receipts", "tea", str(last))
