from __future__ import annotations

from tests.cli.content.market import Market


def test_a_kept_subscription_ends_for_good(market: Market) -> None:
    market.keep("hail", "hail")
    assert market.bea.ok("content", "unsubscribe", "hail") == "unsubscribed hail\n"
    assert "there is no kept subscription 'hail' here" in market.bea.fails(
        1, "content", "unsubscribe", "hail"
    )
    assert all(each["name"] != "hail" for each in market.bea.json("content", "list")["subscriptions"])
