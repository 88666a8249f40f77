"""Events one by one, against a loop over the rows."""

from __future__ import annotations

from collections import Counter

from pyspark.sql import SparkSession
from tests.lab.audit.stage import Staged
from tests.lab.audit.tales import Oracle

from linnet.lab.audit.events import arrivals_of, has_bursts, hops_of


def test_publications_are_all_events_but_policies(staged: Staged, oracle: Oracle) -> None:
    found = {}
    for row in staged.publications.collect():
        event = None if row.event is None else bytes(row.event)
        found[*staged.places[row.chain], row.seq] = (staged.name(row.author), row.published_us, event)
    assert found == oracle.published


def test_arrivals_are_first_deliveries_with_their_publications(staged: Staged, oracle: Oracle) -> None:
    found = {}
    for row in staged.arrivals.collect():
        event = (*staged.places[row.chain], row.seq)
        author = None if row.author is None else staged.name(row.author)
        found[event, staged.name(row.receiver)] = (
            row.first_us,
            row.hops,
            row.times,
            author,
            row.published_us,
        )
    wanted = {}
    for (event, node), all_ in oracle.arrivals.items():
        author, published, _ = oracle.published.get(event, (None, None, None))
        # Of two at one moment, the one that came over the fewest links; none known counts as most.
        first, hops = min(all_, key=lambda each: (each[0], each[1] % 4096))
        wanted[event, node] = (first, hops, len(all_), author, published)
    assert found == wanted


def test_bursts_are_taken_apart_where_there_are_any(spark: SparkSession, staged: Staged) -> None:
    assert has_bursts(staged.activity)
    single = staged.trace.where("events = 1")
    alone = Staged(spark, [])
    alone.trace = single
    assert not has_bursts(alone.activity)
    names = (alone.chains, alone.nodes, alone.publications)
    both = [arrivals_of(single, *names, bursts=bursts).collect() for bursts in (True, False)]
    assert sorted(both[0]) == sorted(both[1])


def test_hops_are_those_of_first_deliveries(staged: Staged, oracle: Oracle) -> None:
    wanted: Counter[tuple[bytes, int]] = Counter()
    for (event, _), came in oracle.arrivals.items():
        wanted[event[0], min(came, key=lambda each: (each[0], each[1] % 4096))[1]] += 1
    found = hops_of(staged.arrivals, staged.chains).collect()
    assert {(bytes(row.topic), row.hops): row["count"] for row in found} == wanted
