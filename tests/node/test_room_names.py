from __future__ import annotations

import pytest
from msgspec import Struct

from linnet.core.errors import BadText
from linnet.core.ids import TopicId
from linnet.identity.lookup import SHOWN
from linnet.identity.text import topic_text
from linnet.node.rooms import choose_room


class Listed(Struct, frozen=True):
    room: TopicId
    name: str | None

    @property
    def text(self) -> str:
        return topic_text(self.room)


TEA = Listed(TopicId(b"a" * 32), "tea")
CHESS = Listed(TopicId(b"b" * 32), "chess")
NAMELESS = Listed(TopicId(b"c" * 32), None)
ROOMS = [TEA, CHESS, NAMELESS]


def wrong(text: str, rooms: list[Listed]) -> str:
    with pytest.raises(BadText) as caught:
        choose_room(text, rooms)
    return str(caught.value)


def test_a_room_has_three_names() -> None:
    assert choose_room(TEA.text, ROOMS) == TEA
    assert choose_room(TEA.text.upper(), ROOMS) == TEA
    assert choose_room(CHESS.text[:9], ROOMS) == CHESS
    assert choose_room("chess", ROOMS) == CHESS
    assert choose_room(" Tea ", ROOMS) == TEA


def test_the_same_letters_count_before_similar_ones() -> None:
    loud = Listed(TopicId(b"d" * 32), "TEA")
    assert choose_room("tea", [loud, TEA]) == TEA
    assert "can be 2 rooms" in wrong("Tea", [loud, TEA])


def test_several_candidates_are_listed() -> None:
    other = Listed(TopicId(b"d" * 32), "tea")
    said = wrong("tea", [TEA, CHESS, other])
    assert "'tea' can be 2 rooms; say which by its id" in said
    assert TEA.text[:12] in said
    assert other.text[:12] in said
    assert CHESS.text[:12] not in said


def test_none_lists_what_there_is() -> None:
    said = wrong("coffee", ROOMS)
    assert "there is no room 'coffee' here; there are" in said
    assert all(room.text[:12] in said for room in ROOMS)
    assert "join one: linnet room join" in wrong("coffee", [])
    many = [Listed(TopicId(bytes([number]) * 32), None) for number in range(SHOWN + 3)]
    assert "and 3 more" in wrong("coffee", many)


def test_a_mistyped_id_is_told_as_such() -> None:
    assert "fails its checksum" in wrong(TEA.text[:-1] + ("a" if TEA.text[-1] != "a" else "b"), ROOMS)


def test_the_prefix_alone_and_nothing_mean_no_room() -> None:
    assert "there is no room" in wrong("lt1", ROOMS)
    assert "there is no room" in wrong("", ROOMS)
