from __future__ import annotations

import pytest

from linnet.core.effects import Deliver
from linnet.core.ids import PeerId
from linnet.machine.commands import Done
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Examine, Handed, NodeStatus, Start, Stop
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.named_nodes import NamedNodes, SetupFailed
from linnet.store.memory import MemoryStore


class Plain(NamedNodes):
    """Nodes that do nothing, with applications that hear nothing."""

    hints = ("sim://node",)
    patience = 5.0
    step = 0.5

    def configured(self, name: str) -> PeerConfig:
        return PeerConfig(listens=self.hints)

    def deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        raise AssertionError("nothing is said")


def plain(seed: int = 1, stores: dict[str, MemoryStore] | None = None) -> Plain:
    made = Plain(seed, LinkModel(named_latency("aws")), None, stores)
    made.add(["ann", "ben"])
    made.add(["cat"])
    return made


def test_nodes_have_keys_by_seed_and_name_and_are_spread_over_the_regions() -> None:
    made, again, other = plain(), plain(), plain(seed=2)
    assert [made.peer(name) for name in made.identities] == [again.peer(name) for name in made.identities]
    assert made.peer("ann") != other.peer("ann")
    assert [made.network.region(made.peer(name)) for name in ("ann", "ben", "cat")] == list(
        made.network.table.regions[:3]
    )
    assert made.contact("ben").hints == ("sim://node",)
    assert made.names[made.peer("cat")] == "cat"


def test_a_store_that_is_given_is_used() -> None:
    kept = MemoryStore()
    assert plain(stores={"ben": kept}).stores["ben"] is kept


def test_commands_are_answered_or_it_is_said_why_not() -> None:
    made = plain()
    assert made.obtain("ann", Start(), Done) == Done()
    assert made.obtain("ann", Examine(), NodeStatus).peer == made.peer("ann")
    with pytest.raises(SetupFailed, match="ann was asked for Stop: Done"):
        made.obtain("ann", Stop(), NodeStatus)
    made.network.crash(made.peer("ben"))
    assert not made.is_online("ben")
    with pytest.raises(SetupFailed, match="ben was asked for Start: crashed"):
        made.obtain("ben", Start(), Done)
    with pytest.raises(SetupFailed, match="no answer within 5 s"):
        made.answered(999_999)
