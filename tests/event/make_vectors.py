"""Write tests/vectors/event.json: known units with their ids, for us and for other programs.

Run it only when the format changes, which is a new tag and a new version of the wire:
``.venv/bin/python tests/event/make_vectors.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.event.event import Spot, Tail
from linnet.event.signing import encode_unit, message_tail, sign_unit
from linnet.identity.cards import issue_card
from linnet.identity.keys import SigningKey

VECTORS = Path(__file__).parent.parent / "vectors" / "event.json"

PERSON = SigningKey(bytes(range(32)))
DEVICE = SigningKey(bytes(range(32, 64)))
CARD = issue_card(PERSON, DEVICE.public, 1_700_000_000, 1_731_536_000, "vectors")
TOPIC = TopicId(bytes(range(64, 96)))
PREV = EventId(bytes(range(96, 128)))
FULL = Tail(
    (EventId(b"\x01" * 32), EventId(b"\x02" * 32)),
    (EventId(b"\x03" * 32),),
    2**40,
    (EventId(b"\x04" * 32),),
    "state",
    "näme",
    1_700_000_000_123,
    b"\x00\xff",
    b"every field",
)
UNITS: dict[str, tuple[int | None, EventId | None, list[Tail]]] = {
    "the first message of a chain": (0, None, [message_tail(b"hello", 1_700_000_000_000)]),
    "a message with a predecessor": (1, PREV, [message_tail(b"again", 1_700_000_000_001)]),
    "a burst of three": (254, PREV, [message_tail(bytes([n]) * n, 1_700_000_000_000 + n) for n in range(3)]),
    "no chain": (None, None, [message_tail(b"alone", 0)]),
    "every field": (2**63 - 1, PREV, [FULL]),
}


def vectors() -> dict[str, Any]:
    """What the file should hold."""
    units = []
    for name, (seq, prev, tails) in UNITS.items():
        made = sign_unit(DEVICE, Spot(TOPIC, AuthorId(PERSON.public), CARD.device, seq, prev), tails)
        ids = [event.id.hex() for event in made.events]
        units.append({"name": name, "ids": ids, "unit": encode_unit(made.unit).hex()})
    return {
        "person_seed": PERSON.seed.hex(),
        "device_seed": DEVICE.seed.hex(),
        "device": CARD.device.hex(),
        "card_sig": CARD.sig.hex(),
        "units": units,
    }


if __name__ == "__main__":
    VECTORS.parent.mkdir(exist_ok=True)
    VECTORS.write_text(json.dumps(vectors(), indent=2) + "\n")
