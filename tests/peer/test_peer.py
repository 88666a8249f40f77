"""The node machine: who gets which input, what is looped back, what is for the driver."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from linnet.content.config import ContentConfig
from linnet.content.messages import Reached
from linnet.core.effects import AfterCommit, Deliver, Dial, HangUp, Probe, Reply, Send
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import Contact, EventId
from linnet.core.inputs import Asked, DialFailed, LinkDown, LinkUp, Probed, Received, TimerFired
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.delivery.items import CaughtUp
from linnet.delivery.messages import Heads, Resend
from linnet.event.event import Event
from linnet.identity.cards import Revocation, revoke
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, to_text
from linnet.machine.commands import Declined, Done
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.messages import Join
from linnet.peer.config import LinkConfig, PeerConfig
from linnet.peer.interface import (
    AnyCommand,
    Block,
    Connect,
    Disconnect,
    Effect,
    Examine,
    Input,
    NodeStatus,
    Start,
    Stop,
)
from linnet.peer.messages import PROTOCOLS, Needed, Ping, Pong
from linnet.peer.peer import Peer
from linnet.rooms.room import Room
from linnet.sim.clock import START
from linnet.sim.seeded_random import SeededEntropy
from linnet.store.memory import MemoryStore
from linnet.streams.commands import Declare, Policy, Publish, Published, Revoke, Subscribe, Subscribed
from linnet.streams.config import StorageRule
from linnet.streams.stream_names import topic_of
from linnet.testing.identities import known_identity
from linnet.trace.records import Kind, Record

US, ANN = known_identity("us"), known_identity("ann")
HINTS = ("tls://us:1",)
NOW = START + 10.0
TIME = int(NOW * 1_000_000)
THERE = Hello(WIRE_VERSION, WIRE_VERSION, PROTOCOLS)


class Alone:
    """A node machine by itself: its timers fire, its commits land, nobody else is there."""

    def __init__(self, store: MemoryStore | None = None, **config: object) -> None:
        self.store = store or MemoryStore()
        self.peer = Peer(PeerConfig(**config), US, self.store, Random(1))  # type: ignore[arg-type]
        self.now = NOW
        self.requests = 0
        self.effects: list[Effect] = []
        self.items: list[object] = []
        self.timers: dict[Timer, float] = {}

    def give(self, event: Input) -> list[Effect]:
        effects = self.peer.handle(event, self.now)
        flat: list[Effect] = []
        for effect in effects:
            flat += effect.effects if isinstance(effect, AfterCommit) else [effect]
        for effect in flat:
            if type(effect).__name__ == "SetTimer":
                self.timers[effect.timer] = self.now + effect.delay  # type: ignore[union-attr]
            elif type(effect).__name__ == "CancelTimer":
                self.timers.pop(effect.timer, None)  # type: ignore[union-attr]
            elif isinstance(effect, Deliver):
                self.items += effect.items
        self.effects += flat
        return flat

    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        while self.timers:
            timer, at = min(self.timers.items(), key=lambda item: item[1])
            if at > end:
                break
            del self.timers[timer]
            self.now = max(self.now, at)
            self.give(TimerFired(timer))
        self.now = end

    def ask(self, command: AnyCommand) -> object:
        self.requests += 1
        replies = [e for e in self.give(Asked(self.requests, command)) if isinstance(e, Reply)]
        return replies[0].result if replies else None


def of_its_own() -> Alone:
    """A node that is its own tracker and storage."""
    alone = Alone(
        trackers=(Contact(US.peer, HINTS),), is_tracker=True, storage=(StorageRule("tea"),), listens=HINTS
    )
    assert alone.ask(Start()) == Done()
    return alone


def test_it_says_what_it_is() -> None:
    peer = Alone(is_tracker=True, storage=(StorageRule("tea"),), listens=HINTS, agent="me").peer
    hello = peer.hello
    assert (hello.roles, hello.listens, hello.agent) == (("tracker", "storage"), HINTS, "me")
    asked_for = ("kademlia", "content", "fast")
    assert hello.protocols == {name: PROTOCOLS[name] for name in PROTOCOLS if name not in asked_for}
    everything = Alone(kademlia=KademliaConfig(), content=ContentConfig()).peer
    assert everything.hello.protocols == PROTOCOLS
    assert Alone().peer.roles == ()


def test_a_node_may_be_its_own_tracker_and_storage() -> None:
    alone = of_its_own()
    assert alone.ask(Subscribe(1, "tea")) == Subscribed(topic_of("tea"), False)
    outcome = alone.ask(Publish("tea", (b"a", b"b")))
    assert isinstance(outcome, Published)
    alone.pass_time(5)
    assert [item.body for item in alone.items if isinstance(item, Event)] == [b"a", b"b"]
    alone.items.clear()
    assert isinstance(alone.ask(Subscribe(2, "tea", since=0.0)), Subscribed)
    alone.pass_time(10)
    assert [item.body for item in alone.items if isinstance(item, Event)] == [b"a", b"b"]
    assert any(isinstance(item, CaughtUp) and item.reason is None for item in alone.items)
    status = alone.ask(Examine())
    assert isinstance(status, NodeStatus)
    (graph,) = status.tracked
    assert graph.edges == ((US.peer, ()),)
    (stream,) = status.streams
    assert (stream.tracker, stream.stores) == (US.peer, True)


def test_an_input_that_fails_has_no_effect_not_even_later(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Alone()

    class Broken:
        def __iter__(self) -> Iterator[Room]:
            raise ValueError("planted")

    with monkeypatch.context() as patch:
        patch.setattr(alone.peer.parts.rooms, "_registry", Broken())
        with pytest.raises(ValueError, match="planted"):
            alone.give(LinkUp(ANN.peer, THERE, True, None))
    assert alone.give(Received(ANN.peer, Ping(7))) == [Send(ANN.peer, Pong(7, TIME))]


def test_nothing_that_is_meant_for_itself_reaches_the_driver() -> None:
    alone = of_its_own()
    alone.ask(Subscribe(1, "tea", since=0.0))
    alone.ask(Publish("tea", (b"a",), confirm=2.0))
    alone.pass_time(60)
    assert [e for e in alone.effects if isinstance(e, Send | Dial | HangUp) and e.peer == US.peer] == []


def test_links_are_asked_for_and_let_go_by_command() -> None:
    alone = Alone()
    assert alone.ask(Connect(Contact(ANN.peer, HINTS))) == Done()
    assert Dial(ANN.peer, HINTS, is_ours=True) in alone.effects
    effects = alone.give(LinkUp(ANN.peer, THERE, True, None))
    assert Send(ANN.peer, Ping(1)) in effects
    assert Send(ANN.peer, Needed(True)) in effects
    assert alone.ask(Disconnect(ANN.peer)) == Done()
    assert Send(ANN.peer, Needed(False)) in alone.effects
    alone.give(Received(ANN.peer, Pong(1)))
    status = alone.ask(Examine())
    assert isinstance(status, NodeStatus)
    assert [(peer.peer, peer.up, peer.rtt) for peer in status.peers] == [(ANN.peer, True, 0.0)]


def test_a_link_to_ourselves_or_to_whom_we_block_is_declined_with_the_reason() -> None:
    alone = Alone()
    for command in (Connect(Contact(US.peer, HINTS)), Block(US.peer, True)):
        declined = alone.ask(command)
        assert isinstance(declined, Declined)
        assert (declined.reason, "node itself" in declined.detail) == (Reason.MALFORMED, True)
    alone.ask(Block(ANN.peer, True))
    alone.effects.clear()
    assert alone.ask(Connect(Contact(ANN.peer, HINTS))) == Declined(
        Reason.BLOCKED, "this device is blocked here"
    )
    assert not [effect for effect in alone.effects if isinstance(effect, Dial)]
    alone.ask(Block(ANN.peer, False))
    assert alone.ask(Connect(Contact(ANN.peer, HINTS))) == Done()


def test_a_lost_link_and_a_failed_dial_are_tried_again() -> None:
    alone = Alone()
    alone.ask(Connect(Contact(ANN.peer, HINTS)))
    alone.effects.clear()
    alone.give(DialFailed(ANN.peer, Reason.CONNECTION_REFUSED))
    alone.pass_time(1)
    assert alone.effects.count(Dial(ANN.peer, HINTS, is_ours=True)) == 1
    alone.give(LinkUp(ANN.peer, THERE, True, None))
    alone.give(LinkDown(ANN.peer, Reason.REMOTE_CLOSED))
    alone.pass_time(1)
    assert alone.effects.count(Dial(ANN.peer, HINTS, is_ours=True)) == 2
    alone.give(Probed(ANN.peer, None))


def test_a_blocked_peer_stays_blocked_after_a_restart() -> None:
    alone = Alone()
    alone.ask(Connect(Contact(ANN.peer, HINTS)))
    alone.give(LinkUp(ANN.peer, THERE, True, None))
    assert alone.ask(Block(ANN.peer, True)) == Done()
    assert HangUp(ANN.peer, Reason.BLOCKED) in alone.effects
    again = Alone(alone.store)
    assert again.give(LinkUp(ANN.peer, THERE, False, None)) == [HangUp(ANN.peer, Reason.BLOCKED)]
    assert again.ask(Block(ANN.peer, False)) == Done()
    assert Alone(alone.store).give(LinkUp(ANN.peer, THERE, False, None)) != [HangUp(ANN.peer, Reason.BLOCKED)]


def test_more_control_messages_than_allowed_end_the_link() -> None:
    alone = Alone(links=LinkConfig(control_rate=1.0))
    alone.give(LinkUp(ANN.peer, THERE, False, None))
    for _ in range(10):
        assert alone.give(Received(ANN.peer, Ping(1))) == [Send(ANN.peer, Pong(1, TIME))]
    rejected = Record(Kind.REJECTED, peer=ANN.peer, reason=Reason.FLOODING, note="more messages than allowed")
    assert alone.give(Received(ANN.peer, Ping(1))) == [rejected, HangUp(ANN.peer, Reason.FLOODING)]


def test_events_of_content_and_answers_to_them_have_a_budget_of_their_own() -> None:
    content = ContentConfig(event_budget=10)
    alone = Alone(links=LinkConfig(control_rate=1.0), kademlia=KademliaConfig(), content=content)
    alone.give(LinkUp(ANN.peer, THERE, False, None))
    reached = Received(ANN.peer, Reached(EventId(bytes(32)), "stock", 1, 0))
    reasons = [each.reason for _ in range(50) for each in alone.give(reached) if isinstance(each, Record)]
    assert reasons == [Reason.STALE] * 40 + [Reason.QUOTA] * 10
    assert not any(isinstance(effect, HangUp) for effect in alone.effects)


def test_what_is_said_of_a_stream_that_was_not_joined_is_rejected() -> None:
    alone = Alone()
    topic = topic_of("tea")
    rejected = Record(Kind.REJECTED, topic, peer=ANN.peer, reason=Reason.NOT_JOINED)
    assert alone.give(Received(ANN.peer, Heads(topic, ()))) == [rejected]


def test_stopping_leaves_closes_and_answers() -> None:
    alone = of_its_own()
    alone.give(LinkUp(ANN.peer, THERE, False, None))
    alone.ask(Subscribe(1, "tea"))
    assert alone.ask(Stop()) == Done()
    assert HangUp(ANN.peer, Reason.SHUTDOWN) in alone.effects
    assert Record(Kind.OFFLINE) in alone.effects
    status = alone.ask(Examine())
    assert isinstance(status, NodeStatus)
    assert status.streams == ()


def test_commands_that_make_no_sense_are_declined_with_a_reason() -> None:
    alone = of_its_own()
    alone.ask(Subscribe(1, "tea"))

    forged = revoke(SigningKey(b"x" * 32), US.card.device, 1)
    forged = Revocation(US.author, forged.device, forged.at, forged.sig)
    cases: list[tuple[AnyCommand, Reason]] = [
        (Subscribe(1, "tea"), Reason.IN_USE),
        (Subscribe(1, "coffee"), Reason.IN_USE),
        (Subscribe(2, "a\nb"), Reason.MALFORMED),
        (Subscribe(2, "tea", name=""), Reason.MALFORMED),
        (Subscribe(2, "tea", name="x" * 200), Reason.MALFORMED),
        (Subscribe(2, "tea", name="n", since=5.0), Reason.UNSUPPORTED),
        (Subscribe(2, "tea", name="n", live=False), Reason.UNSUPPORTED),
        (Unsubscribe(9), Reason.UNKNOWN),
        (Consumed(9, 1), Reason.UNKNOWN),
        (Publish("tea", ()), Reason.MALFORMED),
        (Publish("tea", (b"x" * 1_000_000,)), Reason.TOO_LARGE),
        (Declare("tea", Policy()), Reason.NOT_A_PUBLISHER),
        (Revoke(forged), Reason.BAD_SIGNATURE),
    ]
    for command, reason in cases:
        outcome = alone.ask(command)
        assert isinstance(outcome, Declined), command
        assert outcome.reason is reason, command


def test_a_name_can_be_used_by_one_durable_subscription_at_a_time() -> None:
    alone = of_its_own()
    assert alone.ask(Subscribe(1, "tea", name="mine")) == Subscribed(topic_of("tea"), False)
    outcome = alone.ask(Subscribe(2, "tea", name="mine"))
    assert isinstance(outcome, Declined)
    assert outcome.reason is Reason.IN_USE
    assert alone.ask(Unsubscribe(1)) == Done()
    assert alone.ask(Subscribe(2, "tea", name="mine")) == Subscribed(topic_of("tea"), True)


def test_a_stream_that_we_may_not_publish_to_can_still_be_joined() -> None:
    """The refusal once threw away the effects of joining."""

    tracker = known_identity("tracker")
    alone = Alone(trackers=(Contact(tracker.peer, HINTS),))
    alone.ask(Start())
    owned = to_text(Sort.PERSON, ANN.author) + "/news"
    outcome = alone.ask(Publish(owned, (b"x",)))
    assert isinstance(outcome, Declined)
    assert outcome.reason is Reason.NOT_A_PUBLISHER
    assert Dial(tracker.peer, HINTS, False) in alone.effects


def test_me_is_the_person_of_this_node() -> None:
    alone = of_its_own()
    assert isinstance(alone.ask(Declare("me/diary", Policy(publishers=()))), Published)
    assert isinstance(alone.ask(Publish("me/diary", (b"dear",))), Published)


def test_a_revoked_device_stops_publishing_itself() -> None:

    person = SigningKey.generate(SeededEntropy(0, "identity/us"))
    alone = of_its_own()
    assert alone.ask(Revoke(revoke(person, US.card.device, 1))) == Done()
    outcome = alone.ask(Publish("tea", (b"x",)))
    assert isinstance(outcome, Declined)
    assert outcome.reason is Reason.CARD_REVOKED


def test_a_tracker_shows_its_graphs() -> None:
    alone = of_its_own()
    status = alone.ask(Examine())
    assert isinstance(status, NodeStatus)
    (graph,) = status.tracked
    assert graph.topic == topic_of("tea")
    assert Alone().peer.roles == ()
    other = Alone().ask(Examine())
    assert isinstance(other, NodeStatus)
    assert other.tracked == ()


class Refused(Alone):
    """A node machine that finds nobody where they say they are."""

    def __init__(self, **config: object) -> None:
        super().__init__(**config)  # type: ignore[arg-type]
        self.probes: list[tuple[float, str]] = []

    def give(self, event: Input) -> list[Effect]:
        effects = super().give(event)
        for probe in [each for each in effects if isinstance(each, Probe)]:
            self.probes.append((self.now, probe.hints[0]))
            effects += self.give(Probed(probe.peer, Reason.CONNECTION_REFUSED))
        return effects


def test_a_tracker_tries_ever_new_addresses_ten_times_a_minute_and_the_last_one_in_the_end() -> None:
    alone = Refused(is_tracker=True)
    alone.ask(Start())
    alone.give(LinkUp(ANN.peer, THERE, False, None))
    for step in range(600):
        where = (f"tls://victim:{1 + step}",)
        alone.give(Received(ANN.peer, Join(topic_of("tea"), (), where, 4, False, False)))
        alone.pass_time(0.25)
    alone.pass_time(120)
    probes = alone.probes
    assert max(sum(at <= each < at + 60.0 for each, _ in probes) for at, _ in probes) == 10
    assert probes[-1][1] == "tls://victim:600"


def test_a_probe_that_waits_is_told_with_the_reason() -> None:
    alone = Alone(is_tracker=True, links=LinkConfig(dials=1))
    alone.ask(Start())
    alone.give(LinkUp(ANN.peer, THERE, False, None))
    for port in (1, 2):
        alone.effects.clear()
        alone.give(Received(ANN.peer, Join(topic_of("tea"), (), (f"tls://ann:{port}",), 4, False, False)))
        alone.give(Probed(ANN.peer, None))
    note = "tried 1 times within a minute where it says it is: it has to wait"
    assert Record(Kind.CONTROL, peer=ANN.peer, reason=Reason.TOO_MANY, note=note) in alone.effects


def test_a_protocol_that_the_other_side_lacks_is_never_used() -> None:
    alone = Alone()
    alone.give(Asked(1, Subscribe(1, "tea")))
    topic = topic_of("tea")
    older = Hello(WIRE_VERSION, WIRE_VERSION, {"link": 1, "overlay": 1})
    up = alone.give(LinkUp(ANN.peer, older, False, None))
    assert Send(ANN.peer, Ping(1)) in up, "what it speaks is spoken"
    answers = alone.give(Received(ANN.peer, Resend(topic, ANN.author, ANN.card.device, 0, 1)))
    (record,) = answers
    assert isinstance(record, Record)
    assert (record.kind, record.reason, record.peer) == (Kind.DROPPED, Reason.UNSUPPORTED, ANN.peer)
    alone.give(LinkDown(ANN.peer, Reason.REMOTE_CLOSED))
    alone.give(LinkUp(ANN.peer, THERE, False, None))
    (answer,) = alone.give(Received(ANN.peer, Resend(topic, ANN.author, ANN.card.device, 0, 1)))
    assert isinstance(answer, Send), "it was updated meanwhile"
