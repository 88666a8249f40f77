"""What storage nodes sign: two statements that cannot both be true are a proof, two honest ones never are."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.spaces import STORE_NUMBER
from linnet.delivery import storage_statements
from linnet.delivery.messages import ChainPlace, Contradiction, Kept, Shown
from linnet.delivery.storage_statements import (
    MOST_SHOWN,
    Contradictions,
    check_contradiction,
    check_kept,
    check_shown,
    contradicting_chain,
    sign_kept,
    sign_shown,
    store_number,
)
from linnet.identity.keys import SigningKey
from linnet.store.memory import MemoryStore

TOPIC, OTHER = TopicId(b"t" * 32), TopicId(b"u" * 32)
KEY, SECOND = SigningKey(b"k" * 32), SigningKey(b"l" * 32)
ANN, PHONE = AuthorId(b"a" * 32), DeviceId(b"d" * 8)
STORE, NEW = b"store  1", b"store  2"


def head(number: int, version: bytes = b"") -> EventId:
    return EventId((b"%d" % number + version).rjust(32, b"-"))


def kept(
    last: int,
    position: int,
    *,
    first: int = 0,
    end: EventId | None = None,
    store: bytes = STORE,
    key: SigningKey = KEY,
    topic: TopicId = TOPIC,
    at: float = 10.0,
    device: DeviceId = PHONE,
) -> Kept:
    place = ChainPlace(ANN, device, first, last, True)
    return sign_kept(key, topic, store, position, at, (place,), (end or head(last),))


def shown(
    number: int,
    position: int,
    *,
    id: EventId | None = None,
    reason: Reason | None = None,
    store: bytes = STORE,
    key: SigningKey = KEY,
) -> Shown:
    fields = (TOPIC, PeerId(key.public), store, position, 1, ANN, PHONE, number)
    return sign_shown(key, Shown(*fields, id, reason, bytes(64), None, None))


CONTRADICTIONS: dict[str, tuple[Kept, Kept | Shown]] = {
    "a chain that ends earlier later": (kept(50, 100), kept(12, 101)),
    "two ends without an append between them": (kept(50, 100), kept(51, 100)),
    "two ids of one number": (kept(50, 100), kept(50, 100, end=head(50, b"x"))),
    "two ids, the second in another range": (kept(50, 100), kept(50, 120, first=7, end=head(50, b"x"))),
    "a number that was stated is lacking without a reason": (
        kept(50, 100),
        shown(12, 100, reason=Reason.NOT_HELD),
    ),
    "the last number is shown with another id": (kept(50, 100), shown(50, 90, id=head(50, b"x"))),
}

HONEST: dict[str, tuple[Kept, Kept | Shown]] = {
    "the same again": (kept(50, 100), kept(50, 100, at=11.0)),
    "a chain that grows": (kept(12, 100), kept(50, 101)),
    "a chain that grows while the clock is set back": (kept(12, 100, at=500.0), kept(50, 101, at=3.0)),
    "the older statement arrives later": (kept(50, 101), kept(12, 100)),
    "the beginning was evicted": (kept(50, 100), kept(50, 100, first=40)),
    "evicted by age": (kept(50, 100), shown(12, 100, reason=Reason.RETENTION)),
    "evicted by size": (kept(50, 100), shown(50, 100, reason=Reason.QUOTA)),
    "damaged by the disk": (kept(50, 100), shown(12, 100, reason=Reason.DAMAGED)),
    "never stated": (kept(50, 100, first=20), shown(12, 100, reason=Reason.NOT_HELD)),
    "not yet there at the answer": (kept(50, 100), shown(12, 99, reason=Reason.NOT_HELD)),
    "shown": (kept(50, 100), shown(50, 100, id=head(50))),
    "another store: it was put back from a copy": (kept(50, 100), kept(12, 20, store=NEW)),
    "another store that lacks what the first one had": (
        kept(50, 100),
        shown(12, 120, reason=Reason.NOT_HELD, store=NEW),
    ),
    "another node": (kept(50, 100), kept(12, 101, key=SECOND)),
    "another stream": (kept(50, 100), kept(12, 101, topic=OTHER)),
    "another device": (kept(50, 100), kept(12, 101, device=DeviceId(b"e" * 8))),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_two_statements_that_cannot_both_be_true_are_a_proof(case: str) -> None:
    one, other = CONTRADICTIONS[case]
    assert check_contradiction(Contradiction(one, other)) == one.chains[0]
    if isinstance(other, Kept):
        assert contradicting_chain(other, one) is not None, "in either order"


@pytest.mark.parametrize("case", HONEST)
def test_what_honest_storage_nodes_sign_is_never_a_proof(case: str) -> None:
    one, other = HONEST[case]
    assert contradicting_chain(one, other) is None
    with pytest.raises(RemoteError):
        check_contradiction(Contradiction(one, other))


def test_nobody_is_proved_wrong_by_what_others_have_signed() -> None:
    one, other = kept(50, 100), kept(12, 101, key=SECOND)
    forged = replace(other, keeper=PeerId(KEY.public))
    lacking = replace(shown(12, 100, reason=Reason.NOT_HELD, key=SECOND), keeper=PeerId(KEY.public))
    for statement in (forged, lacking):
        with pytest.raises(RemoteError) as raised:
            check_contradiction(Contradiction(one, statement))
        assert raised.value.reason is Reason.BAD_SIGNATURE


@pytest.mark.parametrize(
    "changed",
    [
        {"topic": OTHER},
        {"store": NEW},
        {"position": 7},
        {"at_ms": 7},
        {"request": 7},
        {"since_ms": 7},
        {"refuses": Reason.QUOTA},
        {"done": False},
        {"chains": (ChainPlace(ANN, PHONE, 0, 51, True),)},
        {"heads": (head(1),)},
    ],
)
def test_every_field_of_a_statement_is_signed(changed: dict[str, object]) -> None:
    check_kept(kept(50, 100))
    with pytest.raises(RemoteError):
        check_kept(replace(kept(50, 100), **changed))


@pytest.mark.parametrize(
    "changed", [{"store": NEW}, {"position": 7}, {"request": 7}, {"number": 7}, {"id": head(7)}, {"id": None}]
)
def test_every_field_of_an_answer_is_signed(changed: dict[str, object]) -> None:
    check_shown(shown(50, 100, id=head(50)))
    with pytest.raises(RemoteError):
        check_shown(replace(shown(50, 100, id=head(50)), **changed))


def test_a_statement_has_an_id_for_each_chain() -> None:
    place = ChainPlace(ANN, PHONE, 0, 5, True)
    with pytest.raises(RemoteError) as raised:
        check_kept(sign_kept(KEY, TOPIC, STORE, 1, 1.0, (place, place), (head(5),)))
    assert raised.value.reason is Reason.MALFORMED


def test_proofs_outlive_a_restart_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_statements, "MAX_PROOFS", 2)
    store = MemoryStore()
    proofs = Contradictions(store.cells)
    keys = [SigningKey(bytes([number]) * 32) for number in range(3)]
    made = [Contradiction(kept(50, 100, key=key), kept(12, 101, key=key)) for key in keys]
    for proof in made:
        proofs.keep(proof)
    again = Contradictions(store.cells)
    for each in (proofs, again):
        assert [key.public in each for key in keys] == [False, True, True], "the oldest makes room"
    assert sorted(again.of_topic(TOPIC), key=lambda each: each.kept.keeper) == sorted(
        made[1:], key=lambda each: each.kept.keeper
    )
    assert [*again.of_topic(OTHER)] == []


def test_a_store_has_one_number_until_it_may_be_an_older_copy() -> None:
    cells, peer = MemoryStore().cells, PeerId(KEY.public)
    number = store_number(cells, peer, 1.0)
    assert (len(number), store_number(cells, peer, 2.0)) == (8, number)
    cells.delete(*STORE_NUMBER)
    assert store_number(cells, peer, 3.0) != number


def test_a_newcomer_is_shown_the_latest_proofs_alone() -> None:
    """Keys are free: who made a thousand proofs against his own must not have each newcomer sent them all."""
    proofs = Contradictions(MemoryStore().cells)
    keys = [SigningKey(bytes([number]) * 32) for number in range(1, 41)]
    for key in keys:
        proofs.keep(Contradiction(kept(5, 1, key=key), kept(3, 2, key=key)))
    proofs.keep(Contradiction(kept(5, 1, topic=OTHER), kept(3, 2, topic=OTHER)))
    told = [each.kept.keeper for each in proofs.of_topic(TOPIC)]
    assert told == [key.public for key in reversed(keys[-MOST_SHOWN:])]
    assert [each.topic for each in proofs.of_topic(OTHER)] == [OTHER]
