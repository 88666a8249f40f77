"""Neighbours that pass nothing on: what they gain, and whether honest nodes are taken for them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from msgspec.structs import replace

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.sim.attacks.conduct import Conduct
from linnet.sim.attacks.silent_streams import AttackedStream, Order, StreamAttack, run_stream_attack
from linnet.sim.attacks.stream_nodes import blames_a_peer, tells_of_a_loss
from linnet.trace.records import Kind, Record

SMALL = StreamAttack(honest=12, messages=20, settle=10.0)
HONEST = [conduct for conduct in Conduct if not conduct.is_hostile]


@pytest.mark.parametrize("share", [1 / 2, 2 / 3, 9 / 10])
def test_a_share_of_all_nodes_attacks(share: float) -> None:
    world = AttackedStream(replace(SMALL, share=share))
    assert len(world.hostile) / (len(world.nodes) - 1) == pytest.approx(share)
    assert len(world.honest) == 12


@pytest.mark.parametrize("conduct", Conduct)
def test_without_attackers_every_event_arrives_everywhere(conduct: Conduct) -> None:
    scenario = replace(SMALL, conduct=conduct, share=0.2)
    figures = run_stream_attack(scenario).figures
    assert figures.honest_due == 20 * 11
    assert figures.delivered_without == figures.honest_due
    assert figures.attack == conduct.value
    assert (figures.attacker_bytes > 0) is conduct.is_hostile


@pytest.mark.parametrize("conduct", [Conduct.SILENT, Conduct.MUTE])
def test_attackers_send_no_event_and_all_else(conduct: Conduct) -> None:
    sent: dict[str, int] = {}

    class Sends:
        def write(self, node: PeerId, record: Record, now: float) -> None:
            if record.kind is Kind.RECEIVED and record.peer in hostile:
                sent["events"] = sent.get("events", 0) + 1
            elif record.kind is Kind.DUPLICATE and record.peer in hostile:
                sent["duplicates"] = sent.get("duplicates", 0) + 1

        def close(self) -> None:
            pass

    hostile: dict[PeerId, None] = {}
    world = AttackedStream(replace(SMALL, conduct=conduct), Sends())
    hostile.update((each.peer, None) for each in world.hostile)
    world.run()
    assert sent == {}
    assert world.sent_by(world.hostile) > 12 * 500, "they join, report and answer pings"


@pytest.mark.parametrize("order", Order)
def test_the_order_decides_who_joins_first(order: Order) -> None:
    world = AttackedStream(replace(SMALL, order=order))
    joins = sorted(world._asked, key=lambda peer: world._asked[peer])
    honest = {each.peer for each in world.honest}
    firsts = [peer in honest for peer in joins[:12]]
    assert {Order.AFTER: all(firsts), Order.BEFORE: not any(firsts), Order.AMONG: 0 < sum(firsts) < 12}[order]


def test_attackers_come_from_as_many_networks_as_asked() -> None:
    world = AttackedStream(replace(SMALL, networks=3))
    hosts = world.network._hosts
    assert {hosts[each.peer].prefix for each in world.hostile} == {"hostile 0", "hostile 1", "hostile 2"}
    assert len({hosts[each.peer].prefix for each in world.honest}) == 12


@pytest.mark.parametrize("conduct", HONEST)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_honest_node_in_trouble_is_blamed(conduct: Conduct, seed: int) -> None:
    report = run_stream_attack(StreamAttack(conduct=conduct, share=0.2, seed=seed, publishers=24))
    assert report.honest_blamed == 0
    assert report.figures.worst_seconds > 1.0 or conduct is not Conduct.SLOW, "some node was slow"


def test_blame_and_news_are_found_in_the_records_of_honest_nodes() -> None:
    """Any predicate may be asked for: here that every link of an honest node blames its other end."""
    report = run_stream_attack(SMALL, blames=lambda record: record.kind is Kind.LINK_UP)
    assert report.hostile_blamed == 12
    assert report.honest_blamed >= 11
    told = run_stream_attack(SMALL, told=lambda record: record.kind is Kind.SENT)
    assert told.figures.told_after_seconds == 0.0
    assert run_stream_attack(SMALL, told=lambda record: False).figures.told_after_seconds is None
    assert tells_of_a_loss(Record(Kind.DROPPED, reason=Reason.GAP_UNFILLED))
    assert not blames_a_peer(Record(Kind.REJECTED, reason=Reason.FORGING))


def test_equal_seeds_are_equal_under_any_hash_seed() -> None:
    script = (
        "from linnet.sim.attacks.silent_streams import *\n"
        "print(run_stream_attack(StreamAttack(honest=8, messages=5, crowding=True)).trace_sha256)"
    )
    said = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, check=True, env=environment
        )
        said.add(done.stdout)
    assert len(said) == 1
    assert run_stream_attack(SMALL) == run_stream_attack(SMALL)
