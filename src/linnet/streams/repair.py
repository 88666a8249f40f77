"""Units of our log that were found damaged: told, and asked for again from whoever else may have them.

The log leaves them out of what it answers. A unit that comes back is verified as any other, and put where
it was (docs/adr/0028-clocks-and-disks.md).
"""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.stores import Damage
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.delivery.messages import Resend, Resent
from linnet.event.event import Verified
from linnet.machine.outbox import Outbox
from linnet.streams.membership import Memberships
from linnet.streams.stream import Stream
from linnet.trace.records import Kind, Record

FIRST_PAUSE = 2.0
"""Seconds until the next source is asked; then twice as long each time."""
LONGEST_PAUSE = 600.0
ASKED_AT_ONCE = 256
"""Units that are asked for in one go: a store that is damaged all over is mended bit by bit."""


class RepairDue(Timer, frozen=True, gc=False):
    """What is damaged is to be asked for again, of somebody else."""


class Repair:
    """What is damaged of the streams that this node is in."""

    def __init__(self, context: Context, memberships: Memberships, out: Outbox) -> None:
        self._context = context
        self._memberships = memberships
        self._out = out
        self._wanted: dict[Damage, int] = {}
        """How often each was asked for."""
        self._pause = FIRST_PAUSE
        self._armed = False

    def __len__(self) -> int:
        return len(self._wanted)

    def note_damage(self) -> bool:
        """Ask for what reading has found damaged since the last look; returns whether there was any."""
        news = self._context.store.log.take_damage()
        if not news:
            return False
        for damage in news:
            self._out.record(_record(Kind.DROPPED, damage, None, "of our log"))
        fresh = [each for each in news if each.first is not None and each not in self._wanted]
        self._wanted |= dict.fromkeys(fresh, 0)
        if fresh:
            self._pause = FIRST_PAUSE
        self._ask(fresh)
        self._ask_later()
        return True

    def handle_resent(self, stream: Stream, resent: Resent, now: float) -> None:
        """What somebody holds of a range: perhaps what is damaged here."""
        if not any(damage.topic == stream.topic for damage in self._wanted):
            return
        log = self._context.store.log
        good, _ = stream.ingest.check_all(resent.units, resent.cards, None)
        for verified in good:
            # What is not damaged here comes by the stream's own way, in its turn.
            if log.is_damaged(_as_damage(verified)):
                stream.archive.keep(verified, now)
        mended = [damage for damage in self._wanted if not log.is_damaged(damage)]
        for damage in mended:
            del self._wanted[damage]
        if mended:
            self._out.committed.extend(_record(Kind.RESYNC, damage, None, "mended") for damage in mended)

    def ask_again(self) -> None:
        """Ask somebody else for what is still damaged."""
        self._armed = False
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)
        # A room or a place may have mended its own meanwhile, or it was evicted.
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


def _record(kind: Kind, damage: Damage, peer: PeerId | None, note: str) -> Record:
    return Record(
        kind,
        damage.topic,
        damage.head,
        damage.device,
        damage.first,
        damage.count,
        peer,
        reason=Reason.DAMAGED,
        note=note,
    )
