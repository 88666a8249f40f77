"""Encodings side by side: size, encodes and decodes a second of one small event.

``python -m bench.encoding [--json]``. The figures of docs/adr/0002-encoding.md come from here.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from bench.rates import per_second
from bench.results import Measure, Plan

SECONDS = 0.3
SECTION = "encoding"
BATCH = 100


class AsArray(msgspec.Struct, frozen=True, array_like=True):
    topic: bytes
    author: bytes
    seq: int
    time: int
    prev: bytes
    body: bytes
    sig: bytes


class AsMap(msgspec.Struct, frozen=True):
    topic: bytes
    author: bytes
    seq: int
    time: int
    prev: bytes
    body: bytes
    sig: bytes


FIELDS: tuple[bytes, bytes, int, int, bytes, bytes, bytes] = (
    bytes(range(32)),
    bytes(range(32, 64)),
    1_000_000,
    1_700_000_000_000,
    bytes(range(64, 96)),
    bytes(range(256)),
    bytes(range(100, 164)),
)


def text_fields() -> dict[str, Any]:
    """The event as plain JSON can carry it."""
    named = zip(AsMap.__struct_fields__, FIELDS, strict=True)
    return {
        name: base64.b64encode(value).decode() if isinstance(value, bytes) else value for name, value in named
    }


def candidates() -> dict[str, tuple[Callable[[], bytes], Callable[[bytes], object]]]:
    array, as_map, text = AsArray(*FIELDS), AsMap(*FIELDS), text_fields()
    packed, plain = msgspec.msgpack.Encoder(), msgspec.json.Encoder()
    return {
        "msgpack array, typed (ours)": (
            lambda: packed.encode(array),
            msgspec.msgpack.Decoder(AsArray).decode,
        ),
        "msgpack map, typed": (lambda: packed.encode(as_map), msgspec.msgpack.Decoder(AsMap).decode),
        "JSON with base64, typed": (lambda: plain.encode(as_map), msgspec.json.Decoder(AsMap).decode),
        "JSON of the standard library, untyped": (lambda: json.dumps(text).encode(), json.loads),
    }


def section(plan: Plan) -> list[Measure]:
    """The same for a run of everything."""
    taken: list[Measure] = []
    for name, (encode, decode) in candidates().items():
        raw = encode()
        note = f"{len(raw)} bytes"
        encodes = tuple(per_second(encode, plan.seconds, BATCH) for _ in range(plan.runs))
        decodes = tuple(per_second(partial(decode, raw), plan.seconds, BATCH) for _ in range(plan.runs))
        taken.append(Measure(SECTION, f"encode, {name}", "1/s", encodes, note))
        taken.append(Measure(SECTION, f"decode, {name}", "1/s", decodes, note))
    return taken


def measure() -> list[dict[str, Any]]:
    rows = []
    for name, (encode, decode) in candidates().items():
        raw = encode()
        rows.append(
            {
                "encoding": name,
                "bytes": len(raw),
                "encodes_per_second": round(per_second(encode, SECONDS, BATCH)),
                "decodes_per_second": round(per_second(partial(decode, raw), SECONDS, BATCH)),
            }
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    asked, rows = parser.parse_args(), measure()
    if asked.json:
        print(json.dumps(rows))
        return 0
    print(f"{'encoding':<38} {'bytes':>6} {'encodes/s':>12} {'decodes/s':>12}")
    for row in rows:
        rates = f"{row['encodes_per_second']:>12,} {row['decodes_per_second']:>12,}"
        print(f"{row['encoding']:<38} {row['bytes']:>6} {rates}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
