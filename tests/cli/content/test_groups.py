from __future__ import annotations

from tests.cli.content.market import Market


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
