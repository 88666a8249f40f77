"""The keepers of a place, from the voice's side: they are asked to keep, and get everything that is said.

A keeper is a relay that the deed names (`linnet.places.keeping` is its own side). The voice holds a link to
each, shows the deed and who it is, and from the keeper's yes on sends it every fragment; what the keeper
lacks it asks for like anybody else. It is no guest: the clear part is all that it can read of a sealed place.
"""

from __future__ import annotations

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data
from linnet.machine.outbox import Outbox
from linnet.places.messages import Keep, Kept
from linnet.places.parts import Parts
from linnet.trace.records import Kind, Record

PAUSE = 60.0
"""Seconds until a keeper that said no, or nothing, is asked again."""


class Keepers:
    """Whom the voice of one place has keep it."""

    def __init__(self, parts: Parts, out: Outbox) -> None:
        self._parts = parts
        self._out = out
        self._purpose = f"keepers {parts.id.hex()[:16]}"
        self._held: dict[PeerId, None] = {}
        self._asked: dict[PeerId, float] = {}
        """When each was asked last."""

    def hold_keepers(self, now: float) -> None:
        """Hold links to all keepers while we are the voice, and ask who has not said yes."""
        parts = self._parts
        wanted = {each.peer: each for each in parts.deed.keepers if each.peer != parts.context.peer}
        if not parts.is_voice:
            wanted = {}
        for peer in [peer for peer in self._held if peer not in wanted]:
            del self._held[peer]
            parts.relaying.let_go(peer)
            self._out.release(peer, self._purpose)
        for peer, contact in wanted.items():
            if peer not in self._held:
                self._held[peer] = None
                self._out.hold(peer, contact.hints, self._purpose)
            self._ask(peer, now)

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: who was asked was asked as long ago as before."""
        for peer in self._asked:
            self._asked[peer] -= seconds

    def handle_link_up(self, peer: PeerId, now: float) -> None:
        """Ask a keeper whose link we may have waited for."""
        self._asked.pop(peer, None)
        if peer in self._held:
            self._ask(peer, now)

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget that a keeper was asked: it is asked again when its link is up."""
        self._asked.pop(peer, None)
        self._parts.relaying.let_go(peer)

    def handle_answer(self, peer: PeerId, kept: Kept, now: float) -> None:
        """Note a keeper's yes or no. With a yes it is sent the newest fragment: so it knows what it lacks."""
        parts = self._parts
        if peer not in self._asked:
            note = "a keeper's answer that nobody waits for"
            self._out.record(Record(Kind.REJECTED, parts.id, peer=peer, reason=Reason.SURPLUS, note=note))
            return
        if kept.reason is not None:
            note = f"a keeper says no: {kept.reason}"
            self._out.record(Record(Kind.DROPPED, parts.id, peer=peer, reason=kept.reason, note=note))
            return
        parts.relaying.keep(peer)
        newest = parts.fragments.get(parts.fragments.standing.fragment)
        unit = None if newest is None else parts.fragments.unit(newest)
        if unit is not None:
            card = parts.context.cards.find(unit.author, unit.device)
            self._out.committed.send(peer, Data(unit, 1, 0, int(now * 1_000_000), card))

    def _ask(self, peer: PeerId, now: float) -> None:
        parts = self._parts
        late = now >= self._asked.get(peer, now - PAUSE) + PAUSE
        if peer not in parts.context.links or parts.relaying.keeps(peer) or not late:
            return
        self._asked[peer] = now
        self._out.send(peer, Keep(parts.deed, parts.context.card))
