"""Looking for secrets: what the search finds, so that finding nothing says something."""

from __future__ import annotations

import base64

import pytest
from nacl.bindings import crypto_scalarmult_base
from tests.edge.coast import Coast
from tests.edge.secrets_of import forms, found_in, key_secrets, pair_secrets, sealed_secrets

from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, to_text
from linnet.peer.messages import CODEC
from linnet.sim.luck import SeededEntropy
from linnet.streams.commands import Declare, Policy
from linnet.streams.names import topic_of

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
