from __future__ import annotations

from tests.cli.content.market import Market

from linnet.core.counts import counted


def test_subscriptions_and_rendezvous_are_listed(market: Market) -> None:
    market.keep("snow", "snow")
    lines = market.bea.ok("content", "list").splitlines()
    (row,) = [line.split() for line in lines if line.startswith("snow")]
    assert row == ["snow", "snow", "snow", "scout", "-", "no", "0", "0"]
    both = market.ada.json("content", "list")["rendezvous"] + market.bea.json("content", "list")["rendezvous"]
    assert both.count("snow") == 1
    assert lines[-1].startswith("this node is the rendezvous of ")


def test_the_status_tells_what_a_node_does_for_others(market: Market) -> None:
    market.keep("watched", "watched/level[1,2]")
    bea = market.bea.json("status")
    assert bea["hash_table"] == {"known": 1, "kept": 0, "placed": 0}
    assert bea["content"]["subscriptions"] >= 1
    held = bea["content"]["rendezvous"] + market.ada.json("status")["content"]["rendezvous"]
    assert {"level", "watched"} & set(held)
    said = market.bea.ok("status")
    assert "hash table  1 node known, 0 records kept for others, 0 of our own placed" in said
    assert f"content     {counted(bea['content']['subscriptions'], 'subscription')}" in said
