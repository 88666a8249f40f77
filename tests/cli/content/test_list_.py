from __future__ import annotations

from tests.cli.content.market import Market


def test_subscriptions_and_rendezvous_are_listed(market: Market) -> None:
    market.keep("snow", "snow")
    lines = market.bea.ok("content", "list").splitlines()
    (row,) = [line.split() for line in lines if line.startswith("snow")]
    assert row == ["snow", "snow", "snow", "scout", "no", "0", "0"]
    both = market.ada.json("content", "list")["rendezvous"] + market.bea.json("content", "list")["rendezvous"]
    assert both.count("snow") == 1
    assert lines[-1].startswith("this node is the rendezvous of ")
