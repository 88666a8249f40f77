"""Repairs damaged units of our log: reports them, and asks other nodes for them.

The log leaves them out of its answers. A unit that is sent again is verified as any other and put back in its
place (docs/adr/0028-clocks-and-disks.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.stores import Damage
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.delivery.messages import Resend, Resent
from linnet.event.event import Verified
from linnet.machine.outbox import Notice, Outbox
from linnet.streams.membership import Memberships
from linnet.streams.stream import Stream
from linnet.trace.records import Kind, Record

FIRST_PAUSE = 2.0
"""Seconds until the next source is asked; doubled each time."""
LONGEST_PAUSE = 600.0
ASKED_AT_ONCE = 256
"""Units requested in one round: a store with damage everywhere is mended bit by bit."""


class RepairDue(Timer, frozen=True, gc=False):
    """Time to ask another source for the damaged units."""


class LogDamaged(Notice, frozen=True):
    """Reading the log has found damaged units since the last such notice."""

    damages: tuple[Damage, ...]


class Repair:
    """Fetches the damaged units of the streams that this node is in."""

    def __init__(self, context: Context, memberships: Memberships, out: Outbox) -> None:
        self._context = context
        self._memberships = memberships
        self._out = out
        self._wanted: dict[Damage, int] = {}
        """How often each damaged unit was requested."""
        self._pause = FIRST_PAUSE
        self._armed = False

    def __len__(self) -> int:
        return len(self._wanted)

    def note_damage(self, news: Sequence[Damage]) -> None:
        """Ask for units that reading has found damaged."""
        for damage in news:
            self._out.record(_record(Kind.DROPPED, damage, "of our log"))
        fresh = [each for each in news if each.first is not None and each not in self._wanted]
        self._wanted |= dict.fromkeys(fresh, 0)
        if fresh:
            self._pause = FIRST_PAUSE
        self._ask(fresh)
        self._ask_later()

    def handle_resent(self, stream: Stream, resent: Resent, now: float) -> None:
        """Put back the damaged units that a peer has sent again."""
        if not any(damage.topic == stream.topic for damage in self._wanted):
            return
        log = self._context.store.log
        good, _ = stream.ingest.check_all(resent.units, resent.cards, None)
        for verified in good:
            # Units that are not damaged here go through the stream, in their turn.
            if log.is_damaged(_as_damage(verified)):
                stream.archive.keep(verified, now)
        mended = [damage for damage in self._wanted if not log.is_damaged(damage)]
        for damage in mended:
            del self._wanted[damage]
        if mended:
            self._out.committed.extend(_record(Kind.RESYNC, damage, "mended") for damage in mended)

    def ask_again(self) -> None:
        """Ask another source for the units that are still damaged."""
        self._armed = False
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)
        # Meanwhile a room or a place may have mended its own units, or they were evicted.
        log = self._context.store.log
        self._wanted = {each: tries for each, tries in self._wanted.items() if log.is_damaged(each)}
        self._ask(self._wanted)
        self._ask_later()

    def _ask_later(self) -> None:
        if not self._armed and self._wanted:
            self._armed = True
            self._out.set_timer(self._pause, RepairDue())

    def _ask(self, wanted: Iterable[Damage]) -> None:
        for damage in sorted(wanted, key=self._wanted.__getitem__)[:ASKED_AT_ONCE]:
            stream = self._memberships.get(damage.topic)
            sources = [] if stream is None else self._sources(stream)
            if sources and damage.first is not None and damage.last is not None:
                peer = sources[self._wanted[damage] % len(sources)]
                self._wanted[damage] += 1
                asked = Resend(damage.topic, damage.author, damage.device, damage.first, damage.last)
                self._out.send(peer, asked)

    def _sources(self, stream: Stream) -> list[PeerId]:
        known = dict.fromkeys((*stream.storage, *stream.flood.neighbors))
        own = self._context.peer
        return [peer for peer in known if peer in self._context.links and peer != own]


def _as_damage(verified: Verified) -> Damage:
    unit = verified.unit
    return Damage(unit.topic, unit.author, unit.device, unit.seq, len(unit.tails), verified.head)


def _record(kind: Kind, damage: Damage, note: str) -> Record:
    topic, head, device, first, count = damage.topic, damage.head, damage.device, damage.first, damage.count
    return Record(kind, topic, head, device, first, count, reason=Reason.DAMAGED, note=note)
