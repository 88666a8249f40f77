"""Coming and going by a schedule."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.machines import Scripted

from linnet.core.ids import PeerId
from linnet.peer.interface import NodeMachine
from linnet.sim.churn import Change, drawn_churn, schedule_churn
from linnet.sim.network import Network
from linnet.testing.networks import build, named_peer, steady_links

PEERS = [named_peer(name) for name in "abcdef"]


@given(st.integers(0, 10_000))
def test_drawn_schedules_alternate_and_end_up(seed: int) -> None:
    changes = drawn_churn(seed, PEERS, (10.0, 100.0), mean_up=20.0, mean_down=5.0)
    assert changes == sorted(changes)
    for peer in PEERS:
        mine = [change for change in changes if change.peer == peer]
        assert [change.up for change in mine] == [bool(number % 2) for number in range(len(mine))]
        assert len(mine) % 2 == 0
        assert all(10.0 < change.at <= 100.0 for change in mine)


def test_one_more_node_leaves_the_others_luck_alone() -> None:
    few = drawn_churn(1, PEERS[:3], (0.0, 100.0), 20.0, 5.0)
    more = drawn_churn(1, PEERS, (0.0, 100.0), 20.0, 5.0)
    assert few == [change for change in more if change.peer in PEERS[:3]]
    assert few != drawn_churn(2, PEERS[:3], (0.0, 100.0), 20.0, 5.0)


def test_a_schedule_is_performed() -> None:
    network = Network(1, steady_links())
    one, two = build(network, ["one", "two"], Scripted)
    revived: list[tuple[float, PeerId]] = []

    def revive(peer: PeerId) -> NodeMachine:
        revived.append((network.elapsed, peer))
        return Scripted()

    changes = [
        Change(1.0, one, up=False),
        Change(2.0, two, up=False),
        Change(2.0, two, up=True),
        Change(3.0, one, up=True),
        Change(4.0, one, up=True),
    ]
    schedule_churn(network, changes, revive)
    states = []
    for second in (0.5, 1.5, 2.5, 3.5, 4.5):
        network.run(second)
        states.append((network.is_up(one), network.is_up(two)))
    assert states == [(True, True), (False, True), (False, True), (True, True), (True, True)]
    assert revived == [(2.0, two), (3.0, one)]
