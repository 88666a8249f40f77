"""Who stands at the door says so itself, now, and for this place."""

from __future__ import annotations

import msgspec
import pytest

from linnet.core.errors import RemoteError
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.places.door import FRESH_MS, EntryCheck, make_enter
from linnet.places.messages import Enter
from linnet.sim.clock import START
from linnet.testing.identities import known_identity

PLACE = TopicId(b"t" * 32)
ANNA, EVE = known_identity("anna"), known_identity("eve")
NOW_MS = int(START * 1000)


def enter(at_ms: int = NOW_MS, place: TopicId = PLACE) -> Enter:
    return make_enter(
        ANNA.device,
        ANNA.card,
        place,
        at_ms,
        known=2,
        upto=3,
        state=4,
        text=b"_hello",
        prekeys=b"keys",
        term=5,
        opening=EventId(b"o" * 32),
    )


def refused(door: EntryCheck, asked: Enter, link: PeerId = ANNA.peer, now: float = START) -> Reason:
    with pytest.raises(RemoteError) as raised:
        door.check(asked, link, now)
    return raised.value.reason


def test_a_signed_word_of_the_peer_itself_is_taken_also_twice() -> None:
    door = EntryCheck(PLACE)
    door.check(enter(), ANNA.peer, START)
    door.check(enter(), ANNA.peer, START + 1)
    door.check(enter(NOW_MS + 5), ANNA.peer, START)
    assert refused(door, enter(NOW_MS + 4)) is Reason.STALE
    assert len(door) == 1


def test_it_cannot_be_replayed_from_elsewhere_later_or_into_another_place() -> None:
    door = EntryCheck(PLACE)
    assert refused(door, enter(), link=EVE.peer) is Reason.REPLAYING
    assert refused(door, enter(), now=START + FRESH_MS / 1000 + 1) is Reason.STALE
    assert refused(door, enter(NOW_MS + FRESH_MS + 1)) is Reason.FUTURE_TIME
    assert refused(door, enter(place=TopicId(b"u" * 32))) is Reason.UNKNOWN
    moved = msgspec.structs.replace(enter(place=TopicId(b"u" * 32)), place=PLACE)
    assert refused(door, moved) is Reason.BAD_SIGNATURE
    assert len(door) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"at_ms": NOW_MS + 1},
        {"known": 9},
        {"upto": 9},
        {"state": 9},
        {"text": b"_other"},
        {"prekeys": None},
        {"term": 6},
        {"opening": None},
        {"stranded": True},
        {"sig": bytes(64)},
    ],
)
def test_every_field_is_signed(change: dict[str, object]) -> None:
    assert refused(EntryCheck(PLACE), msgspec.structs.replace(enter(), **change)) is Reason.BAD_SIGNATURE


def test_the_card_must_be_signed_and_good_now() -> None:
    forged = msgspec.structs.replace(ANNA.card, label="x")
    asked = make_enter(ANNA.device, forged, PLACE, NOW_MS)
    assert refused(EntryCheck(PLACE), asked) is Reason.BAD_SIGNATURE
    later = ANNA.card.not_after + 1_000
    asked = make_enter(ANNA.device, ANNA.card, PLACE, later * 1000)
    assert refused(EntryCheck(PLACE), asked, now=later) is Reason.CARD_EXPIRED


def test_the_memory_is_bounded_and_forgets_only_what_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linnet.places.door.DEVICES", 1)
    door = EntryCheck(PLACE)
    door.check(enter(), ANNA.peer, START)
    other = make_enter(EVE.device, EVE.card, PLACE, NOW_MS)
    assert refused(door, other, link=EVE.peer) is Reason.TOO_MANY
    late = START + FRESH_MS / 1000 + 1
    door.check(make_enter(EVE.device, EVE.card, PLACE, int(late * 1000)), EVE.peer, late)
    assert len(door) == 1
