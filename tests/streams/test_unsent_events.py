"""What a node on the edge published and no proxy has."""

from __future__ import annotations

from tests.delivery.voices import Voice, asked
from tests.streams.stage import NOW, Staged, context_of

from linnet.core.ids import Contact, PeerId
from linnet.delivery.messages import ChainPlace
from linnet.delivery.receipts import sign_receipt
from linnet.store.memory import MemoryStore
from linnet.streams.part import Unsent
from linnet.testing.identities import known_identity


def test_it_is_remembered_from_the_first_on_over_restarts_and_waits_again() -> None:
    store = MemoryStore()
    context = context_of(store=store)
    stream = Staged("tea", context)
    us = Voice("us", topic=stream.topic)
    for body in (b"old", b"new", b"newer"):
        stream.archive.keep(us.say(body), NOW)
    stream = Staged("tea", context)
    unsent = Unsent(context, stream.out)
    unsent.note_published(stream, 3)  # nothing was published after all
    assert unsent.streams() == []
    unsent.note_published(stream, 1)
    unsent.note_published(stream, 2)
    assert unsent.streams() == [("tea", 1)]
    again = context_of(store=store)
    stream = Staged("tea", again)
    assert asked(stream.out, Unsent(again, stream.out).recall, stream, 1) == []
    assert [unit.events[0].body for unit in stream.publisher.take_backlog()] == [b"new", b"newer"]


def test_it_is_forgotten_once_a_proxy_has_confirmed_it() -> None:
    context = context_of()
    stream = Staged("tea", context)
    us = Voice("us", topic=stream.topic)
    stream.archive.keep(us.say(b"a"), NOW)
    stream = Staged("tea", context)
    proxy = known_identity("proxy")
    stream.set_storage((Contact(PeerId(proxy.peer)),), NOW)
    unsent = Unsent(context, stream.out)
    unsent.note_published(stream, 0)
    assert unsent.is_in(stream)
    place = ChainPlace(context.author, context.device, 0, 0, True)
    stream.handle_receipt(proxy.peer, sign_receipt(proxy.device, stream.topic, True, NOW, (place,)), NOW)
    assert not unsent.is_in(stream)
    assert unsent.streams() == []
