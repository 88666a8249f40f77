"""What one core does with events: encoding, decoding, ids, signatures, bursts. Bodies of 256 bytes."""

from __future__ import annotations

from collections.abc import Callable

from bench.rates import per_second
from bench.results import Measure, Plan
from bench.sizes import BURSTS, DEVICE, checked_per_second, signed, unit_of
from linnet.delivery.messages import Data
from linnet.event.signing import recall_unit
from linnet.identity.keys import verify
from linnet.peer.messages import CODEC

SECTION = "events"
CHECKS = "check a signature"
_BODY = bytes(256)
_DIGEST = bytes(32)


def checks_per_second(seconds: float) -> float:
    """Ed25519 signatures that one core checks a second: the ceiling of what is signed one by one."""
    signature = DEVICE.sign(_DIGEST)
    return per_second(lambda: verify(DEVICE.public, _DIGEST, signature), seconds)


def actions() -> dict[str, Callable[[], object]]:
    """The single steps that an event goes through."""
    unit = signed(1, _BODY).unit
    data = Data(unit, 1, 0, 1_700_000_000_000_000, None)
    raw = CODEC.encode(data)
    return {
        "encode a message": lambda: CODEC.encode(data),
        "decode a message": lambda: CODEC.decode(raw),
        "id of an event, fields decoded": lambda: recall_unit(unit),
        "sign": lambda: DEVICE.sign(_DIGEST),
        "make and sign an event": lambda: signed(1, _BODY),
    }


def measure(plan: Plan) -> list[Measure]:
    """All of it."""
    taken: list[Measure] = []
    for name, action in actions().items():
        rates = tuple(per_second(action, plan.seconds) for _ in range(plan.runs))
        taken.append(Measure(SECTION, name, "1/s", rates))
    rates = tuple(checks_per_second(plan.seconds) for _ in range(plan.runs))
    taken.append(Measure(SECTION, CHECKS, "1/s", rates))
    for count in BURSTS:
        raw = unit_of(count, _BODY)
        rates = tuple(checked_per_second(raw, count, plan.seconds) for _ in range(plan.runs))
        note = f"{len(raw) / count:.0f} bytes each"
        taken.append(Measure(SECTION, f"verified, bursts of {count}", "events/s", rates, note))
    return taken
