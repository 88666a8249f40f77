"""Looking for secrets: what the search finds, so that finding nothing says something."""

from __future__ import annotations

import base64

import msgspec
import pytest
from nacl.bindings import crypto_scalarmult_base
from tests.edge.coast import Coast
from tests.edge.secrets_of import forms, found_in, key_secrets, pair_secrets, room_secrets, sealed_secrets
from tests.edge.shore import Shore

from linnet.edge.commands import Sleep, Wake
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, to_text
from linnet.peer.messages import CODEC
from linnet.rooms.event_types import Newcomers
from linnet.sim.seeded_random import SeededEntropy
from linnet.streams.commands import Declare, Policy
from linnet.streams.stream_names import topic_of

SECRET = bytes(range(7, 39))


@pytest.mark.parametrize(
    "written",
    [SECRET, SECRET.hex().encode(), base64.b32encode(SECRET), base64.urlsafe_b64encode(SECRET).rstrip(b"=")],
)
def test_a_secret_is_found_in_any_form(written: bytes) -> None:
    assert found_in(b"before" + written + b"behind", [SECRET]) == [SECRET]
    assert found_in(b"before" + written[:-6] + b"behind", [SECRET]) == []
    assert SECRET in forms(SECRET)


def test_pairs_are_found_wherever_they_are() -> None:
    pair = [SECRET, crypto_scalarmult_base(SECRET)]
    assert list(pair_secrets({"a": [1, {"b": pair}], "c": [bytes(32), bytes(32)]})) == [SECRET]


def test_nothing_secret_of_a_mobile_is_in_what_its_proxy_hears_and_keeps() -> None:
    """Keys of the person, of the device and of a sealed stream: in messages either way, and in the store."""
    coast = Coast("p0", "q0", "m0", "m1")
    entropy = SeededEntropy(coast.seed, "identity/m0")
    person, device = SigningKey.generate(entropy), SigningKey.generate(entropy)
    assert device.public == coast.peer("m0")
    stream = f"{to_text(Sort.PERSON, person.public)}/diary"
    coast.ask("m0", Declare(stream, Policy(), True), wait=5.0)
    for number in range(5):
        coast.publish("m0", f"the eagle lands at {number}", stream=stream, wait=2.0)
    coast.run(60.0)
    sealed = sealed_secrets(coast.stores["m0"].cells)
    assert len(sealed) >= 2
    secrets = [*key_secrets(person), *key_secrets(device), *sealed]
    said = [CODEC.encode(message) for _, *ends, message, _ in coast.heard if "q0" in ends]
    kept = [entry.raw for _, entry in coast.stores["q0"].log.read(topic_of(stream), 0, 99)]
    assert len(said) > 10
    assert len(kept) >= 5
    for content in (*said, *kept):
        assert found_in(content, secrets) == []
        assert b"eagle" not in content


def test_nothing_that_a_mobile_signs_names_its_proxy() -> None:
    """So it can leave without asking: events and cards are as good through any other."""
    coast = Coast("p0", "q0", "m0")
    for number in range(3):
        coast.publish("m0", f"{number}", wait=2.0)
    signed = [entry.raw for _, entry in coast.stores["m0"].log.read(topic_of("weather"), 0, 99)]
    signed.append(msgspec.msgpack.encode(coast.identity["m0"].card))
    assert len(signed) == 4
    for content in signed:
        assert found_in(content, [bytes(coast.peer("q0"))]) == []
        assert b"q0" not in content


def eagle(newcomers: Newcomers | None) -> Shore:
    """A day of a room: two who are there, one who comes and goes behind the proxy, and all speak."""
    shore = Shore("r0", "ann", "bob", "mia")
    shore.found("ann", "r0", "bob", "mia", newcomers=newcomers)
    shore.run(10.0)
    for number, name in enumerate(("ann", "mia", "bob", "mia")):
        shore.say(name, f"the eagle lands at {number}")
        shore.run(5.0)
    shore.ask("mia", Sleep())
    shore.say("bob", "the eagle sleeps")
    shore.run(60.0)
    shore.ask("mia", Wake())
    shore.run(30.0)
    assert sum("eagle" in body for body in shore.heard("mia")) == 5
    return shore


def test_nothing_of_an_encrypted_room_can_be_read_in_all_that_a_proxy_hears_says_keeps_and_records() -> None:
    """Plaintext, keys of persons and devices, and every secret of the group that a member still holds."""
    shore = eagle(Newcomers.FROM_NOW)
    secrets: list[bytes] = []
    for name in ("ann", "bob", "mia"):
        entropy = SeededEntropy(shore.seed, f"identity/{name}")
        person, device = SigningKey.generate(entropy), SigningKey.generate(entropy)
        assert device.public == shore.peer(name)
        secrets += [*key_secrets(person), *key_secrets(device)]
        held = room_secrets(shore.stores[name].cells, shore.room)
        assert held, "a member has secrets of the group"
        secrets += held
    seen = [*shore.wire("r0"), *shore.kept("r0"), *shore.logged("r0")]
    assert len(shore.wire("r0")) > 50
    assert len(shore.kept("r0")) > 20
    assert len(shore.logged("r0")) > 5
    whole = b"\n".join(seen)
    assert b"eagle" not in whole
    assert found_in(whole, secrets) == []


def test_of_a_public_room_the_same_search_finds_the_words() -> None:
    shore = eagle(None)
    assert any(b"eagle" in each for each in shore.wire("r0"))
    assert any(b"eagle" in each for each in shore.kept("r0"))
