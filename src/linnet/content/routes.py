"""Where a node's routes can be dialled, the keepers of their filters, and messages over the links to them.

A link is held for as long as messages go that way. A message that breaks the rules is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, TypeAlias, TypeVar

from linnet.content.config import ContentConfig
from linnet.content.filter_table import FilterTable
from linnet.content.messages import Arrival, ContentMessage, Held, Taken
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Committed, Outbox
from linnet.machine.part import Part, on_message
from linnet.trace.records import Kind, Record

PURPOSE = "content"
Promise = Callable[[], Outbox | Committed]
"""Returns the outbox for acknowledgements: sent at once, or when the taken event is durable."""


class Reach:
    """Keeps track of links: which are up, which are held, and which messages wait for one."""

    def __init__(self, config: ContentConfig, out: Outbox, promise: Promise | None = None) -> None:
        """Acknowledge events at once if no `promise` is given."""
        self._config = config
        self._out = out
        self._promise: Promise = promise or (lambda: out)
        self._up: dict[PeerId, tuple[str, ...]] = {}
        """Peers with a link, and the addresses that they announced."""
        self._held: dict[PeerId, None] = {}
        self._waiting: dict[PeerId, list[ContentMessage]] = {}

    def send(self, contact: Contact, message: ContentMessage) -> None:
        """Send a message, at once or as soon as there is a link."""
        peer = contact.peer
        self.hold(contact)
        if peer in self._up:
            self._out.send(peer, message)
            return
        waiting = self._waiting.setdefault(peer, [])
        if len(waiting) >= self._config.waiting:
            self._drop(peer, Reason.QUEUE_FULL, message)
            return
        waiting.append(message)

    def hold(self, contact: Contact) -> None:
        """Hold a link to a peer, since messages will go there."""
        if contact.peer in self._held:
            return
        self._held[contact.peer] = None
        self._out.hold(contact.peer, contact.hints, PURPOSE)

    def answer(self, peer: PeerId, message: Message) -> None:
        """Send a message to a peer that has a link to us; if the link is gone, the peer will ask again."""
        if peer not in self._up:
            self._drop(peer, Reason.UNREACHABLE, message)
        elif _tells_arrival(message):
            self._promise().send(peer, message)
        else:
            self._out.send(peer, message)

    def is_up(self, peer: PeerId) -> bool:
        """Return whether there is a link."""
        return peer in self._up

    def contact(self, peer: PeerId) -> Contact:
        """Return a peer with the addresses that it announced."""
        return Contact(peer, self._up.get(peer, ()))

    def handle_link_up(self, peer: PeerId, hints: tuple[str, ...] = ()) -> None:
        """Send the messages that waited for a link that is up."""
        self._up[peer] = hints
        for message in self._waiting.pop(peer, ()):
            self._out.send(peer, message)

    def handle_link_down(self, peer: PeerId, reason: Reason) -> None:
        """Drop the messages that waited for a link that is down or did not come up: senders repeat them."""
        self._up.pop(peer, None)
        if peer in self._held:
            del self._held[peer]
            self._out.release(peer, PURPOSE)
        for message in self._waiting.pop(peer, ()):
            self._drop(peer, reason, message)

    def release_idle(self, needed: dict[PeerId, None]) -> None:
        """Release all links but these, and those that messages wait for."""
        idle = [peer for peer in self._held if peer not in needed and peer not in self._waiting]
        for peer in idle:
            del self._held[peer]
            self._out.release(peer, PURPOSE)

    def _drop(self, peer: PeerId, reason: Reason, message: Message) -> None:
        self._out.record(Record(Kind.DROPPED, peer=peer, reason=reason, note=type(message).__name__))


def _tells_arrival(message: Message) -> bool:
    if isinstance(message, Held | Taken):
        return message.so_far is not None
    return isinstance(message, Arrival)


class Listener(Part):
    """A part that refuses invalid messages of peers: its handlers raise `RemoteError` for them."""

    def __init__(self, out: Outbox) -> None:
        self._out = out

    def spend(self, peer: PeerId, message: Message) -> None:
        """Count a message against its peer's quota; `RemoteError` if that is exceeded."""

    def answer(self, peer: PeerId, message: Message) -> None:
        """Send an answer to a peer over its link."""
        raise NotImplementedError

    def finish(self, now: float) -> None:
        """Act on the results of an input."""
        raise NotImplementedError


L = TypeVar("L", bound=Listener)
M = TypeVar("M", bound=Message)
_Handle: TypeAlias = Callable[[L, PeerId, M, float], None]


def hears(
    kind: type[M], refusal: Callable[[M, Reason], Message] | None = None
) -> Callable[[_Handle[L, M]], _Handle[L, M]]:
    """Mark the handler of messages of this type. A message that it refuses has no effect except that a record
    gives the reason, and that its sender is answered with `refusal`, if there is one."""

    def wrap(handle: _Handle[L, M]) -> _Handle[L, M]:
        @on_message(kind)
        @wraps(handle)
        def hear(part: L, peer: PeerId, message: M, now: float) -> None:
            out = part._out
            before = out.mark()
            try:
                part.spend(peer, message)
                handle(part, peer, message, now)
            except RemoteError as error:
                out.forget_since(before)
                note = f"{kind.__name__}: {error.detail}"[:200]
                out.record(Record(Kind.REJECTED, peer=peer, reason=error.reason, note=note))
                if refusal is not None:
                    part.answer(peer, refusal(message, error.reason))
            else:
                part.finish(now)

        return hear

    return wrap


class RouteLapse(Timer, frozen=True, gc=False):
    """A route has been without a link for so long that all below it have moved elsewhere."""

    peer: PeerId


class RouteBook:
    """What is known of routes beside their filters: keepers, addresses and shortcuts."""

    def __init__(self, config: ContentConfig, reach: Reach, out: Outbox) -> None:
        self._config = config
        self._out = out
        self._reach = reach
        self._backups: dict[PeerId, tuple[Contact, ...]] = {}
        self._contacts: dict[PeerId, Contact] = {}
        self._shortcuts: dict[tuple[PeerId, str], Contact] = {}

    def learn(self, peer: PeerId, backups: tuple[Contact, ...], contact: Contact | None = None) -> None:
        """Note the keepers of a route's filters; the oldest are forgotten where there are too many."""
        self._backups.pop(peer, None)
        self._backups[peer] = backups
        if contact is not None:
            self._contacts[peer] = contact
        if len(self._backups) > self._config.routes:
            oldest = next(iter(self._backups))
            del self._backups[oldest]
            self._contacts.pop(oldest, None)

    def backups(self, peer: PeerId) -> tuple[Contact, ...]:
        """Return the keepers of a route's filters, as far as it named them."""
        return self._backups.get(peer, ())

    def contact(self, peer: PeerId) -> Contact:
        """Return where a route can be dialled, as far as it is known."""
        known = self._reach.contact(peer)
        return known if known.hints else self._contacts.get(peer, known)

    def set_shortcut(self, peer: PeerId, attribute: str, shortcut: Contact | None) -> None:
        """Note the node to send to in place of a route; None: send to the route itself."""
        self._shortcuts.pop((peer, attribute), None)
        if shortcut is None or len(self._shortcuts) >= self._config.routes:
            return
        self._shortcuts[peer, attribute] = shortcut
        self._reach.hold(shortcut)

    def shortcut(self, peer: PeerId, attribute: str) -> Contact | None:
        """Return the node to send to in place of a route; None: send to the route itself."""
        return self._shortcuts.get((peer, attribute))

    @property
    def shortcuts(self) -> dict[PeerId, None]:
        """Peers that links are worth holding to."""
        return {contact.peer: None for contact in self._shortcuts.values()}

    def keep_shortcuts(self, routes: dict[str, list[PeerId]]) -> None:
        """Forget the shortcuts past routes that no longer exist."""
        left = {pair: each for pair, each in self._shortcuts.items() if pair[0] in routes.get(pair[1], ())}
        self._shortcuts = left

    def handle_link_down(self, peer: PeerId) -> None:
        """Have a route lapse whose link is down, unless it comes back in time."""
        if peer in self._backups:
            self._out.set_timer(self._config.avoided, RouteLapse(peer))

    def forget_lapsed(self, peer: PeerId) -> bool:
        """Forget a route unless it is back; return whether it was forgotten."""
        if self._reach.is_up(peer):
            return False
        self._backups.pop(peer, None)
        self._contacts.pop(peer, None)
        return True


class Station(NamedTuple):
    """The state that all parts of ScoutSubs at one node share."""

    ours: PeerId
    config: ContentConfig
    reach: Reach
    table: FilterTable
    book: RouteBook
    out: Outbox
