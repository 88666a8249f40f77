"""The only thing that a relay says."""

from __future__ import annotations

from tests.rooms.relay.scenes import Station, World, card_of, peer_of

from linnet.core.effects import AfterCommit, Send
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data
from linnet.event.signing import recall_unit, verify_unit
from linnet.machine.outbox import Outbox, Promise
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.content import Member, Membership, content_of
from linnet.rooms.messages import RelaySend
from linnet.rooms.relay.admission import OwnMembership
from linnet.rooms.relay.event_cache import EventCache
from linnet.rooms.relay.ingest import Answers, Turn
from linnet.rooms.relay.usage import Budget
from linnet.trace.records import Kind, Record


class Scene:
    """A room as the relay has it, and what it says there."""

    def __init__(self, world: World) -> None:
        self.station = Station("r0")
        context = self.station.context
        for name in ("ann", "ben"):
            context.cards.learn(card_of(name))
            context.links[peer_of(name)] = None
        self.out = Outbox()
        self.cache = EventCache(world.room, self.station.store, context.cards, Budget(1), 1, self.out)
        self.dag = ControlDag(world.chronicle.create)
        for unit in world.chronicle.units.values():
            self.cache.keep_control(unit, False, 0.0)
            self.dag.add(unit.events[0])
        self.own = OwnMembership(context, self.dag, self.cache, self.out)
        self.turn = Turn(world.room, Answers(world.room), self.out)
        self.now = world.now

    def say(self, membership: Membership) -> None:
        self.own.say_membership(membership, self.turn, (peer_of("ann"),), (peer_of("ben"),), self.now)

    def promises(self) -> tuple[Promise, ...]:
        """What was promised since the last call, and nothing else was asked for."""
        self.turn.finish()
        (promise,) = self.out.take()
        assert isinstance(promise, AfterCommit)
        return promise.effects


def named() -> World:
    world = World()
    world.name_relay("r0")
    return world


def test_a_join_is_told_to_members_and_left_to_forwarding_for_relays() -> None:
    world = named()
    scene = Scene(world)
    scene.say(Membership.JOIN)
    record, send = scene.promises()
    assert isinstance(send, Send)
    assert send.peer == peer_of("ann")
    assert isinstance(send.message, Data)
    unit = send.message.unit
    event = verify_unit(unit, card_of("r0")).events[0]
    assert record == Record(Kind.PUBLISHED, world.room, event.id, event.device, 0, note="member")
    highest = world.chronicle.events[-1].tail.height or 0
    assert (event.seq, event.prev, event.tail.control, event.tail.deps, event.tail.height) == (
        0,
        None,
        world.control,
        world.control,
        highest + 1,
    )
    content = content_of(event.kind, event.body)
    assert isinstance(content, Member)
    assert content.membership is Membership.JOIN
    assert scene.own.standing is Membership.JOIN
    assert [entry.head for _, entry in scene.cache.from_peers(0, 0.0, 9)] == [event.id]


def test_a_leave_follows_in_the_same_chain_and_goes_to_relays_as_from_any_peer() -> None:
    scene = Scene(named())
    scene.say(Membership.JOIN)
    join = scene.turn.fresh[0].event
    scene.promises()
    scene.say(Membership.LEAVE)
    _, *sends = scene.promises()
    messages = {each.peer: each.message for each in sends if isinstance(each, Send)}
    relayed = messages[peer_of("ben")]
    assert isinstance(relayed, RelaySend)
    event = recall_unit(relayed.units[0]).events[0]
    assert (event.seq, event.prev, event.tail.control) == (1, join, (join,))
    assert isinstance(messages[peer_of("ann")], Data)
    assert scene.own.standing is Membership.LEAVE


def test_what_the_room_does_not_allow_is_not_said() -> None:
    scene = Scene(World())
    scene.say(Membership.JOIN)
    scene.turn.finish()
    (record,) = scene.out.take()
    assert isinstance(record, Record)
    assert (record.kind, record.reason) == (Kind.REJECTED, Reason.NOT_INVITED)
