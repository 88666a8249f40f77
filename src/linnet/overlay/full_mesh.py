"""The full mesh: links to all known devices of a topic up to a limit, to a random subset beyond it.

It never dials. It holds peers, and `linnet.peer` dials them, again and again with growing pauses. A peer that
does not answer makes room for the next, and has to fail once more each time that its turn comes; so many dead
addresses do not keep live ones from being tried. At first every peer is tried once, quickly; peers that stay
away cost less and less.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from linnet.core.ids import Contact, PeerId
from linnet.machine.outbox import Outbox

SPARE = 4
"""Peers held beyond the limit while fewer than the limit answer: dead peers cost time."""
_MOST_FAILURES = 8
"""The most failures in a row before the next peer has its turn: with the pauses of `linnet.peer`, a
minute."""


class _Contact:
    """The state of one device."""

    __slots__ = ("failures", "hints", "rank", "turns")

    def __init__(self, hints: tuple[str, ...], rank: float, turns: int) -> None:
        self.hints = hints
        self.rank = rank
        """Drawn once: the order among peers with equally many turns. So the subset is random, and stays the
        same."""
        self.turns = turns
        """How often the device was held and did not answer."""
        self.failures = 0
        """Failures since the device is held."""


class FullMesh:
    """Chooses the devices of one topic to hold, and the order in which to try others.

    Each node of a large topic holds `limit` others at random, so the whole is connected with overwhelming
    probability from a limit of three on, and the more surely the larger it is. A node may have more links
    than that, since other nodes hold it too.
    """

    def __init__(self, purpose: str, limit: int, ours: PeerId, rng: Random, out: Outbox) -> None:
        self._limit = limit
        self._ours = ours
        self._rng = rng
        self._out = out
        self._purpose = purpose
        self._known: dict[PeerId, _Contact] = {}
        self._held: dict[PeerId, None] = {}
        self._up: dict[PeerId, None] = {}

    @property
    def held_peers(self) -> tuple[PeerId, ...]:
        """The peers that are held, whether they answer or not."""
        return tuple(self._held)

    @property
    def linked_peers(self) -> tuple[PeerId, ...]:
        """The peers that are held and answer."""
        return tuple(peer for peer in self._held if peer in self._up)

    def add_contacts(self, contacts: Iterable[Contact], doubtful: bool = False) -> None:
        """Add devices of the topic. Doubtful ones have their turn after the others have had one.

        A contact without addresses is held only once its link is open: it opens the link itself.
        """
        for peer, hints in ((contact.peer, contact.hints) for contact in contacts):
            if peer == self._ours:
                continue
            known = self._known.get(peer)
            if known is None:
                self._known[peer] = _Contact(hints, self._rng.random(), int(doubtful))
            elif hints and hints != known.hints:
                known.hints = hints
                if peer in self._held and peer not in self._up:
                    self._hold_peer(peer)
        self._hold_more()

    def forget_peer(self, peer: PeerId) -> None:
        """Release a peer that is not, or no longer, a device of the topic."""
        self._known.pop(peer, None)
        self._up.pop(peer, None)
        self._release_peer(peer)
        self._hold_more()

    def handle_link_up(self, peer: PeerId) -> None:
        """Count a known peer as up, whichever end opened the link."""
        contact = self._known.get(peer)
        if contact is None:
            return
        contact.turns = contact.failures = 0
        self._up[peer] = None
        if peer not in self._held and len(self.linked_peers) < self._limit:
            self._hold_peer(peer)
        self._release_silent()

    def handle_link_down(self, peer: PeerId) -> None:
        """Count a peer as down. It stays held: most peers come back."""
        self._up.pop(peer, None)
        self._hold_more()

    def handle_dial_failed(self, peer: PeerId) -> None:
        """Give the next peer its turn, once this one has failed often enough."""
        contact = self._known.get(peer)
        if contact is None or peer not in self._held or peer in self._up:
            return
        contact.failures += 1
        if contact.failures <= min(contact.turns, _MOST_FAILURES - 1):
            return
        contact.turns += 1
        contact.failures = 0
        if not any(self._known[other].turns < contact.turns for other in self._find_waiting()):
            return
        self._release_peer(peer)
        self._hold_more()

    def retry_silent(self) -> None:
        """Dial held peers that do not answer now instead of after their pause, since we are online again."""
        for peer in self._held:
            if peer not in self._up:
                self._hold_peer(peer)

    def set_limit(self, limit: int) -> None:
        """Set the number of peers to hold; 0 releases all."""
        self._limit = limit
        for peer in self.linked_peers[limit:]:
            self._release_peer(peer)
        self._hold_more()

    def _hold_more(self) -> None:
        """Hold the next peers while fewer than the limit answer, first those that have a link anyway."""
        there = [peer for peer in self._up if peer not in self._held]
        for peer in there[: max(0, self._limit - len(self.linked_peers))]:
            self._hold_peer(peer)
        if len(self.linked_peers) >= self._limit:
            self._release_silent()
            return
        free = self._limit + SPARE - len(self._held)
        for peer in self._find_waiting()[:free] if free > 0 else ():
            self._hold_peer(peer)

    def _release_silent(self) -> None:
        """Stop trying more peers once enough answer."""
        if len(self.linked_peers) < self._limit:
            return
        for peer in [peer for peer in self._held if peer not in self._up]:
            self._release_peer(peer)

    def _find_waiting(self) -> list[PeerId]:
        """Return peers that may be dialled and are not held, in the order of their turns."""
        known = self._known
        waiting = [peer for peer, contact in known.items() if contact.hints and peer not in self._held]
        return sorted(waiting, key=lambda peer: (known[peer].turns, known[peer].rank))

    def _hold_peer(self, peer: PeerId) -> None:
        self._held[peer] = None
        self._out.hold(peer, self._known[peer].hints, self._purpose)

    def _release_peer(self, peer: PeerId) -> None:
        contact = self._known.get(peer)
        if contact is not None:
            contact.failures = 0
        if self._held.pop(peer, self) is None:
            self._out.release(peer, self._purpose)
