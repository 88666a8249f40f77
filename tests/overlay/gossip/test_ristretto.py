"""The group: the vectors of RFC 9380, 9496 and 9497 for what is used of it, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha512

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import Refused, RemoteError
from linnet.core.reasons import Reason
from linnet.overlay.gossip.private_set_intersection import DST, RISTRETTO, expand_message
from linnet.sim.seeded_random import SeededEntropy

EXPANDED = {
    b"": "6b9a7312411d92f921c6f68ca0b6380730a1a4d982c507211a90964c394179ba",
    b"abc": "0da749f12fbe5483eb066a5f595055679b976e93abe9be6f0f6318bce7aca8dc",
}
"""RFC 9380, appendix K.3: `expand_message_xmd` with SHA-512, 32 bytes."""

MULTIPLES = [
    "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76",
    "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
    "94741f5d5d52755ece4f23f044ee27d5d1ea1e2bd196b462166b16152a9d0259",
    "da80862773358b466ffadfe0b3293ab3d9fd53c5ea6c955358f568322daf6a57",
    "e882b131016b52c1d3337080187cf768423efccbb517bb495ab812c4160ff44e",
    "f64746d3c92b13050ed8d80236a7f0007c3b3f962f5ba793d19a601ebb1df403",
    "44f53520926ec81fbd5a387845beb7df85a96a24ece18738bdcfa6a7822a176d",
    "903293d8f2287ebe10e2374dc1a53e0bc887e592699f02d077d5263cdd55601c",
    "02622ace8f7303a31cafc63f8fc48fdc16e1c8c8d234b2f0d6685282a9076031",
    "20706fd788b2720a1ed2a5dad4952b01f413bcf0e7564de8cdc816689e2db95f",
    "bce83f8ba5dd2fa572864c24ba1810f9522bc6004afe95877ac73241cafdab42",
    "e4549ee16b9aa03099ca208c67adafcafa4c3f3e4e5303de6026e3ca8ff84460",
    "aa52e000df2e16f55fb1032fc33bc42742dad6bd5a8fc0be0167436c5948501f",
    "46376b80f409b29dc2b5f6f0c52591990896e5716f41477cd30085ab7f10301e",
    "e0c418f7c8d9c4cdd7395b93ea124f3ad99021bb681dfc3302a9d99a2e53e64e",
]
"""RFC 9496, appendix A.1: the generator and its multiples, from one."""

INVALID = f"""
    00{"ff" * 31}
    {"ff" * 31}7f
    f3{"ff" * 30}7f
    ed{"ff" * 30}7f
    01{"00" * 31}
    01{"ff" * 30}7f
    ed57ffd8c914fb201471d1c3d245ce3c746fcbe63a3679d51b6a516ebebe0e20
    c34c4e1826e5d403b78e246e88aa051c36ccf0aafebffe137d148a2bf9104562
    c940e5a4404157cfb1628b108db051a8d439e1a421394ec4ebccb9ec92a8ac78
    47cfc5497c53dc8e61c91d17fd626ffb1c49e2bca94eed052281b510b1117a24
    f1c6165d33367351b0da8f6e4511010c68174a03b6581212c71c0e1d026c3c72
    87260f7a2f12495118360f02c26a470f450dadf34a413d21042b43b9d93e1309
    26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371
    4eac077a713c57b4f4397629a4145982c661f48044dd3f96427d40b147d9742f
    de6a7b00deadc788eb6b6c8d20c0ae96c2f2019078fa604fee5b87d6e989ad7b
    bcab477be20861e01e4a0e295284146a510150d9817763caf1a6f4b422d67042
    2a292df7e32cababbd9de088d1d1abec9fc0440f637ed2fba145094dc14bea08
    f4a9e534fc0d216c44b218fa0c42d99635a0127ee2e53c712f70609649fdff22
    8268436f8c4126196cf64b3c7ddbda90746a378625f9813dd9b8457077256731
    2810e5cbc2cc4d4eece54f61c6f69758e289aa7ab440b3cbeaa21995c2f4232b
    3eb858e78f5a7254d8c9731174a94f76755fd3941c0ac93735c07ba14579630e
    a45fdc55c76448c049a1ab33f17023edfb2be3581e9c7aade8a6125215e04220
    d483fe813c6ba647ebbfd3ec41adca1c6130c2beeee9d9bf065c8d151c5f396e
    8a2e1d30050198c65a54483123960ccc38aef6848e1ec8f5f780e8523769ba32
    32888462f8b486c68ad7dd9610be5192bbeaf3b443951ac1a8118419d9fa097b
    227142501b9d4355ccba290404bde41575b037693cef1f438c47f8fbf35d1165
    5c37cc491da847cfeb9281d407efc41e15144c876e0170b499a96a22ed31e01e
    445425117cb8c90edcbc7c1cc0e74f747f2c1efa5630a967c64f287792a48a4b
    ec{"ff" * 30}7f
""".split()
"""RFC 9496, appendix A.2: what is no element."""

MAPPED = {
    "5d1be09e3d0c82fc538112490e35701979d99e06ca3e2b5b54bffe8b4dc772c1"
    "4d98b696a1bbfb5ca32c436cc61c16563790306c79eaca7705668b47dffe5bb6": (
        "3066f82a1a747d45120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46"
    ),
    "f116b34b8f17ceb56e8732a60d913dd10cce47a6d53bee9204be8b44f6678b27"
    "0102a56902e2488c46120e9276cfe54638286b9e4b3cdb470b542d46c2068d38": (
        "f26e5b6f7d362d2d2a94c5d0e7602cb4773c95a2e5c31a64f133189fa76ed61b"
    ),
    "8422e1bbdaab52938b81fd602effb6f89110e1e57208ad12d9ad767e2e25510c"
    "27140775f9337088b982d83d7fcf0b2fa1edffe51952cbe7365e95c86eaf325c": (
        "006ccd2a9e6867e6a2c5cea83d3302cc9de128dd2a9a57dd8ee7b9d7ffe02826"
    ),
    "ac22415129b61427bf464e17baee8db65940c233b98afce8d17c57beeb7876c2"
    "150d15af1cb1fb824bbd14955f2b57d08d388aab431a391cfc33d5bafb5dbbaf": (
        "f8f0c87cf237953c5890aec3998169005dae3eca1fbb04548c635953c817f92a"
    ),
    "165d697a1ef3d5cf3c38565beefcf88c0f282b8e7dbd28544c483432f1cec767"
    "5debea8ebb4e5fe7d6f6e5db15f15587ac4d4d4a1de7191e0c1ca6664abcc413": (
        "ae81e7dedf20a497e10c304a765c1767a42d6e06029758d2d7e8ef7cc4c41179"
    ),
    "a836e6c9a9ca9f1e8d486273ad56a78c70cf18f0ce10abb1c7172ddd605d7fd2"
    "979854f47ae1ccf204a33102095b4200e5befc0465accc263175485f0e17ea5c": (
        "e2705652ff9f5e44d3e841bf1c251cf7dddb77d140870d1ab2ed64f1a9ce8628"
    ),
    "2cdc11eaeb95daf01189417cdddbf95952993aa9cb9c640eb5058d09702c7462"
    "2c9965a697a3b345ec24ee56335b556e677b30e6f90ac77d781064f866a3c982": (
        "80bd07262511cdde4863f8a7434cef696750681cb9510eea557088f76d9e5065"
    ),
}
"""RFC 9496, appendix A.3: elements from uniform bytes."""

SEED = bytes.fromhex("a3" * 32)
KEY_INFO = b"test key"
BLIND = "64d37aed22a27f5191de1c1d69fadb899d8862b58eb4220029e036ec4c1f6706"
SECOND_BLIND = "222a5e897cf59db8145db8d16e597e8facb80ae7d4e26d9881aa6f61d645fc0e"
OPRF, VOPRF = b"\x00", b"\x01"
SECRETS = {
    OPRF: "5ebcea5ee37023ccb9fc2d2019f9d7737be85591ae8652ffa9ef0f4d37063b0e",
    VOPRF: "e6f73f344b79b379f1a0dd37e07ff62e38d9f71345ce62ae3a9bc60b04ccd909",
}
EVALUATED = [
    (
        OPRF,
        "00",
        BLIND,
        "609a0ae68c15a3cf6903766461307e5c8bb2f95e7e6550e1ffa2dc99e412803c",
        "7ec6578ae5120958eb2db1745758ff379e77cb64fe77b0b2d8cc917ea0869c7e",
    ),
    (
        OPRF,
        "5a" * 17,
        BLIND,
        "da27ef466870f5f15296299850aa088629945a17d1f5b7f5ff043f76b3c06418",
        "b4cbf5a4f1eeda5a63ce7b77c7d23f461db3fcab0dd28e4e17cecb5c90d02c25",
    ),
    (
        VOPRF,
        "00",
        BLIND,
        "863f330cc1a1259ed5a5998a23acfd37fb4351a793a5b3c090b642ddc439b945",
        "aa8fa048764d5623868679402ff6108d2521884fa138cd7f9c7669a9a014267e",
    ),
    (
        VOPRF,
        "5a" * 17,
        BLIND,
        "cc0b2a350101881d8a4cba4c80241d74fb7dcbfde4a61fde2f91443c2bf9ef0c",
        "60a59a57208d48aca71e9e850d22674b611f752bed48b36f7a91b372bd7ad468",
    ),
    (
        VOPRF,
        "5a" * 17,
        SECOND_BLIND,
        "90a0145ea9da29254c3a56be4fe185465ebb3bf2a1801f7124bbbadac751e654",
        "cc5ac221950a49ceaa73c8db41b82c20372a4c8d63e5dded2db920b7eee36a2a",
    ),
]
"""RFC 9497, appendices A.1.1 and A.1.2: mode, input, blind, blinded element, evaluated element."""


def suite(mode: bytes) -> bytes:
    return b"OPRFV1-" + mode + b"-ristretto255-SHA512"


def scalar(number: int) -> bytes:
    return number.to_bytes(32, "little")


@pytest.mark.parametrize("message", EXPANDED)
def test_messages_are_expanded_as_in_rfc_9380(message: bytes) -> None:
    assert expand_message(message, b"QUUX-V01-CS02-with-expander-SHA512-256", 32).hex() == EXPANDED[message]


def test_longer_expansions_have_the_right_length_and_too_long_ones_are_refused() -> None:
    assert [len(expand_message(b"x", DST, size)) for size in (1, 64, 65, 255 * 64)] == [1, 64, 65, 255 * 64]
    assert expand_message(b"x", DST, 65)[:64] != expand_message(b"x", DST, 64)
    for dst, size in ((bytes(256), 32), (DST, 255 * 64 + 1), (DST, 0)):
        with pytest.raises(Refused):
            expand_message(b"x", dst, size)


def test_multiples_of_the_generator_are_those_of_rfc_9496() -> None:
    generator = bytes.fromhex(MULTIPLES[0])
    for number, multiple in enumerate(MULTIPLES, 1):
        assert RISTRETTO.multiply(scalar(number), generator).hex() == multiple


@pytest.mark.parametrize("encoding", INVALID)
def test_encodings_that_rfc_9496_calls_invalid_are_refused(encoding: str) -> None:
    with pytest.raises(RemoteError) as refused:
        RISTRETTO.multiply(scalar(2), bytes.fromhex(encoding))
    assert refused.value.reason is Reason.MALFORMED


@pytest.mark.parametrize("point", [bytes(32), b"", bytes.fromhex(MULTIPLES[0])[:31]])
def test_the_identity_and_what_is_too_short_are_refused(point: bytes) -> None:
    with pytest.raises(RemoteError):
        RISTRETTO.multiply(scalar(2), point)


@pytest.mark.parametrize("wide", MAPPED)
def test_uniform_bytes_map_to_the_elements_of_rfc_9496(wide: str) -> None:
    assert RISTRETTO.map_to_group(bytes.fromhex(wide)).hex() == MAPPED[wide]


@pytest.mark.parametrize("mode", SECRETS)
def test_keys_are_derived_as_in_rfc_9497(mode: bytes) -> None:
    derived = SEED + len(KEY_INFO).to_bytes(2, "big") + KEY_INFO + b"\x00"
    wide = expand_message(derived, b"DeriveKeyPair" + suite(mode), 64)
    assert RISTRETTO.reduce(wide).hex() == SECRETS[mode]


@pytest.mark.parametrize(("mode", "data", "blind", "blinded", "evaluated"), EVALUATED)
def test_blinding_and_evaluating_are_those_of_rfc_9497(
    mode: bytes, data: str, blind: str, blinded: str, evaluated: str
) -> None:
    element = RISTRETTO.hash_to_group(bytes.fromhex(data), b"HashToGroup-" + suite(mode))
    once = RISTRETTO.multiply(bytes.fromhex(blind), element)
    assert once.hex() == blinded
    assert RISTRETTO.multiply(bytes.fromhex(SECRETS[mode]), once).hex() == evaluated


OUTPUTS = {
    "00": "527759c3d9366f277d8c6020418d96bb393ba2afb20ff90df23fb7708264e2f3"
    "ab9135e3bd69955851de4b1f9fe8a0973396719b7912ba9ee8aa7d0b5e24bcf6",
    "5a" * 17: "f4a74c9c592497375e796aa837e907b1a045d34306a749db9f34221f7e750cb4"
    "f2a6413a6bf6fa5e19ba6348eb673934a722a7ede2e7621306d18951e7cf2c73",
}
"""RFC 9497, appendix A.1.1: the outputs of OPRF mode."""


@pytest.mark.parametrize(("mode", "data", "blind", "blinded", "evaluated"), EVALUATED[:2])
def test_a_blind_is_taken_off_as_in_rfc_9497(
    mode: bytes, data: str, blind: str, blinded: str, evaluated: str
) -> None:
    [inverse] = RISTRETTO.inverses([bytes.fromhex(blind)])
    bare = RISTRETTO.multiply(inverse, bytes.fromhex(evaluated))
    framed = [len(part).to_bytes(2, "big") + part for part in (bytes.fromhex(data), bare)]
    assert sha512(b"".join(framed) + b"Finalize").hexdigest() == OUTPUTS[data]


@pytest.mark.parametrize("count", [1, 2, 17])
def test_each_inverse_takes_its_own_blind_off(count: int) -> None:
    entropy = SeededEntropy(count, "inverses")
    blinds = [RISTRETTO.scalar(entropy) for _ in range(count)]
    element = RISTRETTO.hash_to_group(b"x")
    for blind, inverse in zip(blinds, RISTRETTO.inverses(blinds), strict=True):
        assert RISTRETTO.multiply(inverse, RISTRETTO.multiply(blind, element)) == element


@given(st.binary(max_size=80), st.integers(0, 2**32))
def test_blinding_twice_is_the_same_in_either_order(data: bytes, seed: int) -> None:
    entropy = SeededEntropy(seed, "group")
    one, two = RISTRETTO.scalar(entropy), RISTRETTO.scalar(entropy)
    element = RISTRETTO.hash_to_group(data)
    there = RISTRETTO.multiply(two, RISTRETTO.multiply(one, element))
    assert there == RISTRETTO.multiply(one, RISTRETTO.multiply(two, element))
    assert len({element, there, RISTRETTO.multiply(one, element)}) == 3


def test_elements_differ_by_their_tag() -> None:
    assert RISTRETTO.hash_to_group(b"x") == RISTRETTO.hash_to_group(b"x", DST)
    assert RISTRETTO.hash_to_group(b"x") != RISTRETTO.hash_to_group(b"x", DST + b"2")


def test_a_scalar_is_never_zero() -> None:
    drawn = iter([bytes(64), b"\x07" + bytes(63)])
    assert RISTRETTO.scalar(lambda size: next(drawn)) == scalar(7)


def test_the_library_is_not_loaded_before_it_is_used() -> None:
    program = (
        "import sys, linnet.overlay.gossip.private_set_intersection, linnet.sim.signature_cache as ideal\n"
        "assert ideal.IDEAL.hash_to_group(b'x')\n"
        "sys.exit('rbcl' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
