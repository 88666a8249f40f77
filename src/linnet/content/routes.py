"""Where a node's routes can be dialled, and who keeps their filters."""

from __future__ import annotations

from linnet.content.config import ContentConfig
from linnet.content.reach import Reach
from linnet.core.ids import Contact, PeerId
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox


class RouteLapse(Timer, frozen=True, gc=False):
    """A route has been without a link for so long that all below it have moved elsewhere."""

    peer: PeerId


class RouteBook:
    """What is known of routes beside what they ask for."""

    def __init__(self, config: ContentConfig, reach: Reach, out: Outbox) -> None:
        self._config = config
        self._out = out
        self._reach = reach
        self._backups: dict[PeerId, tuple[Contact, ...]] = {}
        self._contacts: dict[PeerId, Contact] = {}
        self._shortcuts: dict[tuple[PeerId, str], Contact] = {}

    def learn(self, peer: PeerId, backups: tuple[Contact, ...], contact: Contact | None = None) -> None:
        """Who keeps the filters of a route; the oldest are forgotten where there are too many."""
        self._backups.pop(peer, None)
        self._backups[peer] = backups
        if contact is not None:
            self._contacts[peer] = contact
        if len(self._backups) > self._config.routes:
            oldest = next(iter(self._backups))
            del self._backups[oldest]
            self._contacts.pop(oldest, None)

    def backups(self, peer: PeerId) -> tuple[Contact, ...]:
        """Who keeps the filters of a route, as far as it said so."""
        return self._backups.get(peer, ())

    def contact(self, peer: PeerId) -> Contact:
        """Where a route can be dialled, as far as it is known."""
        known = self._reach.contact(peer)
        return known if known.hints else self._contacts.get(peer, known)

    def set_shortcut(self, peer: PeerId, attribute: str, shortcut: Contact | None) -> None:
        """Note where to send in place of a route; None: to the route itself."""
        self._shortcuts.pop((peer, attribute), None)
        if shortcut is None or len(self._shortcuts) >= self._config.routes:
            return
        self._shortcuts[peer, attribute] = shortcut
        self._reach.hold(shortcut)

    def shortcut(self, peer: PeerId, attribute: str) -> Contact | None:
        """Where to send in place of a route."""
        return self._shortcuts.get((peer, attribute))

    @property
    def shortcuts(self) -> dict[PeerId, None]:
        """Peers to which links are worth holding."""
        return {contact.peer: None for contact in self._shortcuts.values()}

    def keep_shortcuts(self, routes: dict[str, list[PeerId]]) -> None:
        """Forget shortcuts past routes that there are no more."""
        left = {pair: each for pair, each in self._shortcuts.items() if pair[0] in routes.get(pair[1], ())}
        self._shortcuts = left

    def handle_link_down(self, peer: PeerId) -> None:
        """Have a route whose link is down lapse, unless it comes back in time."""
        if peer in self._backups:
            self._out.set_timer(self._config.avoided, RouteLapse(peer))

    def forget_lapsed(self, peer: PeerId) -> bool:
        """Forget a route unless it is back; whether it was forgotten."""
        if self._reach.is_up(peer):
            return False
        self._backups.pop(peer, None)
        self._contacts.pop(peer, None)
        return True
