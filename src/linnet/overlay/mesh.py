"""The full mesh: a link to every known device of a topic, up to a limit, beyond it to some at random.

It never dials. It holds peers, and `linnet.peer` dials them, again and again with growing pauses. So
that many dead addresses do not keep live ones from being tried, whoever does not answer makes room
for the next, and has to fail once more each time that its turn comes: first everyone is tried
once, quickly; whoever stays away costs less and less.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.machine.outbox import Outbox

SPARE = 4
"""Peers that are held beyond the limit while fewer than the limit answer: those that are dead cost time."""
_MOST_FAILURES = 8
"""Failures in a row before the next has its turn, at most: with the pauses of `linnet.peer` a minute."""


class _Contact:
    """What is known of one device."""

    __slots__ = ("failures", "hints", "rank", "turns")

    def __init__(self, hints: tuple[str, ...], rank: float, turns: int) -> None:
        self.hints = hints
        self.rank = rank
        """Drawn once: the order among those who had as many turns. So the subset is random, and stays."""
        self.turns = turns
        """How often it was held and did not answer."""
        self.failures = 0
        """Failures since it is held."""


class Mesh:
    """The devices of one topic: who is held, and who is next.

    Each node of a large topic holds `limit` others at random, so the whole is connected with
    overwhelming probability from a limit of three on, and the more surely the larger it is. Who is
    held by others may have more links than that.
    """

    def __init__(
        self,
        topic: TopicId,
        limit: int,
        ours: PeerId,
        rng: Random,
        out: Outbox,
        purpose: str | None = None,
    ) -> None:
        self._limit = limit
        self._ours = ours
        self._rng = rng
        self._out = out
        self._purpose = topic.hex() if purpose is None else purpose
        self._known: dict[PeerId, _Contact] = {}
        self._held: dict[PeerId, None] = {}
        self._up: dict[PeerId, None] = {}

    @property
    def held(self) -> tuple[PeerId, ...]:
        """Peers that are held, whether they answer or not."""
        return tuple(self._held)

    @property
    def up(self) -> tuple[PeerId, ...]:
        """Peers that are held and answer."""
        return tuple(peer for peer in self._held if peer in self._up)

    def add(self, contacts: Iterable[Contact], doubtful: bool = False) -> None:
        """Add devices of the topic. Doubtful ones have their turn when the others had one.

        A contact without addresses is held only once its link is there: it opens it itself.
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
                    self._hold(peer)
        self._fill()

    def forget(self, peer: PeerId) -> None:
        """Let go of a peer that is no device of the topic, or no longer."""
        self._known.pop(peer, None)
        self._up.pop(peer, None)
        self._let_go(peer)
        self._fill()

    def handle_link_up(self, peer: PeerId) -> None:
        """Count a known peer as there, whoever opened the link."""
        contact = self._known.get(peer)
        if contact is None:
            return
        contact.turns = contact.failures = 0
        self._up[peer] = None
        if peer not in self._held and len(self.up) < self._limit:
            self._hold(peer)
        self._trim()

    def handle_link_down(self, peer: PeerId) -> None:
        """Count a peer as gone. It stays held: most come back."""
        self._up.pop(peer, None)
        self._fill()

    def handle_dial_failed(self, peer: PeerId) -> None:
        """Give the next its turn, if a peer has not answered often enough."""
        contact = self._known.get(peer)
        if contact is None or peer not in self._held or peer in self._up:
            return
        contact.failures += 1
        if contact.failures <= min(contact.turns, _MOST_FAILURES - 1):
            return
        contact.turns += 1
        contact.failures = 0
        if not any(self._known[other].turns < contact.turns for other in self._waiting()):
            return
        self._let_go(peer)
        self._fill()

    def retry(self) -> None:
        """Try whoever is held and does not answer at once, not after the pause: we are back."""
        for peer in self._held:
            if peer not in self._up:
                self._hold(peer)

    def resize(self, limit: int) -> None:
        """Hold so many; 0 lets all go."""
        self._limit = limit
        for peer in self.up[limit:]:
            self._let_go(peer)
        self._fill()

    def _fill(self) -> None:
        """Hold whoever is next, as long as fewer than the limit answer: first those who are there anyway."""
        there = [peer for peer in self._up if peer not in self._held]
        for peer in there[: max(0, self._limit - len(self.up))]:
            self._hold(peer)
        if len(self.up) >= self._limit:
            self._trim()
            return
        free = self._limit + SPARE - len(self._held)
        for peer in self._waiting()[:free] if free > 0 else ():
            self._hold(peer)

    def _trim(self) -> None:
        """Stop trying more peers once enough answer."""
        if len(self.up) < self._limit:
            return
        for peer in [peer for peer in self._held if peer not in self._up]:
            self._let_go(peer)

    def _waiting(self) -> list[PeerId]:
        """Who may be dialled and is not held, in the order of their turns."""
        known = self._known
        waiting = [peer for peer, contact in known.items() if contact.hints and peer not in self._held]
        return sorted(waiting, key=lambda peer: (known[peer].turns, known[peer].rank))

    def _hold(self, peer: PeerId) -> None:
        self._held[peer] = None
        self._out.hold(peer, self._known[peer].hints, self._purpose)

    def _let_go(self, peer: PeerId) -> None:
        contact = self._known.get(peer)
        if contact is not None:
            contact.failures = 0
        if self._held.pop(peer, self) is None:
            self._out.release(peer, self._purpose)
