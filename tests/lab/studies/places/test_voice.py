"""The voice of a study is the shipped one, and rests on what it said."""

from __future__ import annotations

from linnet.core.ids import AuthorId
from linnet.lab.studies.places.voice import Voice, card_of, host_of, key_of
from linnet.places.channel.packet import Modifier
from linnet.places.config import PlacesConfig
from linnet.places.multicast.fragmentation import Flag

NYM = AuthorId(b"n" * 32)


def test_numbers_go_on_from_message_to_message() -> None:
    voice = Voice(1, 2, PlacesConfig(hash_every=2))
    voice.announce("_message", (Modifier("=", "_a", b"1"),))
    open_message = voice.announce("_message_long", body=b"begin", more=True)
    voice.joined(NYM)
    voice.more(open_message, b"end", more=False)
    voice.parted(NYM)
    voice.keep_alive()
    heads = [head for _, head in voice.said]
    assert [(head.fragment, head.message, head.offset) for head in heads] == [
        (0, 1, 0), (1, 2, 0), (2, 3, 0), (3, 2, len(b"begin") + 20), (4, 4, 0), (5, 5, 0),
    ]  # fmt: skip
    assert [head.generation for head in heads] == [0, 0, 0, 0, 0, 1]
    assert heads[2].flags & (Flag.STATE | Flag.HASH) == Flag.STATE | Flag.HASH
    assert voice.parts.order.state.variables == {"_a": b"1"}
    assert voice.parts.order.signed == 3


def test_all_places_have_one_host_and_a_key_each() -> None:
    assert card_of(1) == host_of(1).card
    assert card_of(1) != card_of(2)
    assert key_of(1, 1).public != key_of(1, 2).public
    assert Voice(1, 1, PlacesConfig()).parts.id == key_of(1, 1).public
