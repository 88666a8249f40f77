"""Every primitive as the groups use it: published vectors, another implementation, and what must fail."""

from __future__ import annotations

import secrets
from functools import partial

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.groups.primitives import (
    HPKE_OVERHEAD,
    Hidden,
    KeyPair,
    agree,
    check_public,
    expand,
    extract,
    hkdf,
    hpke_open,
    hpke_seal,
    key_pair,
    open_sealed,
    public_of,
    seal,
)
from linnet.identity.keys import SigningKey, verify
from linnet.sim.seeded_random import SeededEntropy

SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
KEY = st.binary(min_size=32, max_size=32)


def h(text: str) -> bytes:
    return bytes.fromhex(text)


# HKDF-SHA256: RFC 5869, appendix A.1 to A.3 (secret, salt, info, length, key, output).
HKDF_VECTORS = [
    (
        "0b" * 22,
        "000102030405060708090a0b0c",
        "f0f1f2f3f4f5f6f7f8f9",
        42,
        "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    ),
    (
        bytes(range(0x50)).hex(),
        bytes(range(0x60, 0xB0)).hex(),
        bytes(range(0xB0, 0x100)).hex(),
        82,
        "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
        "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
        "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
    ),
    (
        "0b" * 22,
        "",
        "",
        42,
        "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
    ),
]


@pytest.mark.parametrize(("secret", "salt", "info", "length", "key", "out"), HKDF_VECTORS)
def test_hkdf_of_rfc_5869(secret: str, salt: str, info: str, length: int, key: str, out: str) -> None:
    assert extract(h(salt), h(secret)) == h(key)
    assert expand(h(key), h(info), length) == h(out)
    assert hkdf(h(salt), h(secret), h(info), length) == h(out)


@given(st.binary(max_size=80), st.binary(max_size=80), st.binary(max_size=80), st.integers(1, 200))
def test_hkdf_is_the_librarys(salt: bytes, secret: bytes, info: bytes, length: int) -> None:
    assert hkdf(salt, secret, info, length) == HKDF(SHA256(), length, salt, info).derive(secret)


def test_hkdf_has_its_limits() -> None:
    assert len(expand(bytes(32), b"", 255 * 32)) == 255 * 32
    for length in (0, -1, 255 * 32 + 1):
        with pytest.raises(ValueError, match="HKDF"):
            expand(bytes(32), b"", length)


# X25519: RFC 7748, section 5.2 (scalar, point, result).
X25519_VECTORS = [
    (
        "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
        "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
        "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
    ),
    (
        "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
        "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
        "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
    ),
]


@pytest.mark.parametrize(("scalar", "point", "result"), X25519_VECTORS)
def test_x25519_of_rfc_7748(scalar: str, point: str, result: str) -> None:
    assert agree(h(scalar), h(point)) == h(result)


def test_x25519_iterated() -> None:
    scalar = point = bytes((9,)) + bytes(31)
    for count in range(1, 1_001):
        scalar, point = agree(scalar, point), scalar
        if count == 1:
            assert scalar.hex() == "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"
    assert scalar.hex() == "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51"


@given(KEY, KEY)
def test_x25519_is_the_librarys(one: bytes, other: bytes) -> None:
    pair = key_pair(lambda count: one[:count])
    assert pair == (one, X25519PrivateKey.from_private_bytes(one).public_key().public_bytes_raw())
    theirs = X25519PrivateKey.from_private_bytes(other)
    expected = theirs.exchange(X25519PublicKey.from_public_bytes(pair.public))
    assert agree(one, theirs.public_key().public_bytes_raw()) == expected


# The points of order 1, 2, 4 and 8, the values beyond the field that mean the same, and all of them again
# with the top bit set, which X25519 does not look at.
LOW_ORDER = [
    "00" * 32,
    "01" + "00" * 31,
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ec" + "ff" * 30 + "7f",
    "ed" + "ff" * 30 + "7f",
    "ee" + "ff" * 30 + "7f",
]
LOW_ORDER += [point[:62] + f"{int(point[62:], 16) | 0x80:02x}" for point in LOW_ORDER]


@pytest.mark.parametrize("point", LOW_ORDER)
def test_points_of_low_order_are_no_keys(point: str) -> None:
    secret = secrets.token_bytes(32)
    for use in (partial(agree, secret), check_public):
        with pytest.raises(RemoteError) as caught:
            use(h(point))
        assert caught.value.reason == Reason.MALFORMED
        assert secret.hex() not in str(caught.value)
    with pytest.raises(RemoteError):
        hpke_seal(h(point), b"", b"", secrets.token_bytes)
    with pytest.raises(RemoteError) as caught:
        hpke_open(secret, b"", h(point) + bytes(40))
    assert caught.value.reason == Reason.UNDECRYPTABLE


@pytest.mark.parametrize("small", range(2, 19))
def test_values_beyond_the_field_mean_what_they_are_modulo_it(small: int) -> None:
    secret = SeededEntropy(0, "beyond")(32)
    plain = small.to_bytes(32, "little")
    beyond = (2**255 - 19 + small).to_bytes(32, "little")
    topped = (2**255 + small).to_bytes(32, "little")
    assert agree(secret, plain) == agree(secret, beyond) == agree(secret, topped)
    assert check_public(beyond) is beyond


@pytest.mark.parametrize("length", [0, 1, 31, 33, 64])
def test_keys_of_other_lengths(length: int) -> None:
    for use in (partial(agree, bytes(32)), check_public):
        with pytest.raises(RemoteError) as caught:
            use(b"\x09" * length)
        assert caught.value.reason == Reason.MALFORMED


# ChaCha20-Poly1305: RFC 8439, section 2.8.2.
SUNSCREEN = (
    b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
    b"sunscreen would be it."
)
SUNSCREEN_KEY = bytes(range(0x80, 0xA0))
SUNSCREEN_NONCE = h("070000004041424344454647")
SUNSCREEN_BOUND = h("50515253c0c1c2c3c4c5c6c7")
SUNSCREEN_SEALED = h(
    "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b"
    "1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
    "3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691"
)


def test_chacha20_poly1305_of_rfc_8439() -> None:
    assert seal(SUNSCREEN_KEY, SUNSCREEN_NONCE, SUNSCREEN, SUNSCREEN_BOUND) == SUNSCREEN_SEALED
    assert open_sealed(SUNSCREEN_KEY, SUNSCREEN_NONCE, SUNSCREEN_SEALED, SUNSCREEN_BOUND) == SUNSCREEN


def test_chacha20_poly1305_with_padded_parts() -> None:
    sealed = seal(SUNSCREEN_KEY, SUNSCREEN_NONCE, b"123456789abcdef0", b"1")
    assert sealed.hex() == "ae49da6934cb77822c83ed9852e46c9e" + "dac9c841c168379dcf8f2bb8e22d6da2"


@given(KEY, st.binary(min_size=12, max_size=12), st.binary(max_size=100), st.binary(max_size=40))
def test_sealing_is_the_librarys(key: bytes, nonce: bytes, plaintext: bytes, bound: bytes) -> None:
    sealed = seal(key, nonce, plaintext, bound)
    assert len(sealed) == len(plaintext) + 16
    assert ChaCha20Poly1305(key).decrypt(nonce, sealed, bound) == plaintext


def refused(key: bytes, nonce: bytes, sealed: bytes, bound: bytes) -> str:
    with pytest.raises(RemoteError) as caught:
        open_sealed(key, nonce, sealed, bound)
    assert caught.value.reason == Reason.UNDECRYPTABLE
    assert caught.value.__cause__ is None
    return str(caught.value)


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_any_flipped_bit_keeps_it_shut() -> None:
    parts = (SUNSCREEN_KEY, SUNSCREEN_NONCE, SUNSCREEN_SEALED, SUNSCREEN_BOUND)
    told = set()
    for place, part in enumerate(parts):
        for bit in range(len(part) * 8):
            changed = list(parts)
            changed[place] = flipped(part, bit)
            key, nonce, sealed, bound = changed
            told.add(refused(key, nonce, sealed, bound))
    assert len(told) == 1


def test_any_cut_keeps_it_shut() -> None:
    for length in (*range(40), len(SUNSCREEN_SEALED) - 1):
        refused(SUNSCREEN_KEY, SUNSCREEN_NONCE, SUNSCREEN_SEALED[:length], SUNSCREEN_BOUND)
    refused(SUNSCREEN_KEY, SUNSCREEN_NONCE, SUNSCREEN_SEALED + b"\x00", SUNSCREEN_BOUND)
    refused(SUNSCREEN_KEY, SUNSCREEN_NONCE, SUNSCREEN_SEALED, b"")


# HPKE: RFC 9180, appendix A.2.1 (base mode of DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20Poly1305),
# the first message, and the same with nothing bound, as the groups use it.
HPKE_EPHEMERAL = h("f4ec9b33b792c372c1d2c2063507b684ef925b8c75a42dbcbf57d63ccd381600")
HPKE_SECRET = h("8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb")
HPKE_PUBLIC = h("4310ee97d88cc1f088a5576c77ab0cf5c3ac797f3d95139c6c84b5429c59662a")
HPKE_ENC = h("1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a")
HPKE_INFO = b"Ode on a Grecian Urn"
HPKE_PLAIN = b"Beauty is truth, truth beauty"
HPKE_SEALED = h("1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db21993c62ce81883d2dd1b51a28")
HPKE_KEY = h("ad2744de8e17f4ebba575b3f5f5a8fa1f69c2a07f6e7500bc60ca6e3e3ec1c91")
HPKE_NONCE = h("5c4d98150661b848853b547f")


def test_hpke_of_rfc_9180() -> None:
    assert public_of(HPKE_SECRET) == HPKE_PUBLIC
    sealed = hpke_seal(HPKE_PUBLIC, HPKE_INFO, HPKE_PLAIN, lambda count: HPKE_EPHEMERAL[:count], b"Count-0")
    assert sealed == HPKE_ENC + HPKE_SEALED
    assert hpke_open(HPKE_SECRET, HPKE_INFO, sealed, b"Count-0") == HPKE_PLAIN


def test_hpke_key_schedule_of_rfc_9180() -> None:
    sealed = hpke_seal(HPKE_PUBLIC, HPKE_INFO, HPKE_PLAIN, lambda count: HPKE_EPHEMERAL[:count])
    assert sealed == HPKE_ENC + ChaCha20Poly1305(HPKE_KEY).encrypt(HPKE_NONCE, HPKE_PLAIN, b"")


@given(KEY, st.binary(max_size=120), st.binary(max_size=200), st.integers(0, 2**32))
def test_hpke_is_the_librarys_both_ways(secret: bytes, info: bytes, plaintext: bytes, seed: int) -> None:
    theirs = X25519PrivateKey.from_private_bytes(secret)
    public = theirs.public_key().public_bytes_raw()
    ours = hpke_seal(public, info, plaintext, SeededEntropy(seed, "hpke"))
    assert len(ours) == len(plaintext) + HPKE_OVERHEAD
    assert SUITE.decrypt(ours, theirs, info=info) == plaintext
    assert hpke_open(secret, info, SUITE.encrypt(plaintext, theirs.public_key(), info=info)) == plaintext


def test_hpke_draws_one_key_for_each_message() -> None:
    drawn: list[int] = []

    def entropy(count: int) -> bytes:
        drawn.append(count)
        return secrets.token_bytes(count)

    sealed = {hpke_seal(HPKE_PUBLIC, b"", b"same", entropy) for _ in range(8)}
    assert len(sealed) == 8
    assert drawn == [32] * 8


def test_ed25519_refuses_a_scalar_beyond_the_order() -> None:
    """What signs the events of a group: a signature with the order added to its scalar is not another one."""
    key = SigningKey(bytes(range(32)))
    signature = key.sign(b"said")
    verify(key.public, b"said", signature)
    order = 2**252 + 27742317777372353535851937790883648493
    scalar = int.from_bytes(signature[32:], "little") + order
    with pytest.raises(RemoteError):
        verify(key.public, b"said", signature[:32] + scalar.to_bytes(32, "little"))


class Vault(Hidden, frozen=True):
    secret: bytes
    pair: KeyPair


def test_secrets_do_not_show_where_they_are_printed() -> None:
    pair = key_pair(SeededEntropy(0, "shown"))
    vault = Vault(b"swordfish", pair)
    shown = f"{vault!r} {vault} {pair!r} {pair} {[*vault.__rich_repr__()]}"
    assert "swordfish" not in shown
    assert repr(pair.secret)[2:-1] not in shown
    assert pair.secret.hex()[:8] not in shown


def test_hidden_values_are_kept_as_they_are() -> None:
    vault = Vault(b"swordfish", key_pair(SeededEntropy(0, "kept")))
    again = msgpack.decode(msgpack.encode(vault), type=Vault)
    assert again == vault
    assert isinstance(again.pair, KeyPair)
