from __future__ import annotations

from tests.cli.content.market import Market


def test_a_group_is_opened_served_and_closed(market: Market) -> None:
    words = ("content", "publish", "boat/knots=12", "fast", "--via")
    assert "no group of this node carries it; open one with" in market.ada.fails(1, *words, "fast")
    told = market.ada.ok("content", "advertise", "boat/knots[0,99]", "--unlisted")
    assert "carries boat/knots[0,99]; it is on no board" in told
    lines = market.ada.ok(*words, "fast").splitlines()
    assert lines[0].endswith(": 0 of 0 members who want it gave a receipt")
    assert lines[1] == "  in the group boat/knots[0,99]"
    assert market.ada.json(*words, "auto")["group"] == "boat/knots[0,99]"
    assert market.ada.json(*words, "scout")["group"] is None
    assert "needs no --unlisted" in market.ada.fails(
        2, "content", "advertise", "boat/knots[0,99]", "--unlisted", "--close"
    )
    assert market.ada.ok("content", "advertise", "boat/knots[0,99]", "--close") == "closed boat/knots[0,99]\n"
    assert market.ada.json(*words, "auto")["group"] is None
