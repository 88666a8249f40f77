"""Allowances fill up again with time, for a bounded number of addresses."""

from __future__ import annotations

from linnet.edge.rates import Bucket, SourceRates


def test_a_bucket_gives_what_it_holds_and_fills_again() -> None:
    bucket = Bucket(3.0, 2.0, 100.0)
    assert [bucket.spend(100.0) for _ in range(5)] == [True, True, True, False, False]
    assert [bucket.spend(101.0) for _ in range(3)] == [True, True, False]
    assert [bucket.spend(1000.0) for _ in range(4)] == [True, True, True, False]


def test_a_clock_that_is_set_back_gives_nothing() -> None:
    bucket = Bucket(1.0, 1.0, 100.0)
    assert bucket.spend(100.0)
    assert not bucket.spend(50.0)


def test_each_address_has_its_own_and_the_oldest_are_forgotten() -> None:
    rates = SourceRates(1.0, 1.0, sources=2)
    assert rates.spend("a", 0.0)
    assert not rates.spend("a", 0.0)
    assert rates.spend("b", 0.0)
    assert rates.spend("c", 0.0)
    assert len(rates) == 2
    assert not rates.spend("c", 0.0)
    assert rates.spend("a", 0.0), "forgotten, so it begins anew"
