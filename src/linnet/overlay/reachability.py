"""Whether the nodes of a tracker can be dialled: each is tried once, at the addresses it gives."""

from __future__ import annotations

from linnet.core.effects import Probe
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox


class Callee:
    """A node and what is known about dialling it."""

    __slots__ = ("_contact", "failure", "hints", "is_probing", "was_moved")

    def __init__(self) -> None:
        self.hints: tuple[str, ...] = ()
        self.failure: Reason | None = None
        self.is_probing = False
        self.was_moved = False
        """Whether its addresses changed while it was tried."""
        self._contact = Contact(PeerId(b""))

    @property
    def is_dialable(self) -> bool:
        """Whether others may dial it; until it was tried, what it says is believed."""
        return bool(self.hints) and self.failure is None

    def contact(self, peer: PeerId) -> Contact:
        """What others are told; no addresses if they are of no use."""
        hints = self.hints if self.is_dialable else ()
        if self._contact.peer != peer or self._contact.hints != hints:
            self._contact = Contact(peer, hints)
        return self._contact

    def note_addresses(self, peer: PeerId, hints: tuple[str, ...], out: Outbox) -> None:
        """It says where it may be dialled; tried if that is news, one attempt at a time."""
        if hints == self.hints:
            return
        self.hints = hints
        self.failure = None
        if self.is_probing:
            self.was_moved = True
        else:
            self._probe(peer, out)

    def handle_probe(self, peer: PeerId, failure: Reason | None, out: Outbox) -> bool:
        """It was tried. Whether that is the answer; otherwise it has moved, and is tried again."""
        self.is_probing = False
        if self.was_moved:
            self.was_moved = False
            self._probe(peer, out)
            return False
        self.failure = failure
        return True

    def _probe(self, peer: PeerId, out: Outbox) -> None:
        if self.hints:
            self.is_probing = True
            out.add(Probe(peer, self.hints))
