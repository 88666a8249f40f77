"""The large log: the script as a plain loop says it, with copies and losses, in rows of `FRAGMENTS`.

Signing ten million fragments would take the better part of an hour and tell nothing about the jobs.
What a test compares with the shipped voice is `said_plainly`; losses and copies come on top.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from linnet.lab.studies.places import script
from linnet.lab.studies.places.columns import FRAGMENTS, arrow_of
from linnet.lab.studies.places.script import COUNT, LONG, NOTICE, PLAIN, RESET, Act
from linnet.places.channel.packet import Header, encode_header
from linnet.places.fragment_writer import NOTICE_ENTER, NOTICE_LEAVE
from linnet.places.multicast.fragmentation import Flag

COPIES, LOSSES = 100, 20_000
"""One fragment of so many comes twice, one of so many never."""
_WHOLE = int(Flag.FIRST | Flag.LAST)
_STATE, _HASH = int(Flag.STATE), int(Flag.HASH)
_name = struct.Struct(">I")
_value = struct.Struct(">Q")
_SCHEMA = arrow_of(FRAGMENTS)

Made = tuple[int, int, int, int, int, bytes | None, bool | None, int | None, bytes]
"""Fragment, message, offset, generation, flags, nym, joins, since, body."""


class _Line:
    """The counters of a voice."""

    def __init__(self) -> None:
        self.fragment = self.message = self.generation = self.state = self.since_hash = 0
        self.variables: dict[str, bytes] = {}

    def delta(self, reset: bool = False) -> int:
        """Of the message that is being said, which changes state."""
        found = 0 if reset or not self.state else self.message - self.state
        self.state = self.message
        return found

    def digest(self) -> bytes:
        """Of the state."""
        parts = []
        for name in sorted(self.variables):
            raw, value = name.encode(), self.variables[name]
            parts += [_name.pack(len(raw)), raw, _value.pack(len(value)), value]
        return hashlib.sha256(b"".join(parts)).digest()


class _Waiting(NamedTuple):
    message: int
    offset: int
    rest: bytes


def said_plainly(seed: int, place: int, messages: int) -> Iterator[Made]:
    """What `script.spoken` says, fragment by fragment."""
    line, notices = _Line(), 0
    waiting: _Waiting | None = None
    for act in script.acts(seed, place, messages):
        line.message += 1
        ended, waiting = waiting, None
        opening = int(Flag.OPENING) if line.fragment == 0 else 0
        nym: bytes | None = None
        joins: bool | None = None
        flags = _WHOLE | opening
        if act.kind in (PLAIN, LONG):
            section = act.method.encode() + b"\n"
            body = encode_header(Header(len(section))) + section + act.body
            if act.kind == LONG:
                flags = int(Flag.FIRST) | opening
                waiting = _Waiting(line.message, len(body), act.rest)
        elif act.kind == NOTICE:
            nym, joins = script.nym_of(notices // 2 % script.NYMS), notices % 2 == 0
            notices += 1
            extra, body = _notice(line, nym, joins)
            flags |= extra
        else:
            extra, body = _change(line, act)
            flags |= extra
        since = None if joins is None else line.message if joins else 0
        yield line.fragment, line.message, 0, line.generation, flags, nym, joins, since, body
        line.fragment += 1
        line.generation += joins is False
        if ended is not None:
            yield _ending(line, ended)
    if waiting is not None:
        yield _ending(line, waiting)


def _ending(line: _Line, waiting: _Waiting) -> Made:
    made = (line.fragment, waiting.message, waiting.offset, line.generation, int(Flag.LAST))
    line.fragment += 1
    return (*made, None, None, None, waiting.rest)


def _notice(line: _Line, nym: bytes, joins: bool) -> tuple[int, bytes]:
    method = NOTICE_ENTER if joins else NOTICE_LEAVE
    section = b":_nym\t" + nym.hex().encode() + b"\n" + method.encode() + b"\n"
    line.since_hash = 0
    if not joins:
        return 0, encode_header(Header(len(section))) + section
    header = Header(len(section), line.delta(), line.digest())
    return _STATE | _HASH, encode_header(header) + section


def _change(line: _Line, act: Act) -> tuple[int, bytes]:
    name, value = act.variable, act.value
    reset = act.kind == RESET
    if reset:
        line.variables.clear()
    if act.kind == COUNT:
        line.variables[name] = b"%d" % (int(line.variables.get(name, b"0")) + int(value))
    else:
        line.variables[name] = value
    operator = "+" if act.kind == COUNT else "="
    section = f"{operator}{name}\t".encode() + value + b"\n" + act.method.encode() + b"\n"
    hashed = reset or line.since_hash + 1 >= script.HASH_EVERY
    line.since_hash = 0 if hashed else line.since_hash + 1
    header = Header(len(section), line.delta(reset), line.digest() if hashed else None)
    return _STATE | (_HASH if hashed else 0), encode_header(header) + section


# As a table.


def log_batch(seed: int, place: int, messages: int) -> pa.RecordBatch:
    """A place as somebody has it: in any order, with copies and losses."""
    luck = np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, place))))
    columns = list(zip(*said_plainly(seed, place, messages), strict=True))
    count = len(columns[0])
    kept = np.flatnonzero(luck.integers(0, LOSSES, count))
    twice = kept[luck.integers(0, COPIES, len(kept)) == 0]
    came = np.concatenate([kept, twice])
    luck.shuffle(came)
    order = pa.array(came)
    fields = list(_SCHEMA)[2:10]
    arrays = [
        pa.array(column, field.type).take(order) for column, field in zip(columns[:8], fields, strict=True)
    ]
    events = pa.array([b"%d" % each for each in came.tolist()], pa.binary())
    bodies = pa.array(columns[8], pa.binary()).take(order)
    places = pa.array(np.full(len(came), place, np.int32))
    arrivals = pa.array(np.arange(len(came), dtype=np.int64))
    faults = pa.nulls(len(came), pa.string())
    return pa.RecordBatch.from_arrays([places, arrivals, *arrays, events, bodies, faults], schema=_SCHEMA)


def made_log(spark: SparkSession, seed: int, places: int, messages: int, tasks: int) -> DataFrame:
    """So many places with so many messages each. Grain: that of `FRAGMENTS`."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield log_batch(seed, place, messages)

    return spark.range(0, places, 1, tasks).mapInArrow(task, FRAGMENTS.columns)
