"""Random logs: what the shipped voice says by a seed, and what becomes of it on the way.

Fragments are lost, come twice and in any order. Some are forged, some said twice with other bytes under one
number, and some voices lie: they carry a wrong hash of the state, a wrong generation, a wrong distance.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession

from linnet.core.ids import AuthorId
from linnet.event.event import Spot, Unverified, Verified
from linnet.event.signing import encode_unit, sign_unit
from linnet.lab.studies.places.columns import UNITS, arrow_of, batch_of
from linnet.lab.studies.places.voice import Spoken, Voice, host_of
from linnet.places.channel.packet import LARGEST_HEADER, Modifier, encode_header, read_header
from linnet.places.config import PlacesConfig
from linnet.places.multicast.fragmentation import PIECE_BYTES, Flag, Head, encode_head
from linnet.sim.seeded_random import named_luck

HASH_EVERY = 4
NAMES = ("_a", "_a_b", "_topic", "_list_x", "_amount", "_counter_y", "_list")
VALUES = (b"", b"1", b"22", b"-7", b"|x", b"|x|y", b"tea", b"two\nlines", b"\xff\x00", b"3 one|3 two")
METHODS = ("_message", "_message_public", "_message_public_shout", "_notice_profile", "plain", "_")
NYMS = tuple(AuthorId(bytes([number]) * 32) for number in range(4))

HASH, GENERATION, DELTA = "hash", "generation", "delta"
LIES = (HASH, GENERATION, DELTA)


class Log(NamedTuple):
    """What somebody kept of one place, in the order in which it came."""

    units: list[Unverified]
    lies: dict[str, int]
    """Where the voice lied: the message of a hash or a distance, the fragment of a generation."""
    lost: int


def log_of(seed: int, place: int) -> Log:
    """The log of one place."""
    luck = named_luck(seed, f"places/log/{place}")
    said = _said(luck, seed, place)
    said, lies = _lied(luck, seed, said)
    units = [verified.unit for verified, _ in said]
    loss = luck.choice((0.0, 0.0, 0.03, 0.15))
    kept = [unit for unit in units if luck.random() >= loss]
    copies = [unit for unit in kept if luck.random() < 0.1]
    strange = [*_equivocated(luck, seed, said), *_forged(luck, kept)]
    came = [*kept, *copies, *strange]
    if luck.random() < 0.8:
        luck.shuffle(came)
    return Log(came, lies, len(units) - len(kept))


def units_of(spark: SparkSession, seed: int, places: int, tasks: int = 4) -> DataFrame:
    """The logs of so many places. Grain: (place, arrival)."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = arrow_of(UNITS)
        for batch in batches:
            for place in batch.column(0).to_pylist():
                units = log_of(seed, place).units
                yield batch_of([(place, at, encode_unit(unit)) for at, unit in enumerate(units)], schema)

    return spark.range(0, places, 1, tasks).mapInArrow(task, UNITS.columns)


# What is said.


def _said(luck: Random, seed: int, place: int) -> list[Spoken]:
    voice = Voice(seed, place, PlacesConfig(hash_every=HASH_EVERY))
    inside: dict[AuthorId, None] = {}
    opened: list[int] = []
    if luck.random() < 0.06:  # modifiers that do not fit one piece
        large = Modifier("=", "_picture", luck.randbytes(PIECE_BYTES + luck.randint(1, 9000)))
        voice.announce("_notice_profile", (large,), b"")
    for _ in range(luck.randint(6, 30)):
        match luck.choices(("say", "change", "open", "guest", "alive"), (3, 6, 2, 3, 1))[0]:
            case "say":
                voice.announce(
                    luck.choice(METHODS), _modifiers(luck, ":"), luck.randbytes(luck.randint(0, 30))
                )
            case "change":
                modifiers = _modifiers(luck, "===+-:")
                voice.announce(luck.choice(METHODS), modifiers, b"x", reset=luck.random() < 0.15)
            case "open":
                opened.append(voice.announce("_message_long", _modifiers(luck, "=:"), b"begin", more=True))
            case "guest":
                _guest(luck, voice, inside)
            case _:
                voice.keep_alive()
        if opened and luck.random() < 0.6:
            message, ends = luck.choice(opened), luck.random() < 0.5
            voice.more(message, luck.randbytes(luck.randint(0 if ends else 1, 40)), not ends)
            if ends:
                opened.remove(message)
    return voice.said


def _modifiers(luck: Random, operators: str) -> tuple[Modifier, ...]:
    return tuple(
        Modifier(luck.choice(operators), luck.choice(NAMES), luck.choice(VALUES))
        for _ in range(luck.randint(0, 3))
    )


def _guest(luck: Random, voice: Voice, inside: dict[AuthorId, None]) -> None:
    nym = luck.choice(NYMS)
    if nym in inside:
        voice.parted(nym)
        del inside[nym]
    else:
        voice.joined(nym, luck.choice((None, 0, 1)))
        inside[nym] = None


# What goes wrong.


def _lied(luck: Random, seed: int, said: list[Spoken]) -> tuple[list[Spoken], dict[str, int]]:
    """One fragment of some places says what is not so, under the voice's own signature."""
    if luck.random() < 0.5:
        return said, {}
    kind = luck.choice(LIES)
    wanted = {HASH: Flag.HASH, DELTA: Flag.STATE, GENERATION: Flag(0)}[kind]
    fitting = [
        at
        for at, (_, head) in enumerate(said)
        if head.flags & wanted == wanted
        and head.is_first
        and (head.change is None or kind != GENERATION)
        and at > 0
    ]
    if not fitting:
        return said, {}
    at = luck.choice(fitting)
    verified, head = said[at]
    if kind == GENERATION:
        told = _signed(seed, verified, replace(head, generation=head.generation + 1), verified.events[0].body)
        return [*said[:at], told, *said[at + 1 :]], {kind: head.fragment}
    told = _signed(seed, verified, head, _with_header(verified.events[0].body, kind))
    return [*said[:at], told, *said[at + 1 :]], {kind: head.message}


def _with_header(body: bytes, kind: str) -> bytes:
    found = read_header(body[:LARGEST_HEADER])
    if found is None or found[0].delta is None:
        raise ValueError("no header of a state message")
    header, end = found
    if kind == DELTA:
        header = replace(header, delta=(header.delta or 0) + 1)
    elif header.hash is not None:
        header = replace(header, hash=bytes([header.hash[0] ^ 1]) + header.hash[1:])
    return encode_header(header) + body[end:]


def _equivocated(luck: Random, seed: int, said: list[Spoken]) -> list[Unverified]:
    """Another piece under the same number; of a message that changes nothing, or hashes would differ."""
    if luck.random() < 0.7:
        return []
    quiet = [each for each in said if not each[1].flags & Flag.STATE and each[1].change is None]
    quiet = [each for each in quiet if each[0].events[0].body]
    if not quiet:
        return []
    verified, head = luck.choice(quiet)
    body = verified.events[0].body
    return [_signed(seed, verified, head, body[:-1] + bytes([body[-1] ^ 1]))[0].unit]


def _forged(luck: Random, units: list[Unverified]) -> list[Unverified]:
    """A fragment that somebody on the way has changed."""
    if not units or luck.random() < 0.7:
        return []
    unit = luck.choice(units)
    tail = unit.tails[0]
    return [replace(unit, tails=(tail[:-1] + bytes([tail[-1] ^ 1]),))]


def _signed(seed: int, verified: Verified, head: Head, body: bytes) -> Spoken:
    """The same place in the chain of the device, with another head or body."""
    host, unit = host_of(seed), verified.unit
    tail = replace(verified.events[0].tail, clear=encode_head(head), body=body)
    again = sign_unit(host.device, Spot(unit.topic, unit.author, unit.device, unit.seq, unit.prev), (tail,))
    return again, head
