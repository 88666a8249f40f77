"""What is said in the large log: a script that follows from a seed, place and number, message by message.

Two read it: the shipped voice (`spoken`), and a plain loop without signatures (`made`), which is some fifty
times as fast. Small logs of both are the same to the byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from linnet.core.ids import AuthorId
from linnet.lab.studies.places.voice import Spoken, Voice
from linnet.places.channel.packet import Modifier
from linnet.places.config import PlacesConfig

ASSIGN, COUNT, RESET, NOTICE, LONG, PLAIN = range(6)
VARIABLES, COUNTERS, NYMS = 24, 4, 64
HASH_EVERY = 64
METHODS = ("_message", "_message_public", "_message_public_shout", "_notice_profile")
CHANGE_METHOD = "_notice_profile_field"
LONG_METHOD = "_message_long"
_MASK = (1 << 64) - 1
_SHARES = ((240, ASSIGN), (300, COUNT), (303, RESET), (318, NOTICE), (368, LONG), (1000, PLAIN))
"""Of a thousand messages, added up: a quarter assigns, one in seventeen counts, few begin anew."""


class Act(NamedTuple):
    """One message of the script."""

    kind: int
    draw: int
    """Bits that decide about the rest."""

    @property
    def variable(self) -> str:
        """The variable that it is about."""
        at = self.draw >> 16 & 0xFFFF
        return f"_amount_n{at % COUNTERS}" if self.kind == COUNT else f"_field_v{at % VARIABLES}"

    @property
    def value(self) -> bytes:
        """What is assigned or added."""
        return b"%d" % (self.draw >> 32 & (0xFF if self.kind == COUNT else 0xFFFFFFFF))

    @property
    def method(self) -> str:
        """What it is called."""
        if self.kind == LONG:
            return LONG_METHOD
        return METHODS[self.draw >> 16 & 3] if self.kind == PLAIN else CHANGE_METHOD

    @property
    def body(self) -> bytes:
        """Its first part."""
        return b"word " * (1 + (self.draw >> 40 & 7)) if self.kind in (PLAIN, LONG) else b""

    @property
    def rest(self) -> bytes:
        """What a long one says after the next message."""
        return b"and more " * (1 + (self.draw >> 48 & 3))


def nym_of(number: int) -> AuthorId:
    """A guest."""
    return AuthorId(hashlib.sha256(f"linnet/lab/places/nym/{number}".encode()).digest())


def mix(value: int) -> int:
    """64 bits that look random (the finaliser of SplitMix64)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & _MASK
    return value ^ value >> 31


def acts(seed: int, place: int, messages: int) -> Iterator[Act]:
    """The script of a place; it begins with something that everybody has."""
    base = mix(seed * 0x1000003 + place)
    for number in range(messages):
        draw = mix(base + number)
        share = draw % 1000
        kind = ASSIGN if number == 0 else next(kind for upto, kind in _SHARES if share < upto)
        yield Act(kind, draw)


def spoken(seed: int, place: int, messages: int) -> list[Spoken]:
    """The script as the shipped voice says it."""
    voice = Voice(seed, place, PlacesConfig(hash_every=HASH_EVERY))
    notices, waiting = 0, None
    for act in acts(seed, place, messages):
        ended, waiting = waiting, None
        if act.kind in (ASSIGN, RESET):
            change = Modifier("=", act.variable, act.value)
            voice.announce(act.method, (change,), reset=act.kind == RESET)
        elif act.kind == COUNT:
            voice.announce(act.method, (Modifier("+", act.variable, act.value),))
        elif act.kind == NOTICE:
            nym = nym_of(notices // 2 % NYMS)
            if notices % 2:
                voice.parted(nym)
            else:
                voice.joined(nym)
            notices += 1
        elif act.kind == LONG:
            waiting = (voice.announce(act.method, body=act.body, more=True), act.rest)
        else:
            voice.announce(act.method, body=act.body)
        if ended is not None:
            voice.more(ended[0], ended[1], more=False)
    if waiting is not None:
        voice.more(waiting[0], waiting[1], more=False)
    return voice.said
