from __future__ import annotations

import json

from tests.cli.content.market import Market

from linnet.core.counts import counted


def test_what_was_published_elsewhere_is_printed_once_and_kept_until_then(market: Market) -> None:
    market.keep("cheap", "stock/price[10,20]")
    market.ada.ok("content", "publish", "stock/price=12.5", "cheap")
    market.ada.ok("content", "publish", "stock/price=25", "dear")
    market.ada.ok("content", "publish", "stock/price=20")
    words = ("content", "subscribe", "price[10,20]/stock", "--name", "cheap", "--timeout", "20", "--count")
    assert market.bea.ok(*words, "1") == "price=12.5/stock\tcheap\n"
    assert market.bea.ok(*words, "1") == "price=20/stock\n"
    market.ada.ok("content", "publish", "stock/price=11", "again")
    match = json.loads(market.bea.ok(*words, "1", "--json"))
    assert (match["type"], match["number"], match["text"]) == ("match", 3, "again")


def test_too_few_and_what_cannot_be_read_are_told(market: Market) -> None:
    told = market.bea.fails(1, "content", "subscribe", "nobody", "--count", "1", "--timeout", "0.2")
    assert "0 of 1 match came in 0.2 s" in told
    assert "goes with --name" in market.bea.fails(2, "content", "subscribe", "nobody", "--detach")
    told = market.bea.fails(2, "content", "subscribe", "stock/price[10,")
    assert told.splitlines() == [
        "linnet: character 16: expected a number or a date, found the end",
        "  stock/price[10,",
        "                 ^",
    ]


def test_a_group_on_no_board_is_joined_by_its_address(market: Market) -> None:
    market.ada.ok("content", "advertise", "boat/knots[0,99]", "--unlisted")
    where = ("--at", market.ada.address, "--group", "boat/knots[0,99]")
    words = ("content", "subscribe", "boat/knots[5,9]", "--name", "boats")
    market.bea.ok(*words, *where, "--detach")
    while not market.bea.json("content", "list")["settled"]:
        pass
    told = market.ada.json("content", "publish", "boat/knots=7", "slow", "--via", "fast")
    assert (told["wanted"], told["delivered"]) == (1, 1)
    assert market.bea.ok(*words, *where, "--count", "1", "--timeout", "20") == "boat/knots=7\tslow\n"
    (stands,) = [
        each for each in market.bea.json("content", "list")["subscriptions"] if each["name"] == "boats"
    ]
    assert (stands["via"], stands["at"]["publisher"]) == ("fast", market.ada.address)
    assert "say where with --at" in market.bea.fails(2, *words, "--group", "boat")
    assert "take --via fast or auto" in market.bea.fails(2, *words, *where, "--via", "scout")
    assert "has no address" in market.bea.fails(2, "content", "subscribe", "boat", "--at", "nowhere")
    market.ada.ok("content", "advertise", "boat/knots[0,99]", "--close")


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


def test_a_kept_subscription_ends_for_good(market: Market) -> None:
    market.keep("hail", "hail")
    assert market.bea.ok("content", "unsubscribe", "hail") == "unsubscribed hail\n"
    assert "there is no kept subscription 'hail' here" in market.bea.fails(
        1, "content", "unsubscribe", "hail"
    )
    assert all(each["name"] != "hail" for each in market.bea.json("content", "list")["subscriptions"])
