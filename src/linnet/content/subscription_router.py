"""Subscriptions on their way up: requests to next hops, for this node and for the routes below it."""

from __future__ import annotations

from msgspec import Struct

from linnet.content.filter_backup import Backups
from linnet.content.filter_table import Filters
from linnet.content.messages import REPLACED, Replace, Subscribe, Subscribed
from linnet.content.predicate import Predicate
from linnet.content.rendezvous import PENDING, Elections, Verdict
from linnet.content.routes import Station
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.trace.records import Kind, Record

Waiter = tuple[PeerId, int]
"""A peer that waits for an answer, and the number of its request."""


class SubscribeDue(Timer, frozen=True, gc=False):
    """The next hop has not answered in time whether a predicate stands."""

    number: int


class _Ask(Struct, eq=False):
    """One predicate that was sent to the next hop, or will be when that is known."""

    attribute: str
    predicate: Predicate
    hops: int
    waiters: list[Waiter]
    moved: bool = False
    peer: PeerId | None = None
    tries: int = 0


class SubscriptionRouter:
    """Sends predicates to next hops, and remembers which were sent and which answers are open."""

    def __init__(self, station: Station, elections: Elections, backups: Backups) -> None:
        self._station = station
        self._elections = elections
        self._backups = backups
        self._number = 0
        self._open: dict[int, _Ask] = {}
        self._parked: dict[str, list[_Ask]] = {}
        """Requests that wait for a lookup, by attribute."""
        self._waiting = 0
        """How many they are."""
        self._told: dict[str, Filters] = {}
        """The predicates that the next hop was sent in this period, by attribute."""
        self._next: dict[str, Contact] = {}
        self._elsewhere: dict[str, None] = {}
        """Attributes whose next hop has changed in this period: the new one may have missed something."""
        self._said: dict[str, tuple[tuple[Contact, ...], Contact | None]] = {}
        """The keepers and the shortcut that the next hop was sent, by attribute."""

    @property
    def next_hops(self) -> dict[PeerId, None]:
        """Peers that send us the events that we asked for."""
        return {contact.peer: None for contact in self._next.values()}

    @property
    def is_settled(self) -> bool:
        """Whether no request is open."""
        return not self._open and not self._parked

    def tell(
        self,
        attribute: str,
        predicate: Predicate,
        hops: int,
        waiters: list[Waiter],
        now: float,
        moved: bool = False,
    ) -> None:
        """Have the next hop send the events that a predicate accepts, unless it was asked already."""
        if waiters and len(self._open) + self._waiting >= self._station.config.held:
            note = f"{self._station.config.held} subscriptions wait for an answer"
            self._station.out.record(Record(Kind.REJECTED, reason=Reason.QUEUE_FULL, note=note))
            self._answer(waiters, Reason.QUEUE_FULL)
            return
        added = self._told.setdefault(attribute, Filters()).add(predicate)
        if added.covered and not self._has_news(attribute, now):
            for ask in [*self._open.values(), *self._parked.get(attribute, ())]:
                if ask.attribute == attribute and ask.predicate.covers(predicate):
                    room = max(0, self._station.config.waiting - len(ask.waiters))
                    ask.waiters += waiters[:room]
                    self._answer(waiters[room:], Reason.QUEUE_FULL)
                    return
            self._answer(waiters, None)
            return
        self._ask_next_hop(_Ask(attribute, added.stands, hops, waiters, moved), now)

    def _ask_next_hop(self, ask: _Ask, now: float) -> None:
        decided = self._elections.decide(ask.attribute, now)
        if decided is PENDING:
            self._parked.setdefault(ask.attribute, []).append(ask)
            self._waiting += 1
            return
        if isinstance(decided, Verdict):
            self._leave_next_hop(ask.attribute)
            if not self._backups.defer_answers(ask.attribute, ask.waiters):
                self._answer(ask.waiters, None)
            return
        before = self._next.get(ask.attribute)
        is_another = before is not None and before.peer != decided.peer
        if is_another:
            self._elsewhere[ask.attribute] = None
        self._leave_next_hop(ask.attribute, decided)
        self._next[ask.attribute] = decided
        self._number += 1
        keepers, shortcut = self._said[ask.attribute] = self._beside(ask.attribute, now)
        self._backups.note_named(decided.peer, keepers)
        text, moved = ask.predicate.text, ask.moved or ask.attribute in self._elsewhere
        message = Subscribe(self._number, ask.attribute, text, ask.hops, moved, keepers, shortcut)
        self._station.reach.send(decided, message)
        if self._station.config.reliable:
            ask.peer = decided.peer
            self._open[self._number] = ask
            self._station.out.set_timer(self._wait(ask), SubscribeDue(self._number))
        if is_another:
            self._tell_rest(ask, now)

    def _tell_rest(self, ask: _Ask, now: float) -> None:
        """Send a new next hop all other predicates too: the old one was told that they no longer count."""
        told = self._told[ask.attribute] = Filters()
        told.add(ask.predicate)
        for predicate in self._station.table.asked(ask.attribute):
            self.tell(ask.attribute, predicate, 0, [], now, moved=True)

    def _beside(self, attribute: str, now: float) -> tuple[tuple[Contact, ...], Contact | None]:
        """Return what a subscription tells the next hop beside its predicate: keepers and a shortcut.

        The keepers can name this node's routes in its place; there are none if it has no routes. The shortcut
        is the route to send to past this node, if it is the only one."""
        routes = self._station.table.routes(attribute)
        others = [route for route in routes if route != self._station.ours]
        keepers = self._backups.contacts(now) if others else ()
        if not self._station.config.redirect or len(routes) != 1 or not others:
            return keepers, None
        return keepers, self._station.book.shortcut(others[0], attribute) or self._station.book.contact(
            others[0]
        )

    def _has_news(self, attribute: str, now: float) -> bool:
        """Return whether the keepers or the shortcut changed, so that a next hop needs news of them.

        The news goes all the way up: there may be a shortcut past any node on the way."""
        return attribute in self._next and self._said.get(attribute) != self._beside(attribute, now)

    def _leave_next_hop(self, attribute: str, chosen: Contact | None = None) -> None:
        """Tell a next hop that it no longer is one."""
        old = self._next.get(attribute)
        if old is None or (chosen is not None and old.peer == chosen.peer):
            return
        del self._next[attribute]
        self._station.reach.answer(old.peer, Replace(attribute, ()))

    def handle_answer(self, peer: PeerId, message: Subscribed, now: float) -> None:
        """Note that a predicate stands all the way, or ask another way."""
        ask = self._open.get(message.number)
        if ask is None or ask.peer != peer:
            self._station.out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Subscribed"))
            return
        del self._open[message.number]
        self._station.out.cancel_timer(SubscribeDue(message.number))
        if message.reason is None:
            self._answer(ask.waiters, None)
            return
        self._elections.suspects.avoid(peer, now)
        self._ask_again(ask, now)

    def handle_timeout(self, timer: SubscribeDue, now: float) -> None:
        """Ask once more, or by another way when all tries are spent."""
        ask = self._open.pop(timer.number, None)
        if ask is None or ask.peer is None:
            return
        ask.tries += 1
        if ask.tries % self._station.config.tries == 0:
            self._elections.suspects.avoid(ask.peer, now)
        self._ask_again(ask, now)

    def _ask_again(self, ask: _Ask, now: float) -> None:
        if ask.tries >= self._station.config.tries * self._station.config.tries:
            note = f"a subscription under {ask.attribute}"
            self._station.out.record(Record(Kind.DROPPED, peer=ask.peer, reason=Reason.TIMEOUT, note=note))
            self._answer(ask.waiters, Reason.TIMEOUT)
            return
        self._ask_next_hop(ask, now)

    def resume(self, attribute: str, now: float) -> None:
        """Send the requests that waited for a lookup."""
        parked = self._parked.pop(attribute, [])
        self._waiting -= len(parked)
        for ask in parked:
            self._ask_next_hop(ask, now)

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """Send another next hop all predicates that a lost one was sent."""
        for number, ask in [each for each in self._open.items() if each[1].peer == peer]:
            del self._open[number]
            self._station.out.cancel_timer(SubscribeDue(number))
            self._ask_next_hop(ask, now)
        for attribute in [name for name, contact in self._next.items() if contact.peer == peer]:
            del self._next[attribute]
            self._said.pop(attribute, None)
            self.retell(attribute, now)

    def retell(self, attribute: str, now: float) -> None:
        """Send all predicates of an attribute again, as if none had been sent."""
        self._told.pop(attribute, None)
        for predicate in self._station.table.asked(attribute):
            self.tell(attribute, predicate, 0, [], now, moved=True)

    def withdraw(self, attribute: str) -> None:
        """Tell the next hop which predicates still count, since some no longer do."""
        contact = self._next.get(attribute)
        if contact is None:
            self._told.pop(attribute, None)
            return
        asked = self._station.table.asked(attribute)
        if len(asked) > REPLACED:
            note = f"{len(asked)} filters under {attribute} are left to end by themselves"
            self._station.out.record(
                Record(Kind.CONTROL, peer=contact.peer, reason=Reason.TOO_MANY, note=note)
            )
            return
        if [*asked] == [*self._told.get(attribute, ())]:
            return
        self._told[attribute] = asked
        texts = tuple(each.text for each in asked)
        self._station.reach.send(contact, Replace(attribute, texts))
        if not texts:
            del self._next[attribute], self._told[attribute]

    def begin_period(self, now: float) -> None:
        """Start a period: predicates are sent again as they come, and at once to a next hop that is new."""
        self._told.clear()
        self._elsewhere.clear()
        for attribute, contact in list(self._next.items()):
            if attribute not in self._station.table.attributes:
                del self._next[attribute]
                continue
            decided = self._elections.decide(attribute, now)
            if decided is not PENDING and not (isinstance(decided, Contact) and decided.peer == contact.peer):
                self.retell(attribute, now)

    def _answer(self, waiters: list[Waiter], reason: Reason | None) -> None:
        for peer, number in waiters:
            self._station.reach.answer(peer, Subscribed(number, reason))

    def _wait(self, ask: _Ask) -> float:
        return float(self._station.config.resend * 2 ** (ask.tries % self._station.config.tries))
