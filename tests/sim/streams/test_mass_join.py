"""Mass joins: one protocol takes them, the other does not."""

from __future__ import annotations

import pytest

from linnet.core.ids import PeerId
from linnet.overlay.config import Control
from linnet.sim.clock import START
from linnet.sim.streams.course import MassJoin, join_once, mass_join
from linnet.sim.streams.world import FIRST_JOIN, StreamScenario
from linnet.trace.records import Kind, NullTrace, Record


def by_case(results: list[MassJoin]) -> dict[tuple[Control, bool], MassJoin]:
    return {(result.control, result.join > 0): result for result in results}


def test_counters_take_a_mass_join() -> None:
    result = join_once(StreamScenario(nodes=150), measured_at=30.0)
    assert (result.regular, result.violations, result.one_sided) == (True, 0, 0)
    assert result.degrees == {4: 150}
    assert result.converged_at is not None
    assert result.converged_at < 10.0


class FirstNeighbors(NullTrace):
    """When each node first had neighbours."""

    def __init__(self) -> None:
        self.seconds: dict[PeerId, float] = {}

    def write(self, node: PeerId, record: Record, now: float) -> None:
        if record.kind is Kind.OVERLAY:
            self.seconds.setdefault(node, now - START)


@pytest.mark.parametrize("pause", [0.0, 2.0])
def test_joins_are_as_far_apart_as_asked(pause: float) -> None:
    met = FirstNeighbors()
    result = join_once(StreamScenario(nodes=6, join=pause), measured_at=30.0, trace=met)
    assert result.regular
    # The first has nobody to meet before the second comes.
    due = [FIRST_JOIN + number * pause for number in (1, *range(1, 6))]
    assert all(0 <= came - asked < 1.5 for came, asked in zip(sorted(met.seconds.values()), due, strict=True))


def test_both_protocols_side_by_side() -> None:
    told: list[str] = []
    results = by_case(mass_join(StreamScenario(nodes=40), 0.1, 20.0, lambda done, what: told.append(what)))
    assert list(results) == [(control, throttled) for control in Control for throttled in (False, True)]
    assert told == [
        "counter, all at once",
        "counter, every 0.1 s",
        "naive, all at once",
        "naive, every 0.1 s",
    ]
    for throttled in (False, True):
        counter, naive = results[Control.COUNTER, throttled], results[Control.NAIVE, throttled]
        assert counter.regular
        assert naive.violations > 0
        assert naive.control_messages > counter.control_messages
        assert naive.mean_edge_delay_ms < naive.pair_mean_delay_ms


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_thousand_nodes_join_at_once() -> None:
    """Juslenius 2021, sections 4.3 and 5.4.2, measured at 120 s of virtual time."""
    results = by_case(mass_join(StreamScenario(nodes=1000)))
    for throttled in (False, True):
        counter, naive = results[Control.COUNTER, throttled], results[Control.NAIVE, throttled]
        assert counter.degrees == {4: 1000}
        assert counter.one_sided == 0
        assert naive.violations > 0
        assert counter.converged_at is not None
        assert naive.converged_at is not None
        assert naive.converged_at > counter.converged_at
        assert naive.mean_edge_delay_ms < naive.pair_mean_delay_ms
