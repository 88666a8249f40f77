"""What a node tells others beside events: heads, the policy, revocations."""

from __future__ import annotations

from tests.delivery.voices import Voice, asked
from tests.streams.stage import NOW, Staged, context_of

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import AuthorId, Contact, DeviceId, PeerId
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.reasons import Reason
from linnet.delivery.messages import ChainPlace, Heads, Revoked
from linnet.identity.cards import Revocation
from linnet.identity.text import Sort, to_text
from linnet.machine.outbox import Outbox
from linnet.streams.announcements import Anchor, AnchorDue, AnswersDue, HeadsDue, UnheardDue
from linnet.streams.commands import Policy
from linnet.streams.messages import PolicyIs
from linnet.streams.stream_names import topic_of
from linnet.testing.identities import known_identity
from linnet.trace.records import Kind, Record

A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)


def heads_to(effects: object, peer: PeerId) -> list[Heads]:
    return [
        e.message
        for e in effects  # type: ignore[attr-defined]
        if isinstance(e, Send) and e.peer == peer and isinstance(e.message, Heads)
    ]


def test_a_new_neighbour_is_told_how_far_the_chains_go() -> None:
    context = context_of()
    stream = Staged("tea", context)
    voice = Voice(topic=stream.topic)
    stream.ingest.accept(voice.say(b"a", b"b"), NOW)
    place = ChainPlace(voice.identity.author, voice.identity.card.device, 0, 1, False)
    assert asked(stream.out, stream.announcements.greet_neighbor, A, False, NOW) == [
        Send(A, Heads(stream.topic, (place,), 0))
    ]


def test_our_own_chain_can_be_had_from_us() -> None:
    context = context_of("us")
    stream = Staged("tea", context)
    us = Voice("us", topic=stream.topic)
    stream.archive.keep(us.say(b"a"), NOW)
    stream.ingest.restore_own()
    (heads,) = heads_to(asked(stream.out, stream.announcements.greet_neighbor, A, False, NOW), A)
    assert heads.chains == (ChainPlace(context.author, context.device, 0, 0, True),)


def test_the_last_of_several_messages_is_never_full() -> None:
    """That is how the other end knows that it has heard of every chain."""
    for chains, sizes in ((0, [0]), (3, [3]), (512, [512, 0]), (513, [512, 1])):
        stream = Staged("tea", context_of())
        for number in range(chains):
            invented = AuthorId(number.to_bytes(32, "big"))
            chain = stream.ingest._begin(invented, DeviceId(b"d" * 8), 0)
            chain.seen.add(0, 0)
        told = heads_to(asked(stream.out, stream.announcements.greet_neighbor, A, False, NOW), A)
        assert [len(heads.chains) for heads in told] == sizes
        assert CHAINS_PER_MESSAGE == 512


def test_news_is_told_one_neighbour_a_period_until_each_was_told() -> None:
    context = context_of()
    stream = Staged("tea", context)
    stream.flood.up(A)
    stream.flood.up(B)
    voice = Voice(topic=stream.topic)
    chain, _, _ = stream.ingest.accept(voice.say(), NOW)
    timer = SetTimer(5.0, HeadsDue(stream.topic))
    assert asked(stream.out, stream.announcements.note_news, chain) == [timer]
    assert asked(stream.out, stream.announcements.note_news, chain) == []
    first = asked(stream.out, stream.announcements.tell_news, False, NOW)
    assert first[-1] == timer
    second = asked(stream.out, stream.announcements.tell_news, False, NOW)
    assert [len(heads_to([*first, *second], peer)) for peer in (A, B)] == [1, 1]
    assert timer not in second
    assert asked(stream.out, stream.announcements.tell_news, False, NOW) == [], "all have had this news"
    assert asked(stream.out, stream.announcements.note_news, chain) == [timer]
    assert asked(stream.out, stream.announcements.stop) == [
        CancelTimer(HeadsDue(stream.topic)),
        CancelTimer(AnswersDue(stream.topic)),
        CancelTimer(UnheardDue(stream.topic)),
    ]


class Told:
    """A stream whose neighbour was told of an event."""

    def __init__(self) -> None:
        self.stream = Staged("tea", context_of())
        self.voice = Voice(topic=self.stream.topic)
        self.stream.flood.up(A)
        self.effects = self.say()

    def say(self) -> list[object]:
        chain, _, _ = self.stream.ingest.accept(self.voice.say(), NOW)
        self.stream.announcements.note_news(chain)
        return asked(self.stream.out, self.stream.announcements.tell_news, False, NOW)

    def place(self, last: int) -> ChainPlace:
        return ChainPlace(self.voice.identity.author, self.voice.identity.card.device, 0, last, False)

    def hear(self, last: int, peer: PeerId = A) -> None:
        self.stream.handle_heads(peer, Heads(self.stream.topic, (self.place(last),), 0), NOW)

    def rounds(self, count: int) -> list[int]:
        """In which of the next rounds the neighbour is told again."""
        told = {
            number: heads_to(asked(self.stream.out, self.stream.announcements.repeat_heads, False, NOW), A)
            for number in range(1, count + 1)
        }
        return [number for number, heads in told.items() if heads]


ROUND = 25.0


def test_who_does_not_show_what_it_was_told_is_told_again_ever_later_and_then_no_more() -> None:
    told = Told()
    timer = SetTimer(ROUND, UnheardDue(told.stream.topic))
    assert told.effects[-1] == timer
    assert told.rounds(15) == [2, 4, 8]
    note = "told how far chains go, and shows them not"
    given_up = Record(Kind.CONTROL, told.stream.topic, events=1, peer=A, reason=Reason.TIMEOUT, note=note)
    assert asked(told.stream.out, told.stream.announcements.repeat_heads, False, NOW) == [given_up]
    assert asked(told.stream.out, told.stream.announcements.repeat_heads, False, NOW) == []


def test_what_is_told_again_is_what_was_not_shown_alone() -> None:
    told = Told()
    other = Voice("cid", topic=told.stream.topic)
    chain, _, _ = told.stream.ingest.accept(other.say(), NOW)
    told.stream.announcements.note_news(chain)
    told.stream.announcements.tell_news(False, NOW)
    told.hear(0)
    told.stream.announcements.repeat_heads(False, NOW)
    (again,) = heads_to(asked(told.stream.out, told.stream.announcements.repeat_heads, False, NOW), A)
    assert [place.device for place in again.chains] == [other.identity.card.device]


def test_who_shows_what_it_was_told_is_not_told_again() -> None:
    told = Told()
    told.hear(0)
    assert asked(told.stream.out, told.stream.announcements.repeat_heads, False, NOW) == []
    told.say()
    told.hear(0)
    assert told.rounds(3) == [2], "it has not shown the second event"
    told.hear(1)
    assert told.rounds(3) == []


def test_who_has_shown_before_it_was_told_is_not_told_again() -> None:
    told = Told()
    told.hear(1)  # It has more than we do, and will not say so again.
    told.say()
    assert told.rounds(3) == []


def test_who_is_gone_is_not_told_again() -> None:
    told = Told()
    told.stream.handle_neighbor_down(A, NOW)
    assert asked(told.stream.out, told.stream.announcements.repeat_heads, False, NOW) == []
    other = Told()
    other.stream.handle_link_down(A, NOW)
    assert asked(other.stream.out, other.stream.announcements.repeat_heads, False, NOW) == []


def test_a_newcomer_need_not_show_what_was_there_but_who_takes_part_through_us_must() -> None:
    for is_served, repeats in ((False, []), (True, [2])):
        told = Told()
        told.hear(0)
        told.stream.flood.neighbors[A].is_served = is_served
        told.stream.announcements.greet_neighbor(A, False, NOW)
        assert told.rounds(3) == repeats


def test_who_was_greeted_after_the_news_is_not_told_again() -> None:
    stream = Staged("tea", context_of())
    chain, _, _ = stream.ingest.accept(Voice(topic=stream.topic).say(), NOW)
    stream.announcements.note_news(chain)
    stream.flood.up(A)
    assert len(heads_to(asked(stream.out, stream.announcements.greet_neighbor, A, False, NOW), A)) == 1
    assert asked(stream.out, stream.announcements.tell_news, False, NOW) == []


def test_without_neighbours_nobody_is_told() -> None:
    stream = Staged("tea", context_of())
    chain, _, _ = stream.ingest.accept(Voice(topic=stream.topic).say(), NOW)
    stream.announcements.note_news(chain)
    assert asked(stream.out, stream.announcements.tell_news, False, NOW) == []


def test_the_policy_goes_first_and_to_those_who_come_later() -> None:
    owner = known_identity("ann")
    context = context_of()
    stream = Staged(to_text(Sort.PERSON, owner.author) + "/news", context)
    ann = Voice("ann", topic=stream.topic)
    context.cards.learn(owner.card)
    unit = ann.sign([stream.governance.tail(Policy(publishers=()), 5)])
    assert stream.governance.read(unit)
    shown = PolicyIs(stream.topic, unit.unit, owner.card)
    assert asked(stream.out, stream.announcements.greet_neighbor, A, False, NOW)[0] == Send(A, shown)
    assert asked(stream.out, stream.announcements.send_policy, (A, B)) == [Send(A, shown), Send(B, shown)]


def test_revocations_are_passed_on_but_not_back() -> None:
    stream = Staged("tea", context_of())
    stream.flood.up(A)
    stream.flood.up(B)
    word = Revocation(AuthorId(b"p" * 32), DeviceId(b"d" * 8), 1, b"s" * 64)
    assert asked(stream.out, stream.announcements.send_revocation, word, A) == [
        Send(B, Revoked(stream.topic, word))
    ]


def test_news_is_told_to_all_who_take_part_through_us_and_to_one_other() -> None:
    stream = Staged("tea", context_of())
    served = [PeerId(bytes([number]) * 32) for number in range(3)]
    for peer in (A, B, *served):
        stream.flood.up(peer)
        stream.flood.neighbors[peer].is_served = peer in served
    chain, _, _ = stream.ingest.accept(Voice(topic=stream.topic).say(b"a"), NOW)
    stream.announcements.note_news(chain)
    told = [
        effect.peer
        for effect in asked(stream.out, stream.announcements.tell_news, False, NOW)
        if isinstance(effect, Send)
    ]
    assert sorted(set(told) & set(served)) == served
    assert len(set(told) - set(served)) <= 1


def test_one_storage_node_is_held_until_it_answered() -> None:
    out, topic = Outbox(), topic_of("weather")
    node = Contact(PeerId(b"s" * 32), ("tls://s:1",))
    anchor = Anchor(topic, context_of("ann"), out)
    timer, purpose = AnchorDue(topic), f"anchor {topic.hex()[:16]}"
    assert asked(out, anchor.release) == []
    assert anchor.hold_one([node]) == node.peer
    assert out.take() == [Hold(node.peer, node.hints, purpose), SetTimer(5.0, timer)]
    assert anchor.peer == node.peer
    assert asked(out, anchor.release) == [CancelTimer(timer), Release(node.peer, purpose)]
    assert asked(out, anchor.release) == []
