from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.identity.cards import issue_card
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, to_text
from linnet.node.relay_signing import (
    WINDOW_MS,
    Proof,
    SignedRequest,
    authorization,
    check_fresh,
    check_proof,
    read_proof,
    signed_bytes,
)
from linnet.sim.clock import START
from linnet.testing.identities import known_identity

PAGE = Path(__file__).parents[2] / "docs/reference/relay-http.md"
ANN = known_identity("ann")
RELAY = known_identity("relay").peer
TARGET = b"/linnet/relay/v1/x/resync"
BODY = b'{"cursor":null}'
TS = int(START * 1000)
NONCE = bytes(range(16))


REQUEST = SignedRequest(RELAY, "POST", TARGET, BODY)


def header(**changed: object) -> str:
    given = {
        "key": ANN.device,
        "card": ANN.card,
        "request": REQUEST,
        "ts": TS,
        "nonce": NONCE,
    }
    return authorization(**(given | changed))  # type: ignore[arg-type]


def reason_of(text: str | None) -> Reason:
    with pytest.raises(RemoteError) as caught:
        read_proof(text)
    return caught.value.reason


def test_what_was_signed_is_accepted() -> None:
    proof = read_proof(header())
    assert (proof.device, proof.person, proof.ts, proof.nonce) == (ANN.peer, ANN.author, TS, NONCE)
    check_proof(proof, REQUEST, START)
    check_fresh(proof, START, 0)


CHANGES = {
    "method": REQUEST._replace(method="PUT"),
    "target": REQUEST._replace(target=TARGET + b"?x"),
    "body": REQUEST._replace(body=BODY + b" "),
    "relay": REQUEST._replace(relay=ANN.peer),
}


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_is_changed_is_noticed(what: str) -> None:
    with pytest.raises(RemoteError) as caught:
        check_proof(read_proof(header()), CHANGES[what], START)
    assert caught.value.reason is Reason.BAD_SIGNATURE


@pytest.mark.parametrize("changed", [{"ts": TS + 1}, {"nonce": bytes(16)}])
def test_time_and_nonce_are_signed(changed: dict[str, object]) -> None:
    was, is_now = read_proof(header()), read_proof(header(**changed))
    mixed = Proof(is_now.card, is_now.card_bytes, is_now.ts, is_now.nonce, was.sig)
    with pytest.raises(RemoteError, match="bad_signature"):
        check_proof(mixed, REQUEST, START)


def test_nobody_can_put_a_card_of_his_own_on_the_request_of_another() -> None:
    mallory = SigningKey(bytes(32))
    false = issue_card(mallory, ANN.peer, ANN.card.not_before, ANN.card.not_after)
    was = read_proof(header())
    swapped = Proof(false, msgspec.msgpack.encode(false), was.ts, was.nonce, was.sig)
    with pytest.raises(RemoteError, match="bad_signature"):
        check_proof(swapped, REQUEST, START)


def test_a_card_must_be_signed_and_of_today() -> None:
    forged = msgspec.structs.replace(ANN.card, sig=bytes(64))
    with pytest.raises(RemoteError, match="the card: the signature does not fit"):
        check_proof(read_proof(header(card=forged)), REQUEST, START)
    good = read_proof(header())
    for moment, reason in ((0.0, Reason.CARD_NOT_YET_VALID), (START + 10**9, Reason.CARD_EXPIRED)):
        with pytest.raises(RemoteError) as caught:
            check_proof(good, REQUEST, moment)
        assert caught.value.reason is reason


def test_the_card_of_another_device_is_refused() -> None:
    assert reason_of(header(card=known_identity("ben").card)) is Reason.WRONG_KEY


def test_time_has_a_window_and_begins_with_the_relay() -> None:
    proof = read_proof(header())
    check_fresh(proof, START + WINDOW_MS / 1000, 0)
    check_fresh(proof, START - WINDOW_MS / 1000, TS)
    late, early = START + WINDOW_MS / 1000 + 0.1, START - WINDOW_MS / 1000 - 0.1
    for now, began, reason in (
        (late, 0, Reason.STALE),
        (early, 0, Reason.FUTURE_TIME),
        (START, TS + 1, Reason.STALE),
    ):
        with pytest.raises(RemoteError) as caught:
            check_fresh(proof, now, began)
        assert caught.value.reason is reason
        assert str(int(now * 1000)) in caught.value.detail


def test_no_or_another_authorization() -> None:
    assert reason_of(None) is Reason.AUTH_FAILED
    assert reason_of("") is Reason.AUTH_FAILED
    assert reason_of("Bearer abc") is Reason.AUTH_FAILED


GOOD = header()


@pytest.mark.parametrize(
    "text",
    [
        "Linnet-Sig",
        "Linnet-Sig " + "x" * 5000,
        GOOD + ',ts="1"',
        GOOD + ',more="1"',
        GOOD.replace('ts="', 'ts="x'),
        GOOD.replace('ts="', 'ts="1111111111111111'),
        GOOD.replace('nonce="', 'nonce="AAAA'),
        GOOD.replace('sig="', 'sig="AAAA'),
        GOOD.replace('sig="', 'sig="A'),
        re.sub('card="[^"]*"', 'card="AAAA"', GOOD),
        GOOD.replace('device="ld1', 'device="lp1'),
        re.sub(',nonce="[^"]*"', "", GOOD),
    ],
)
def test_malformed_authorizations_are_named(text: str) -> None:
    assert reason_of(text) is Reason.MALFORMED


def test_order_and_spaces_do_not_matter() -> None:
    parts = GOOD.removeprefix("Linnet-Sig ").split(",")
    assert read_proof("linnet-sig  " + " , ".join(reversed(parts))) == read_proof(GOOD)


@given(st.text(max_size=200) | st.text('Linet-Sgdvcarxo="1,A+/ ', max_size=300).map("Linnet-Sig ".__add__))
def test_any_text_is_an_authorization_or_refused(text: str) -> None:
    with pytest.raises(RemoteError):
        read_proof(text)


def test_the_worked_example_of_the_reference_is_right() -> None:
    """Every value on the page follows from those that it begins with."""
    page = PAGE.read_text()
    values = dict(re.findall(r"^\| `([a-z_ ]+)` \| `([^`]+)` \|", page, re.MULTILINE))
    person, device = (
        SigningKey(bytes.fromhex(values["person seed"])),
        SigningKey(bytes.fromhex(values["device seed"])),
    )
    relay = PeerId(SigningKey(bytes.fromhex(values["relay seed"])).public)
    card = issue_card(person, device.public, 1_700_000_000, 1_800_000_000, "phone")
    method, target, body = values["method"], values["target"].encode(), values["body"].encode()
    request = SignedRequest(relay, method, target, body)
    ts, nonce = int(values["ts"]), bytes.fromhex(values["nonce"])
    card_bytes = msgspec.msgpack.encode(card)
    assert values["relay"] == to_text(Sort.DEVICE, relay)
    assert base64.b64decode(values["card"]) == card_bytes
    assert values["card digest"] == hashlib.sha256(card_bytes).hexdigest()
    assert values["body digest"] == hashlib.sha256(body).hexdigest()
    signed = signed_bytes(request, ts, nonce, card_bytes)
    assert values["signed bytes"] == signed.hex()
    told = authorization(device, card, request, ts, nonce)
    assert f"Authorization: {told}" in page
    check_proof(read_proof(told), request, ts / 1000)
