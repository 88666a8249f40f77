"""Neighbours of a room: mesh, graph and back; who is online; who is held no more."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.driven import Driven
from tests.overlay.harness import overlays_without_rings, peer_id

from linnet.core.effects import Hold, Release, Send
from linnet.core.hello import Hello
from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.inputs import LinkUp
from linnet.core.reasons import Reason
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.event.signing import verify_unit
from linnet.machine.outbox import Outbox
from linnet.overlay.full_mesh import SPARE
from linnet.overlay.messages import Join, Leave
from linnet.overlay.notices import JoinRefused, NeighborDown, NeighborUp
from linnet.rooms.config import RoomsConfig
from linnet.rooms.member_links import BOOK, Neighbors
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity
from linnet.trace.records import Kind, Record

ROOM = TopicId(b"r" * 32)
PURPOSE = f"mesh {ROOM.hex()[:16]}"
ANN, BEN = AuthorId(b"a" * 32), AuthorId(b"b" * 32)
TRACKER = Contact(peer_id("tracker"), ("tls://tracker:1",))
NOW = 1e9


def contact(number: int | str) -> Contact:
    return Contact(peer_id(number), (f"tls://{number}:1",))


class Scene:
    """One member of a room."""

    def __init__(self, mesh: int = 4, trackers: bool = False, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        identity = known_identity("us")
        self.context = Context(
            identity.device, identity.card, self.store, DeliveryConfig(), Random(1), verify_unit
        )
        known = (TRACKER,) if trackers else ()
        config = RoomsConfig(mesh=mesh)

        def make(out: Outbox) -> Neighbors:
            overlays = overlays_without_rings(out)
            self.member = overlays.member
            return Neighbors(ROOM, self.context, config, overlays, out, known)

        self.room = Driven(make)
        if trackers:
            self.member.handle_link_up(LinkUp(TRACKER.peer, Hello(1, 1, {}), dialed=True, network=None), NOW)
        self.room.start(NOW)

    def greet(self, number: int, person: AuthorId = ANN, now: float = NOW) -> list[Any]:
        self.context.links[peer_id(number)] = None
        effects: list[Any] = self.room.handle_greeting(peer_id(number), contact(number), person, now)
        return effects

    def down(self, number: int, now: float = NOW) -> list[Any]:
        self.context.links.pop(peer_id(number), None)
        effects: list[Any] = self.room.handle_link_down(peer_id(number), now)
        return effects


def hold(number: int) -> Hold:
    return Hold(peer_id(number), contact(number).hints, PURPOSE)


def release(number: int) -> Release:
    return Release(peer_id(number), PURPOSE)


def overlay(*numbers: int) -> Record:
    return Record(Kind.OVERLAY, ROOM, note=",".join(peer_id(number)[:4].hex() for number in numbers))


def test_all_who_are_told_of_are_held_and_are_online_once_they_greet() -> None:
    scene = Scene()
    assert scene.room.add([contact(1), contact(2), Contact(scene.context.peer, ("tls://us:1",))], NOW) == [
        hold(1),
        hold(2),
    ]
    assert list(scene.room.online) == []
    assert scene.room.knows(peer_id(1))
    assert not scene.room.knows(peer_id(9))
    assert scene.greet(1) == [overlay(1)]
    assert scene.greet(3) == [overlay(1, 3), hold(3)]
    assert scene.greet(3) == []
    assert list(scene.room.online) == [peer_id(1), peer_id(3)]
    assert scene.down(1) == [overlay(3)]
    assert scene.room.online == (peer_id(3),)


def test_after_a_restart_all_who_are_known_are_tried_at_once_and_who_was_met_is_tried_first() -> None:
    store = MemoryStore()
    before = Scene(store=store)
    for number in range(8):
        before.greet(number)
    before.room.add([contact(number) for number in range(8, 40)], NOW)
    scene = Scene(store=store)
    later = scene.room.stop(NOW)
    assert sorted(effect.peer for effect in later if isinstance(effect, Release)) == sorted(
        peer_id(number) for number in range(8)
    )
    again = scene.room.start(NOW)
    assert len([effect for effect in again if isinstance(effect, Hold)]) == 4 + SPARE
    assert scene.room.start(NOW) == again


def test_only_who_was_met_is_told_to_others_and_relays_before_them() -> None:
    scene = Scene()
    scene.greet(1)
    scene.room.add([contact(2)], NOW)
    assert scene.room.contacts(8) == (contact(1),)
    scene.room.set_relays([contact(7)], NOW)
    assert scene.room.contacts(8) == (contact(7), contact(1))
    assert scene.room.contacts(1) == (contact(7),)
    assert scene.room.knows(peer_id(7))


def test_a_relay_is_no_neighbor() -> None:
    scene = Scene()
    scene.greet(1)
    assert scene.room.set_relays([contact(1)], NOW) == [release(1), overlay()]
    assert scene.greet(1) == []
    assert scene.room.add([contact(1)], NOW) == []
    assert scene.room.online == ()


def test_who_is_expelled_is_let_go_and_not_held_again_whatever_others_tell() -> None:
    scene = Scene()
    scene.greet(1, ANN)
    scene.greet(2, BEN)
    scene.greet(3, BEN)
    scene.down(3)
    assert scene.room.expel(BEN, NOW) == [overlay(1), release(2), release(3)]
    assert scene.room.add([contact(2), contact(3)], NOW) == []
    assert scene.room.online == (peer_id(1),)
    assert not scene.room.knows(peer_id(2))
    assert scene.room.expel(peer_id(1), NOW) == [overlay(), release(1)]
    assert scene.room.expel(peer_id(99), NOW) == []
    assert scene.room.admit(BEN, NOW) == [hold(2), hold(3)]
    assert scene.room.add([contact(1), contact(2)], NOW) == []
    assert scene.greet(1, ANN) == [overlay(1), hold(1)]


def test_who_does_not_answer_or_does_not_greet_makes_room_for_the_next() -> None:
    scene = Scene(mesh=1)
    scene.room.add([contact(number) for number in range(SPARE + 3)], NOW)
    first, silent, *_ = (peer for peer in held(scene))
    failed = scene.room.handle_dial_failed(first, NOW)
    assert [type(effect) for effect in failed] == [Release, Hold]
    scene.context.links[silent] = None
    assert scene.room.add([], NOW) == []
    assert scene.room.add([], NOW + 9.0) == []
    passed = scene.room.add([], NOW + 10.0)
    assert passed[0] == Release(silent, PURPOSE)
    assert [type(effect) for effect in passed] == [Release, Hold]


def test_rumours_do_not_fill_more_than_the_book() -> None:
    scene = Scene(mesh=1)
    effects = scene.room.add([contact(number) for number in range(BOOK + 100)], NOW)
    dropped = [effect.peer for effect in effects if isinstance(effect, Record)]
    assert dropped == [peer_id(number) for number in range(100)]
    for peer in dropped:
        assert peer is not None
        assert not scene.room.knows(peer)
    tried = held(scene)
    for turn in range(150):
        failed = scene.room.handle_dial_failed(tried[turn], NOW)
        tried += [effect.peer for effect in failed if isinstance(effect, Hold)]
    assert len(tried) == 150 + 1 + SPARE
    assert not any(peer in tried for peer in dropped)


def held(scene: Scene) -> list[PeerId]:
    """Whom a room holds and does not hear: it says so when it is back."""
    return [effect.peer for effect in scene.room.start(NOW) if isinstance(effect, Hold)]


def test_without_trackers_a_large_room_holds_some_at_random() -> None:
    scene = Scene(mesh=4)
    for number in range(20):
        scene.greet(number)
    assert len(scene.room.online) == 20
    assert not scene.room._in_graph
    stopped = scene.room.stop(NOW)
    assert len([effect for effect in stopped if isinstance(effect, Release)]) == 4


def test_a_large_room_joins_the_graph_and_lets_the_mesh_go_once_it_stands() -> None:
    scene = Scene(mesh=4, trackers=True)
    for number in range(4):
        scene.greet(number)
    assert not scene.room._in_graph
    joined = scene.greet(4)
    assert any(isinstance(effect, Send) and isinstance(effect.message, Join) for effect in joined)
    assert Hold(TRACKER.peer, TRACKER.hints, "tracker") in joined
    assert not any(isinstance(effect, Release) for effect in joined)
    assert scene.room.handle_notice(NeighborUp(ROOM, peer_id(9)), NOW) == []
    assert scene.room.knows(peer_id(9))
    let_go = scene.room.handle_notice(NeighborUp(ROOM, peer_id(1)), NOW)
    assert let_go == [release(number) for number in range(4)]
    # Nobody is held for the mesh while the graph stands; whoever is there is online all the same.
    assert scene.room.add([contact(50)], NOW) == []
    assert scene.greet(9) == []
    assert len(scene.room.online) == 6
    # One neighbour less changes nothing; none at all brings the mesh back.
    assert scene.room.handle_notice(NeighborDown(ROOM, peer_id(1)), NOW) == []
    back = scene.room.handle_notice(NeighborDown(ROOM, peer_id(9)), NOW)
    assert back == [hold(number) for number in range(4)]


def test_a_tracker_that_takes_nobody_leaves_the_mesh_as_it_is() -> None:
    scene = Scene(mesh=2, trackers=True)
    for number in range(5):
        scene.greet(number)
    assert scene.room.handle_notice(JoinRefused(ROOM, Reason.TOO_MANY), NOW) == []
    released = [effect for effect in scene.room.stop(NOW) if isinstance(effect, Release)]
    assert [effect.peer for effect in released if effect.purpose == PURPOSE] == [peer_id(0), peer_id(1)]
    assert Release(TRACKER.peer, "tracker") in released


def shrink(scene: Scene, now: float) -> bool:
    """All but two go; whether the graph is left, looked at some time later."""
    for number in range(2, 5):
        scene.down(number, now)
    return not scene.room._in_graph


def test_a_room_that_shrinks_returns_to_the_mesh_but_not_at_once() -> None:
    scene = Scene(mesh=4, trackers=True)
    for number in range(5):
        scene.greet(number)
    for number in range(2):
        scene.room.handle_notice(NeighborUp(ROOM, peer_id(number)), NOW)
    assert not shrink(scene, NOW + 1.0)
    assert scene.room.add([], NOW + 599.0) == []
    left = scene.room.add([], NOW + 601.0)
    assert Send(TRACKER.peer, Leave(ROOM, moved=False)) in left
    assert hold(0) in left
    assert hold(1) in left
    assert not scene.room._in_graph


def test_a_room_that_only_seemed_small_stays_in_the_graph_longer_each_time() -> None:
    scene = Scene(mesh=4, trackers=True)
    now = NOW
    stays: list[float] = []
    for _ in range(8):
        for number in range(5):
            scene.greet(number, now=now)
        assert scene.room._in_graph
        joined = now
        shrink(scene, now)
        while scene.room._in_graph:
            now += 60.0
            scene.room.add([], now)
        stays.append(now - joined)
    assert stays == sorted(stays)
    assert stays[0] < 700.0
    assert 14_400.0 <= stays[-1] < 14_500.0


def test_a_stopped_room_holds_nobody_and_asks_for_nothing() -> None:
    scene = Scene()
    scene.greet(1)
    assert scene.room.stop(NOW) == [release(1)]
    assert scene.room.online == ()
    assert scene.room.add([contact(5)], NOW) == []
    assert scene.down(1) == []
    assert set(scene.room.start(NOW)) == {hold(1), hold(5)}


def joins(effects: list[Any]) -> bool:
    return any(isinstance(each, Send) and isinstance(each.message, Join) for each in effects)


def test_who_reaches_nobody_for_a_minute_asks_the_trackers() -> None:
    scene = Scene(trackers=True)
    scene.greet(1)
    scene.down(1)
    assert not joins(scene.room.handle_dial_failed(peer_id(1), NOW + 59.9))
    assert joins(scene.room.handle_dial_failed(peer_id(1), NOW + 60.0))
    assert scene.room._in_graph
    scene.room.handle_dial_failed(peer_id(1), NOW + 5000.0)
    assert scene.room._in_graph, "as long as it reaches nobody"
    scene.greet(1, now=NOW + 6000.0)
    assert not scene.room._in_graph


def test_trackers_are_not_asked_while_anyone_is_there_or_nobody_is_known() -> None:
    alone = Scene(trackers=True)
    assert not joins(alone.room.settle(NOW + 600.0)), "there is nobody else yet"
    scene = Scene(trackers=True)
    scene.greet(1)
    scene.greet(2)
    scene.down(1)
    assert not joins(scene.room.handle_dial_failed(peer_id(1), NOW + 600.0))
    related = Scene(trackers=True)
    related.greet(1)
    related.room.set_relays([contact(9)], NOW)
    related.context.links[peer_id(9)] = None
    related.down(1)
    assert not joins(related.room.handle_dial_failed(peer_id(1), NOW + 600.0))
    without = Scene()
    without.greet(1)
    without.down(1)
    assert not joins(without.room.handle_dial_failed(peer_id(1), NOW + 600.0))
