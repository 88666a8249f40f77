"""A flood costs a node a bounded share of everything, and is named."""

from __future__ import annotations

from linnet.core.reasons import Reason
from linnet.sim.floods import flood_of_many, flood_of_one


def test_one_peer_is_cut_off_after_ten_seconds_worth_of_messages() -> None:
    flood = flood_of_one()
    assert (flood.taken, flood.reason) == (5000, Reason.FLOODING)
    assert flood.records <= flood.taken + 2


def test_less_than_that_is_no_flood() -> None:
    assert flood_of_one(messages=4000).reason is None


def test_a_crowd_fills_tables_up_to_their_bounds_and_every_refusal_is_named() -> None:
    flood = flood_of_many(2200)
    assert flood.acquaintances == 2048
    assert flood.sample <= 20
    assert flood.walkers == 2048
    assert flood.neighbors == 16 + 6, "as many as may want us, and those whom we want"
    assert flood.refused > 2200
    assert flood.unnamed == 0
