from __future__ import annotations

from tests.cli.content.market import Market

from linnet.api.content import ContentSaid
from linnet.cli.content import outcome_lines
from linnet.content.commands import AttributeFate
from linnet.core.ids import EventId, PeerId
from linnet.core.reasons import Reason
from linnet.identity.text import device_text, event_text

EVENT, X, Y = EventId(b"e" * 32), PeerId(b"x" * 32), PeerId(b"y" * 32)


E, X_TEXT, Y_TEXT = event_text(EVENT), device_text(X), device_text(Y)


def test_what_became_of_it_is_told(market: Market) -> None:
    market.keep("rain", "rain/mm[1,)")
    said = market.ada.json("content", "publish", "rain/mm=3", "wet")
    assert (said["delivered"], said["missed"]) == (1, 0)
    assert sorted(fate["attribute"] for fate in said["fates"]) == ["mm", "rain"]
    lines = market.ada.ok("content", "publish", "rain/mm=0", "-", given="dry").splitlines()
    assert lines[0].endswith(": nobody wants it; it went no further, and cost only its 2 walks")
    assert sorted(lines[1:]) == ["  mm: nobody there", "  rain: nobody there"]


def test_ranges_are_for_subscribers(market: Market) -> None:
    told = market.ada.fails(2, "content", "publish", "price[1,2]")
    assert told.startswith("linnet: character 6: expected ")


def test_what_was_not_reached_is_told() -> None:
    fates = (
        AttributeFate("a", 2, 1, None),
        AttributeFate("b", 0, 0, Reason.TIMEOUT),
        AttributeFate("c", 0, 2, None),
    )
    assert outcome_lines(ContentSaid(EVENT, 2, 3, fates, matches=2)) == [
        f"{E}: handed over at 2 nodes; not everyone who wants it answered",
        "  a: 2 nodes, 1 branch did not answer",
        "  b: not reached: timeout",
        "  c: 2 branches did not answer",
    ]
    assert outcome_lines(ContentSaid(EVENT, 1, 0, (AttributeFate("a", 1, 0, None),))) == [
        f"{E}: handed over at 1 node",
        "  a: 1 node",
    ]
    lost = (AttributeFate("a", 0, 1, None),)
    assert outcome_lines(ContentSaid(EVENT, 0, 1, lost, matches=0)) == [
        f"{E}: handed over nowhere; not everyone who wants it answered",
        "  a: 1 branch did not answer",
    ]
    assert outcome_lines(ContentSaid(EVENT, 0, 0, ())) == [
        f"{E} is on its way; this network does not acknowledge"
    ]


def test_nodes_and_subscriptions_are_told_apart() -> None:
    fates = (AttributeFate("a", 1, 0, None, 0, 2), AttributeFate("b", 0, 0, None, 1))
    assert outcome_lines(ContentSaid(EVENT, 1, 0, fates, matches=2)) == [
        f"{E}: handed over at 1 node, to 2 subscriptions",
        "  a: 1 node",
        "  b: 1 node that had it already",
    ]


def test_who_says_nothing_is_named() -> None:
    fates = (
        AttributeFate("a", 1, 0, None, 0, 1, False, (X, Y), 3),
        AttributeFate("b", 0, 0, None, settled=False),
    )
    reply = ContentSaid(EVENT, 1, 0, fates, matches=1, settled=False, silent=(X, Y), more_silent=3)
    assert outcome_lines(reply) == [
        f"{E}: handed over at 1 node so far; who is silent may still get it, and the trace tells",
        f"  a: 1 node, no answer yet from {X_TEXT}, {Y_TEXT} and 3 more",
        "  b: no answer yet",
    ]
    group = ContentSaid(EVENT, 1, 0, (), "a", 2, settled=False, silent=(X,))
    assert outcome_lines(group) == [
        f"{E}: 1 of 2 members who want it gave a receipt",
        "  in the group a",
        f"  no answer yet from {X_TEXT}; the trace tells",
    ]


def test_two_subscriptions_of_one_node_are_one_node(market: Market) -> None:
    market.keep("stones", "stones/size[1,)")
    market.keep("large", "size[5,)")
    said = market.ada.json("content", "publish", "stones/size=7", "ouch")
    assert (said["delivered"], said["matches"]) == (1, 2)
    assert "handed over at 1 node, to 2 subscriptions" in market.ada.ok("content", "publish", "stones/size=8")
