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


def test_groups_of_ours_and_of_others_are_shown(market: Market) -> None:
    market.ada.ok("content", "advertise", "tide/metres[0,20]")
    while not market.ada.json("content", "list")["settled"]:
        pass
    (found,) = market.bea.json("content", "groups", "tide/metres[1,2]")["groups"]
    assert (found["predicate"], found["publisher"]) == ("metres[0,20]/tide", market.ada.address)
    assert "metres[0,20]/tide" in market.ada.ok("content", "groups")
    assert "nobody advertises" in market.bea.ok("content", "groups", "tide/metres[5,50]")
    assert "no groups of ours" in market.bea.ok("content", "groups")
    assert "character 6" in market.bea.fails(2, "content", "groups", "tide[")
