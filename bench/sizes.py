"""What an event costs on the wire, and how many are checked a second, alone and in bursts.

``python -m bench.sizes [--json]``. The figures of docs/adr/0003-events-and-bursts.md come from here.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.event.event import Spot, Verified
from linnet.event.signing import decode_unit, encode_unit, message_tail, sign_unit, verify_unit
from linnet.identity.cards import issue_card
from linnet.identity.keys import SigningKey

BODY = bytes(100)
BURSTS = (1, 4, 16, 64, 256)
TIME = 1_700_000_000_000
SECONDS = 0.3

PERSON = SigningKey(b"p" * 32)
DEVICE = SigningKey(b"d" * 32)
CARD = issue_card(PERSON, DEVICE.public, 0, 2_000_000_000)


def signed(count: int, body: bytes = BODY) -> Verified:
    """A unit of so many events, in the middle of a chain."""
    tails = [message_tail(body, TIME)] * count
    topic, author = TopicId(b"t" * 32), AuthorId(PERSON.public)
    return sign_unit(DEVICE, Spot(topic, author, CARD.device, 1_000, EventId(b"v" * 32)), tails)


def unit_of(count: int, body: bytes = BODY) -> bytes:
    """An encoded unit of so many events."""
    return encode_unit(signed(count, body).unit)


def checked_per_second(raw: bytes, count: int, seconds: float = SECONDS) -> float:
    """Events decoded, hashed and verified a second on one core."""
    rounds, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        verify_unit(decode_unit(raw), CARD)
        rounds += 1
    return rounds * count / elapsed


def measure() -> list[dict[str, float]]:
    rows = []
    for count in BURSTS:
        raw = unit_of(count)
        rows.append(
            {
                "events": count,
                "unit_bytes": len(raw),
                "bytes_per_event": round(len(raw) / count, 1),
                "checked_per_second": round(checked_per_second(raw, count)),
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
    print(f"{'events':>6} {'unit, bytes':>12} {'bytes/event':>12} {'checked/s':>12}")
    for row in rows:
        print(
            f"{row['events']:>6} {row['unit_bytes']:>12,} {row['bytes_per_event']:>12}"
            f" {row['checked_per_second']:>12,}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
