"""A stream between a node on the edge and its proxy."""

from __future__ import annotations

from tests.delivery.voices import Voice, asked
from tests.rooms.chronicle import person_key
from tests.streams.stage import NOW, Staged, context_of

from linnet.core.effects import Send
from linnet.core.ids import Contact, PeerId
from linnet.delivery.messages import ChainPlace, Heads, Watch
from linnet.identity.cards import revoke
from linnet.streams.config import StorageRule
from linnet.streams.membership import digest, meet, reached

PROXY = PeerId(b"q" * 32)


def test_both_sides_have_the_same_digest_once_they_know_the_same() -> None:
    mobile, proxy = context_of("mobile"), context_of("proxy")
    here, there = Staged("tea", mobile), Staged("tea", proxy)
    there.keep(StorageRule("tea"))
    assert digest(here, mobile) == digest(there, proxy)
    voice = Voice(topic=here.topic)
    units = [voice.say(b"a"), voice.say(b"b", b"c")]
    for unit in units:
        there.ingest.accept(unit, NOW)
    here.ingest.accept(units[0], NOW)
    assert digest(here, mobile) != digest(there, proxy)
    here.ingest.accept(units[1], NOW)
    assert digest(here, mobile) == digest(there, proxy)
    place = ChainPlace(voice.identity.author, voice.identity.card.device, 0, 2, False)
    assert reached(here) == reached(there) == (place,)


def test_what_came_too_early_has_not_been_reached() -> None:
    stream = Staged("tea", context_of())
    voice = Voice(topic=stream.topic)
    units = [voice.say(body) for body in (b"a", b"b", b"c")]
    stream.ingest.wants_all = True
    stream.ingest.accept(units[0], NOW)
    stream.ingest.accept(units[2], NOW)
    assert [place.last for place in reached(stream)] == [0]


def test_a_revocation_that_one_side_lacks_shows() -> None:
    context = context_of()
    stream = Staged("tea", context)
    voice = Voice("ann", topic=stream.topic)
    stream.ingest.accept(voice.say(b"a"), NOW)
    before = digest(stream, context)
    context.cards.learn(voice.identity.card)
    context.cards.revoke(revoke(person_key("ann"), voice.identity.card.device, 5))
    assert digest(stream, context) != before


def test_who_knows_the_same_is_told_nothing_and_counts_as_a_neighbour() -> None:
    context = context_of()
    stream = Staged("tea", context)
    stream.set_storage((Contact(PROXY),), NOW)
    context.links[PROXY] = None
    assert asked(stream.out, meet, stream, PROXY, True, NOW) == []
    assert stream.flood.neighbors[PROXY].is_served
    assert stream.ingest.anchored


def test_who_knows_something_else_is_told_everything() -> None:
    context = context_of()
    stream = Staged("tea", context)
    stream.set_storage((Contact(PROXY),), NOW)
    context.links[PROXY] = None
    assert asked(stream.out, meet, stream, PROXY, False, NOW) == [Send(PROXY, Heads(stream.topic, (), 0))]
    assert not stream.ingest.anchored


def test_a_receipt_is_asked_for_only_where_one_is_owed() -> None:
    context = context_of()
    stream = Staged("tea", context)
    us = Voice("us", topic=stream.topic)
    stream.archive.keep(us.say(b"a"), NOW)
    stream = Staged("tea", context)
    stream.set_storage((Contact(PROXY),), NOW)
    context.links[PROXY] = None
    assert stream.publisher.is_unconfirmed
    assert Send(PROXY, Watch(stream.topic, True)) in asked(stream.out, meet, stream, PROXY, True, NOW)
