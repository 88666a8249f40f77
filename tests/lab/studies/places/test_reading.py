"""A fragment is checked before anything of it is believed."""

from __future__ import annotations

from msgspec.structs import replace

from linnet.core.reasons import Reason
from linnet.event.signing import encode_unit
from linnet.lab.studies.places.reading import read
from linnet.lab.studies.places.voice import Voice, card_of
from linnet.places.config import PlacesConfig
from linnet.places.multicast.fragmentation import Flag
from linnet.sim.seeded_random import named_luck


def test_a_good_fragment_tells_its_head_and_a_bad_one_why_it_is_refused() -> None:
    voice = Voice(1, 0, PlacesConfig())
    voice.announce("_message", body=b"hello")
    verified, head = voice.said[0]
    unit = verified.unit
    told = read(encode_unit(unit), card_of(1))
    flags = int(Flag.FIRST | Flag.LAST | Flag.OPENING)
    assert told == (0, 1, 0, 0, flags, None, None, None, verified.head, verified.events[0].body, None)
    assert head.flags == flags
    forged = replace(unit, sig=named_luck(1, "forger").randbytes(64))
    assert read(encode_unit(forged), card_of(1)) == (*(None,) * 10, Reason.BAD_SIGNATURE.value)
    assert read(encode_unit(unit), card_of(2))[-1] == Reason.UNKNOWN_DEVICE.value
    assert read(b"\xc1", card_of(1))[-1] == Reason.MALFORMED.value
