"""Which overlay a topic has, and that nothing is lost while it changes over."""

from __future__ import annotations

from random import Random

import pytest
from tests.conftest import SOAK
from tests.overlay.changing import ChangingVillage
from tests.overlay.harness import HELLO, hints, peer_id
from tests.streams.village import STREAM

from linnet.core.effects import CancelTimer, Hold, Release, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.identity.keys import SigningKey
from linnet.overlay.config import MemberConfig, Overlay
from linnet.overlay.member import Member
from linnet.overlay.messages import EdgeClose, EdgeOpen, Instruction
from linnet.overlay.notices import JoinRefused, NeighborDown, NeighborUp
from linnet.overlay.overlays import OWNER, Overlays, OverlaysEffect
from linnet.overlay.trackerless.commands import ExamineOverlay
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.messages import Beside
from linnet.overlay.trackerless.status import TrackerlessStatus
from linnet.overlay.trackerless.tags import epoch_of, hint, proof, topic_keys
from linnet.overlay.trackerless.trackerless import Trackerless
from linnet.sim.ideal_group import IDEAL
from linnet.sim.luck import SeededEntropy
from linnet.store.memory import MemoryStore
from linnet.streams.names import topic_of

TOPIC = topic_of(STREAM)


@pytest.mark.parametrize("seed", range(20 if SOAK else 2))
def test_a_live_topic_changes_over_and_back_and_nothing_is_lost(seed: int) -> None:
    village = ChangingVillage(seed, storage=0, peers=8)
    names = [f"p{number}" for number in range(8)]
    reading = {name: village.subscribe(name) for name in names}
    village.run(10.0)
    said = village.talk(10, 0, *names)
    village.switch(Overlay.RING, *names[::2])
    said = village.talk(30, said, *names)
    village.switch(Overlay.RING, *names[1::2])
    said = village.talk(120, said, *names)
    statuses = {name: village.status(name).streams[0] for name in names}
    assert {status.overlay for status in statuses.values()} == {Overlay.RING}
    assert all(status.tracker is None for status in statuses.values()), "the tracker is not followed any more"
    assert all(status.neighbors for status in statuses.values())
    village.switch(Overlay.TRACKER, *names[1::2])
    said = village.talk(30, said, *names)
    village.switch(Overlay.TRACKER, *names[::2])
    said = village.talk(120, said, *names)
    village.run(20.0)
    expected = {
        name.encode(): [number for number in range(said) if number % 8 == at] for at, name in enumerate(names)
    }
    for name, subscription in reading.items():
        assert village.missed(name, subscription) == []
        assert village.by_publisher(name, subscription) == expected


def _rings(village: ChangingVillage, name: str) -> int:
    status = village.ask(name, ExamineOverlay(), wait=0.01)
    assert isinstance(status, TrackerlessStatus)
    return len(status.rings)


def test_whoever_changes_its_mind_on_the_way_is_left_in_one_overlay_alone() -> None:
    village = ChangingVillage(storage=0, peers=4)
    names = [f"p{number}" for number in range(4)]
    reading = {name: village.subscribe(name) for name in names}
    village.run(10.0)
    village.switch(Overlay.RING, *names)
    said = village.talk(20, 0, *names)
    village.switch(Overlay.TRACKER, *names)
    village.talk(100, said, *names)
    village.run(5.0)
    assert [_rings(village, name) for name in names] == [0, 0, 0, 0]
    for name, subscription in reading.items():
        assert sum(map(len, village.by_publisher(name, subscription).values())) == 120


# One node, by hand.

US = SigningKey(b"u" * 32)
OURS = PeerId(US.public)
A, B, T = (peer_id(name) for name in ("a", "b", "tracker"))
TRACKER = Contact(T, hints(T))
NOW = 1_800_000_000.0
KEYS = topic_keys(TOPIC, None)


def _overlays(overlap: float = 60.0) -> Overlays:
    trackerless = Trackerless(
        US, TrackerlessConfig(), MemoryStore().cells, Random(1), SeededEntropy(1, "us"), group=IDEAL
    )
    return Overlays(Member(MemberConfig(), ("tls://us:1",)), trackerless, overlap)


def _join(overlays: Overlays, overlay: Overlay, now: float = NOW, *members: PeerId) -> list[OverlaysEffect]:
    contacts = tuple(Contact(peer, hints(peer)) for peer in members)
    return overlays.join(TOPIC, overlay, (TRACKER,), 4, False, False, now, contacts)


def _tracked(overlays: Overlays, peer: PeerId, now: float = NOW) -> list[OverlaysEffect]:
    """The tracker gives us a neighbour."""
    overlays.links(LinkUp(T, HELLO, True), now)
    told = Instruction(TOPIC, 1, (Contact(peer, hints(peer)),), ())
    overlays.on_tracker_message(T, told, now)
    overlays.links(LinkUp(peer, HELLO, True), now)
    return overlays.on_tracker_message(peer, EdgeOpen(TOPIC), now)


def _beside(overlays: Overlays, peer: PeerId, now: float = NOW, is_open: bool = True) -> list[OverlaysEffect]:
    """A member counts us as its neighbour on the ring, or no longer."""
    epoch = epoch_of(now)
    told = Beside(hint(KEYS, OURS, peer), epoch, proof(KEYS, peer, epoch), is_open, False)
    return overlays.on_message(peer, told, now)


def _notices(effects: list[OverlaysEffect]) -> list[object]:
    return [each for each in effects if isinstance(each, NeighborUp | NeighborDown)]


def _look(overlays: Overlays, now: float) -> list[OverlaysEffect]:
    return overlays.fired(Tick(OWNER, "look", TOPIC), now)


def test_a_node_without_gossip_refuses_the_ring_and_needs_nothing_else() -> None:
    overlays = Overlays(Member(MemberConfig()))
    assert _join(overlays, Overlay.RING) == [JoinRefused(TOPIC, Reason.UNSUPPORTED)]
    assert overlays.overlay(TOPIC) is None
    assert overlays.leave(TOPIC, NOW) == []
    assert overlays.start((), NOW) == []
    assert _beside(overlays, A) == []
    overlays.stop(NOW)


def test_a_topic_has_the_overlay_that_it_was_joined_with_and_none_when_it_is_left() -> None:
    overlays = _overlays()
    assert Hold(T, hints(T), "tracker") in _join(overlays, Overlay.TRACKER)
    assert (overlays.overlay(TOPIC), overlays.routing(TOPIC)) == (Overlay.TRACKER, None)
    assert _notices(_tracked(overlays, A)) == [NeighborUp(TOPIC, A)]
    left = overlays.leave(TOPIC, NOW)
    assert Release(T, "tracker") in left
    assert _notices(left) == [NeighborDown(TOPIC, A)]
    assert overlays.overlay(TOPIC) is None
    assert Hold(A, hints(A), f"ring {TOPIC.hex()[:16]}") in _join(overlays, Overlay.RING, NOW, A)
    assert overlays.routing(TOPIC) is not None
    assert _notices(_beside(overlays, A)) == [NeighborUp(TOPIC, A)]
    assert _notices(overlays.leave(TOPIC, NOW)) == [NeighborDown(TOPIC, A)]


def test_a_neighbour_in_both_is_announced_once_and_gone_with_the_last() -> None:
    overlays = _overlays()
    _join(overlays, Overlay.TRACKER)
    assert _notices(_tracked(overlays, A)) == [NeighborUp(TOPIC, A)]
    _join(overlays, Overlay.RING, NOW, A)
    assert _notices(_beside(overlays, A)) == []
    assert _notices(_beside(overlays, A, is_open=False)) == []
    assert _notices(_beside(overlays, A)) == []
    assert _notices(overlays.on_tracker_message(A, EdgeClose(TOPIC), NOW)) == []
    assert _notices(_beside(overlays, A, is_open=False)) == [NeighborDown(TOPIC, A)]
    assert _notices(_beside(overlays, A)) == [NeighborUp(TOPIC, A)]
    assert _notices(overlays.links(LinkDown(A, Reason.CRASHED), NOW)) == [NeighborDown(TOPIC, A)]


def test_the_old_overlay_is_left_a_while_after_the_new_one_has_neighbours_and_not_before() -> None:
    overlays = _overlays(60.0)
    _join(overlays, Overlay.TRACKER)
    _tracked(overlays, A)
    changed = _join(overlays, Overlay.RING, NOW, B)
    assert SetTimer(5.0, Tick(OWNER, "look", TOPIC)) in changed
    again = [SetTimer(5.0, Tick(OWNER, "look", TOPIC))]
    assert _look(overlays, NOW + 3600) == again, "nobody was met on the ring in an hour"
    routing = overlays.routing(TOPIC)
    assert routing is not None
    assert routing((A,), (A, B)) == [B], "in both: everyone but where it came from"
    overlays.links(LinkUp(B, HELLO, True), NOW + 3600)
    assert _notices(_beside(overlays, B, NOW + 3600)) == [NeighborUp(TOPIC, B)]
    assert _look(overlays, NOW + 3659) == again
    left = _look(overlays, NOW + 3660)
    assert _notices(left) == [NeighborDown(TOPIC, A)]
    assert Release(T, "tracker") in left
    assert _look(overlays, NOW + 4000) == []


def test_leaving_on_the_way_leaves_both() -> None:
    overlays = _overlays()
    _join(overlays, Overlay.TRACKER)
    _tracked(overlays, A)
    _join(overlays, Overlay.RING, NOW, B)
    overlays.links(LinkUp(B, HELLO, True), NOW)
    _beside(overlays, B)
    left = overlays.leave(TOPIC, NOW)
    assert CancelTimer(Tick(OWNER, "look", TOPIC)) in left
    assert _notices(left) == [NeighborDown(TOPIC, A), NeighborDown(TOPIC, B)]
    assert _look(overlays, NOW + 100) == []


def test_a_changed_mind_goes_by_the_neighbours_that_are_there_already() -> None:
    overlays = _overlays(60.0)
    _join(overlays, Overlay.TRACKER)
    _tracked(overlays, A)
    _join(overlays, Overlay.RING, NOW, B)
    overlays.links(LinkUp(B, HELLO, True), NOW)
    _beside(overlays, B)
    _join(overlays, Overlay.TRACKER, NOW + 30)
    assert _notices(_look(overlays, NOW + 89)) == []
    assert _notices(_look(overlays, NOW + 90)) == [NeighborDown(TOPIC, B)]
    assert overlays.overlay(TOPIC) is Overlay.TRACKER
