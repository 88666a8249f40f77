"""Names: what a password costs whoever uses or guesses it, and what records cost whoever makes or reads them.

Processor time of one core. `stretch` is Argon2id (RFC 9106) as names use it; it runs in a thread of the
library, beside the node, while everything else here runs in the turn of the node itself.
"""

from __future__ import annotations

from random import Random
from time import process_time

from bench.intersections import rate
from bench.results import Measure, Plan
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.names.derivation import MEMORY, PASSES, Password, derive, stretch
from linnet.names.records import PlaceRecord, Statement, check_block, open_block, seal_block
from linnet.sim.clock import START
from linnet.sim.seeded_random import seeded_identity

SECTION = "names"
STRETCHED = "stretch a password"
DERIVED, CLOSED = "derive the keys of a label", "sign and seal a record"
CHECKED, OPENED = "check a record, as a store", "check and open a record, as a reader"
_MS = 1000.0


def stretch_ms(times: int) -> float:
    """Milliseconds of processor time that one password costs."""
    zone = seeded_identity(0, "bench", START).author
    began = process_time()
    for number in range(times):
        stretch(Password(f"guess {number}"), zone, "music")
    return (process_time() - began) / times * _MS


def record_rates(seconds: float) -> dict[str, float]:
    """What one core does with records a second."""
    who = seeded_identity(0, "bench", START)
    keys = derive(who.author, "music")
    contact = Contact(PeerId(bytes(32)), ("tls://192.0.2.7:7700",))
    saying = Statement("music", 1, int(START) + 60, (PlaceRecord(TopicId(bytes(32)), (contact,)),))
    luck = Random(1)
    block = seal_block(keys, who.device, who.card, saying, luck.randbytes)
    return {
        DERIVED: rate(lambda: derive(who.author, "music").lookup, seconds),
        CLOSED: rate(lambda: seal_block(keys, who.device, who.card, saying, luck.randbytes), seconds),
        CHECKED: rate(lambda: check_block(block), seconds),
        OPENED: rate(lambda: open_block(block, keys, who.author, "music"), seconds),
    }


def measure(plan: Plan) -> list[Measure]:
    """All of it."""
    times = plan.count(20, 1)
    note = f"Argon2id, {PASSES} passes, {MEMORY // 2**20} MiB"
    taken = [Measure(SECTION, STRETCHED, "ms", tuple(stretch_ms(times) for _ in range(plan.runs)), note)]
    runs = [record_rates(plan.seconds) for _ in range(plan.runs)]
    return taken + [Measure(SECTION, name, "1/s", tuple(run[name] for run in runs)) for name in runs[0]]
