"""Receipts: signed, the latest counts, nothing is guessed."""

from __future__ import annotations

import msgspec
import pytest
from tests.delivery.voices import TOPIC, Voice

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, DeviceId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery import receipts as receipts_module
from linnet.delivery.messages import ChainPlace, Receipt
from linnet.delivery.receipts import Ledger, sign_receipt
from linnet.identity.keys import SigningKey

KEY = SigningKey(b"r" * 32)
ANN = Voice()


def place(last: int) -> ChainPlace:
    return ChainPlace(ANN.identity.author, ANN.identity.card.device, 0, last, True)


def receipt(last: int, at: float = 10.0, storage: bool = True, key: SigningKey = KEY) -> Receipt:
    return sign_receipt(key, TOPIC, storage, at, (place(last),))


@pytest.mark.parametrize(
    "forged",
    [
        msgspec.structs.replace(receipt(4), chains=(place(5),)),
        msgspec.structs.replace(receipt(4), storage=False),
        msgspec.structs.replace(receipt(4), at_ms=11_000),
        msgspec.structs.replace(receipt(4), topic=b"u" * 32),
        msgspec.structs.replace(receipt(4), receiver=PeerId(SigningKey(b"x" * 32).public)),
    ],
    ids=["chains", "storage", "time", "topic", "receiver"],
)
def test_a_changed_one_is_forged(forged: Receipt) -> None:
    ledger = Ledger()
    with pytest.raises(RemoteError) as error:
        ledger.learn(forged, 20.0)
    assert error.value.reason is Reason.BAD_SIGNATURE
    assert ledger.receivers == {}
    assert ledger.latest == {}


def test_the_ledger_knows_what_it_was_told_and_when() -> None:
    ledger = Ledger()
    assert ledger.find_last(PeerId(KEY.public), ANN.key) == -1
    assert ledger.learn(receipt(4), 20.0)
    known = ledger.receivers[PeerId(KEY.public)]
    assert (known.chains, known.since) == ({ANN.key: 4}, {ANN.key: 20.0})
    assert ledger.find_last(PeerId(KEY.public), ANN.key) == 4
    assert ledger.find_last(PeerId(KEY.public), b"other") == -1
    assert ledger.latest == {PeerId(KEY.public): receipt(4)}


def test_an_older_one_is_no_news() -> None:
    ledger = Ledger()
    ledger.learn(receipt(4, at=10.0), 20.0)
    assert not ledger.learn(receipt(2, at=9.0), 21.0)
    assert not ledger.learn(receipt(9, at=9.0), 21.0)
    assert ledger.find_last(PeerId(KEY.public), ANN.key) == 4


def test_what_was_delivered_stays_delivered() -> None:
    """A receiver that lost its store says less later; the sender has still learned it."""
    ledger = Ledger()
    ledger.learn(receipt(4, at=10.0), 20.0)
    assert ledger.learn(receipt(2, at=11.0), 21.0)
    assert ledger.find_last(PeerId(KEY.public), ANN.key) == 4
    assert ledger.receivers[PeerId(KEY.public)].since == {ANN.key: 20.0}


def test_the_parts_of_one_statement_have_one_time() -> None:
    ledger = Ledger()
    assert ledger.learn(receipt(4), 20.0)
    assert ledger.learn(receipt(5), 20.0)
    assert ledger.find_last(PeerId(KEY.public), ANN.key) == 5


def test_there_is_a_most_of_receivers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipts_module, "MAX_RECEIVERS", 1)
    ledger = Ledger()
    assert ledger.learn(receipt(1), 20.0)
    with pytest.raises(RemoteError) as caught:
        ledger.learn(receipt(1, key=SigningKey(b"x" * 32)), 20.0)
    assert caught.value.reason is Reason.TOO_MANY
    assert ledger.learn(receipt(2, at=11.0), 20.0)


def chains(first: int, count: int) -> tuple[ChainPlace, ...]:
    """Chains that nobody has."""
    numbers = range(first, first + count)
    return tuple(ChainPlace(AuthorId(n.to_bytes(32, "big")), DeviceId(bytes(8)), 0, 5, True) for n in numbers)


def test_only_the_chain_that_is_asked_for_is_counted() -> None:
    """Whoever has a key can sign that it has chains that do not exist, as many as it likes."""
    ledger = Ledger(ANN.key)
    for number in range(3):
        said = (*chains(100 * number, 50), place(number))
        assert ledger.learn(sign_receipt(KEY, TOPIC, False, 10.0 + number, said), 20.0 + number)
    known = ledger.receivers[PeerId(KEY.public)]
    assert (known.chains, known.since) == ({ANN.key: 2}, {ANN.key: 22.0})


def test_receipts_with_too_many_chains_in_all_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipts_module, "MAX_PLACES", 100)
    ledger, other, last = Ledger(ANN.key), SigningKey(b"o" * 32), SigningKey(b"l" * 32)
    ledger.learn(sign_receipt(KEY, TOPIC, False, 10.0, chains(0, 60)), 20.0)
    ledger.learn(sign_receipt(other, TOPIC, False, 10.0, chains(0, 40)), 20.0)
    one_more = sign_receipt(last, TOPIC, True, 10.0, chains(0, 1))
    for too_much in (one_more, sign_receipt(KEY, TOPIC, False, 11.0, chains(0, 61))):
        with pytest.raises(RemoteError) as error:
            ledger.learn(too_much, 21.0)
        assert error.value.reason is Reason.TOO_MANY
    assert ledger.learn(one_more, 21.0, counts=True), "of a storage node that counts there is always room"
    assert ledger.learn(sign_receipt(KEY, TOPIC, False, 11.0, chains(0, 50)), 21.0)
    assert ledger.learn(sign_receipt(other, TOPIC, False, 11.0, chains(0, 49)), 21.0)
    assert sum(len(each.chains) for each in ledger.latest.values()) == 100
