from __future__ import annotations

from tests.cli.content.market import Market

from linnet.cli.content.publish import outcome_lines
from linnet.node.content_types import ContentPublishReply, FateView


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
    fates = (FateView("a", 2, 1, None), FateView("b", 0, 0, "timeout"), FateView("c", 0, 2, None))
    assert outcome_lines(ContentPublishReply("le1x", 2, 3, fates)) == [
        "le1x: handed over at 2 nodes, but not everywhere",
        "  a: 2 nodes, 1 branch did not answer",
        "  b: not reached: timeout",
        "  c: 0 nodes, 2 branches did not answer",
    ]
    assert outcome_lines(ContentPublishReply("le1x", 1, 0, (FateView("a", 1, 0, None),))) == [
        "le1x: handed over at 1 node",
        "  a: 1 node",
    ]
    assert outcome_lines(ContentPublishReply("le1x", 0, 0, ())) == [
        "le1x is on its way; this network does not acknowledge"
    ]
