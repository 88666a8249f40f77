"""PSYC text: messages parsed and rendered in a second, beside msgpack with the same fields."""

from __future__ import annotations

import msgspec

from bench.intersections import rate
from bench.results import Measure, Plan
from linnet.places.channel.packet import Modifier, Packet, parse, render

PARSE, RENDER = "PSYC: parse", "PSYC: render"
DECODE, ENCODE = "PSYC: msgpack decoded, beside", "PSYC: msgpack encoded, beside"
MODIFIERS = (
    Modifier("=", "_location_planet", b"Earth"),
    Modifier("=", "_location_continent", b"Europe"),
    Modifier(":", "_volume", b"100"),
    Modifier("=", "_picture", bytes(range(64))),
)
METHOD = "_notice_profile_location"
BODY = b"Hello,\nworld! " * 16


class _Fields(msgspec.Struct, frozen=True, array_like=True):
    modifiers: tuple[Modifier, ...]
    method: str
    body: bytes


def text() -> bytes:
    """A message of four variables, one of them binary, and a body of some 200 bytes."""
    return render(MODIFIERS, METHOD) + BODY


def measure(plan: Plan, section: str) -> list[Measure]:
    """All of it."""
    raw = text()
    if parse(raw) != Packet(MODIFIERS, METHOD, BODY):
        raise AssertionError("a message does not say what it was rendered from")
    fields = _Fields(MODIFIERS, METHOD, BODY)
    encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(_Fields).decode
    packed = encode(fields)
    actions = {
        PARSE: lambda: parse(raw),
        RENDER: lambda: render(MODIFIERS, METHOD) + BODY,
        DECODE: lambda: decode(packed),
        ENCODE: lambda: encode(fields),
    }
    runs: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(plan.runs):
        for name, action in actions.items():
            runs[name].append(rate(action, plan.seconds))
    note = f"{len(raw)} bytes, {len(MODIFIERS)} variables"
    return [Measure(section, name, "1/s", tuple(found), note) for name, found in runs.items()]
