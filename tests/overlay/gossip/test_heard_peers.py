"""Hearsay: what is passed on is checked, and whoever is at fault is blamed, nobody else."""

from __future__ import annotations

import msgspec
from tests.overlay.gossip.interested import CONFIG, described, peer_id

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.overlay.gossip.descriptor import believing
from linnet.overlay.gossip.known_peers import KnownPeers
from linnet.overlay.gossip.messages import Descriptor
from linnet.overlay.gossip.peer_sampling import HeardPeers
from linnet.overlay.gossip.trust import Trust
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

OURS, TELLER = peer_id(0), peer_id(1)
FORGED = bytes([1]) * 64


class World:
    """A hearsay that counts its checks."""

    def __init__(self) -> None:
        self.acquaintances = KnownPeers()
        self.trust = Trust(MemoryStore().cells, CONFIG)
        self.dropped: list[PeerId] = []
        self.checks = 0
        self.hearsay = HeardPeers(
            OURS, self.acquaintances, self.trust, believing(self.check), self.dropped.append
        )

    def check(self, descriptor: Descriptor, now: float) -> None:
        self.checks += 1
        if descriptor.sig == FORGED:
            raise RemoteError(Reason.BAD_SIGNATURE)
        if descriptor.expires < now:
            raise RemoteError(Reason.STALE)

    def named(self, *descriptors: Descriptor, most: int = 10) -> tuple[list[PeerId], list[Record]]:
        return self.hearsay.check_named(TELLER, descriptors, most, 5.0)


def rejected(reason: Reason, events: int = 1) -> Record:
    return Record(Kind.REJECTED, peer=TELLER, reason=reason, events=events)


def test_good_ones_are_learned_once_and_we_are_not_among_them() -> None:
    world, two, three = World(), described(2, [1, 2]), described(3, [1, 2])
    assert world.named(two, three, two, described(0, [1])) == ([two.peer, three.peer], [])
    assert world.acquaintances.descriptor_of(two.peer) is two
    assert world.checks == 2


def test_what_is_known_is_not_checked_again_until_it_ends() -> None:
    world = World()
    world.named(described(2, [1, 2]))
    assert world.named(described(2, [1, 2])) == ([peer_id(2)], [])
    assert world.checks == 1
    ended = described(3, [1], expires=4)
    assert world.named(ended) == ([], [rejected(Reason.STALE)])
    assert world.dropped == []


def test_a_forged_one_is_the_fault_of_who_passes_it_on() -> None:
    world = World()
    forged = msgspec.structs.replace(described(2, [1, 2]), sig=FORGED)
    assert world.named(described(3, [1]), forged) == ([], [rejected(Reason.BAD_SIGNATURE)])
    assert world.dropped == [TELLER]
    assert world.trust.is_banned(TELLER, 5.0)
    assert not world.trust.is_banned(peer_id(2), 5.0)


def test_an_implausible_one_is_the_fault_of_who_signed_it() -> None:
    world = World()
    hub = described(2, [], filter=b"\xff" * 128)
    assert world.named(described(3, [1]), hub) == ([peer_id(3)], [rejected(Reason.IMPLAUSIBLE_FILTER)])
    assert world.dropped == [peer_id(2)]
    assert not world.trust.is_banned(TELLER, 5.0)
    assert world.named(described(2, [1], version=2)) == ([], [])


def test_too_many_are_cut_off_and_recorded() -> None:
    nodes, records = World().named(*(described(n, [1]) for n in range(2, 9)), most=3)
    assert nodes == [peer_id(2), peer_id(3), peer_id(4)]
    assert records == [rejected(Reason.TOO_MANY, 4)]


def test_who_is_named_by_a_friend_is_trusted_a_little_more() -> None:
    world = World()
    world.trust.set_trust(TELLER, 1.0)
    world.named(described(2, [1]))
    assert world.trust.trust_in(peer_id(2), 5.0) > CONFIG.base_trust
