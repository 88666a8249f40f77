"""Ed25519 as RFC 8032 has it: section 7.1, tests 1 to 3 and "SHA(abc)"."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey, device_id, verify

RFC_8032 = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
        "387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
        "4a7c15e9716ed28dc027beceea1ec40a",
    ),
    (
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
        "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e030"
        "3dca179c138ac17ad9bef1177331a704",
    ),
]
KEY = SigningKey(bytes(range(32)))


@pytest.mark.parametrize(("seed", "public", "message", "signature"), RFC_8032)
def test_rfc_8032(seed: str, public: str, message: str, signature: str) -> None:
    key = SigningKey(bytes.fromhex(seed))
    assert key.public.hex() == public
    assert key.sign(bytes.fromhex(message)).hex() == signature
    verify(bytes.fromhex(public), bytes.fromhex(message), bytes.fromhex(signature))


@given(st.binary(max_size=200), st.integers(0, 511))
def test_one_bit_changed_in_a_signature_is_noticed(message: bytes, bit: int) -> None:
    signature = bytearray(KEY.sign(message))
    signature[bit // 8] ^= 1 << bit % 8
    with pytest.raises(RemoteError) as caught:
        verify(KEY.public, message, bytes(signature))
    assert caught.value.reason is Reason.BAD_SIGNATURE


@given(st.binary(max_size=80), st.binary(max_size=80), st.binary(max_size=80))
def test_arbitrary_keys_and_signatures_raise_one_error(public: bytes, message: bytes, sig: bytes) -> None:
    with pytest.raises(RemoteError) as caught:
        verify(public, message, sig)
    assert caught.value.reason is Reason.BAD_SIGNATURE


def test_a_key_of_small_order_signs_nothing() -> None:
    identity_point = b"\x01" + bytes(31)
    with pytest.raises(RemoteError):
        verify(identity_point, b"anything", identity_point + bytes(32))


def test_the_same_entropy_gives_the_same_key() -> None:
    def entropy(count: int) -> bytes:
        return bytes(range(count))

    assert SigningKey.generate(entropy).public == KEY.public


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_seed_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="seed"):
        SigningKey(bytes(length))


def test_the_secret_is_not_shown() -> None:
    assert repr(KEY) == "SigningKey(public=03a107bff3ce…)"
    assert KEY.seed.hex() not in repr(KEY)


def test_a_device_id_is_the_beginning_of_a_hash() -> None:
    assert device_id(b"abc").hex() == "ba7816bf8f01cfea"  # FIPS 180-2, appendix B.1
