"""What a node tells others beside events: heads, the policy, revocations."""

from __future__ import annotations

from tests.delivery.voices import Voice
from tests.streams.stage import NOW, context_of

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.ids import AuthorId, DeviceId, PeerId
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.timers import Tick
from linnet.delivery.messages import ChainPlace, Heads, Revoked
from linnet.identity.cards import Revocation
from linnet.identity.text import Sort, to_text
from linnet.streams.commands import Policy
from linnet.streams.messages import PolicyIs
from linnet.streams.stream import Stream
from linnet.testing.identities import known_identity

A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)


def heads_to(effects: object, peer: PeerId) -> list[Heads]:
    return [
        e.message
        for e in effects  # type: ignore[attr-defined]
        if isinstance(e, Send) and e.peer == peer and isinstance(e.message, Heads)
    ]


def test_a_new_neighbour_is_told_how_far_the_chains_go() -> None:
    context = context_of()
    stream = Stream("tea", context)
    voice = Voice(topic=stream.topic)
    stream.intake.accept(voice.say(b"a", b"b"), NOW)
    place = ChainPlace(voice.identity.author, voice.identity.card.device, 0, 1, False)
    assert stream.announcing.greet(A, False, NOW) == [Send(A, Heads(stream.topic, (place,), 0))]


def test_our_own_chain_can_be_had_from_us() -> None:
    context = context_of("us")
    stream = Stream("tea", context)
    us = Voice("us", topic=stream.topic)
    stream.archive.keep(us.say(b"a"), NOW)
    stream.intake.restore_own()
    (heads,) = heads_to(stream.announcing.greet(A, False, NOW), A)
    assert heads.chains == (ChainPlace(context.author, context.device, 0, 0, True),)


def test_the_last_of_several_messages_is_never_full() -> None:
    """That is how the other end knows that it has heard of every chain."""
    for chains, sizes in ((0, [0]), (3, [3]), (512, [512, 0]), (513, [512, 1])):
        stream = Stream("tea", context_of())
        for number in range(chains):
            invented = AuthorId(number.to_bytes(32, "big"))
            chain = stream.intake._begin(invented, DeviceId(b"d" * 8), 0)
            chain.seen.add(0, 0)
        told = heads_to(stream.announcing.greet(A, False, NOW), A)
        assert [len(heads.chains) for heads in told] == sizes
        assert CHAINS_PER_MESSAGE == 512


def test_news_is_told_one_neighbour_a_period_until_each_was_told() -> None:
    context = context_of()
    stream = Stream("tea", context)
    stream.flood.up(A)
    stream.flood.up(B)
    voice = Voice(topic=stream.topic)
    chain, _, _ = stream.intake.accept(voice.say(), NOW)
    timer = SetTimer(5.0, Tick("announcing", "heads", stream.topic))
    assert stream.announcing.news(chain) == [timer]
    assert stream.announcing.news(chain) == []
    first = stream.announcing.fired(False, NOW)
    assert first[-1] == timer
    second = stream.announcing.fired(False, NOW)
    assert [len(heads_to([*first, *second], peer)) for peer in (A, B)] == [1, 1]
    assert timer not in second
    assert stream.announcing.fired(False, NOW) == [], "all have had this news"
    assert stream.announcing.news(chain) == [timer]
    answers = Tick("announcing", "answers", stream.topic)
    assert stream.announcing.stop() == [CancelTimer(timer.timer), CancelTimer(answers)]


def test_who_was_greeted_after_the_news_is_not_told_again() -> None:
    stream = Stream("tea", context_of())
    chain, _, _ = stream.intake.accept(Voice(topic=stream.topic).say(), NOW)
    stream.announcing.news(chain)
    stream.flood.up(A)
    assert len(heads_to(stream.announcing.greet(A, False, NOW), A)) == 1
    assert stream.announcing.fired(False, NOW) == []


def test_without_neighbours_nobody_is_told() -> None:
    stream = Stream("tea", context_of())
    chain, _, _ = stream.intake.accept(Voice(topic=stream.topic).say(), NOW)
    stream.announcing.news(chain)
    assert stream.announcing.fired(False, NOW) == []


def test_the_policy_goes_first_and_to_those_who_come_later() -> None:
    owner = known_identity("ann")
    context = context_of()
    stream = Stream(to_text(Sort.PERSON, owner.author) + "/news", context)
    ann = Voice("ann", topic=stream.topic)
    context.cards.learn(owner.card)
    unit = ann.sign([stream.governance.tail(Policy(publishers=()), 5)])
    assert stream.governance.read(unit)
    shown = PolicyIs(stream.topic, unit.unit, owner.card)
    assert stream.announcing.greet(A, False, NOW)[0] == Send(A, shown)
    assert stream.announcing.policy((A, B)) == [Send(A, shown), Send(B, shown)]


def test_revocations_are_passed_on_but_not_back() -> None:
    stream = Stream("tea", context_of())
    stream.flood.up(A)
    stream.flood.up(B)
    word = Revocation(AuthorId(b"p" * 32), DeviceId(b"d" * 8), 1, b"s" * 64)
    assert stream.announcing.revocation(word, A) == [Send(B, Revoked(stream.topic, word))]


def test_news_is_told_to_all_who_take_part_through_us_and_to_one_other() -> None:
    stream = Stream("tea", context_of())
    served = [PeerId(bytes([number]) * 32) for number in range(3)]
    for peer in (A, B, *served):
        stream.flood.up(peer)
        stream.flood.neighbors[peer].is_served = peer in served
    chain, _, _ = stream.intake.accept(Voice(topic=stream.topic).say(b"a"), NOW)
    stream.announcing.news(chain)
    told = [effect.peer for effect in stream.announcing.fired(False, NOW) if isinstance(effect, Send)]
    assert sorted(set(told) & set(served)) == served
    assert len(set(told) - set(served)) <= 1
