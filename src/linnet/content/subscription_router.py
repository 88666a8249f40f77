"""Subscriptions on their way up: what this node asks of the next one, for itself and for those below it."""

from __future__ import annotations

from linnet.content.config import ContentConfig
from linnet.content.filter_backup import Backups
from linnet.content.filter_table import Filters, FilterTable
from linnet.content.messages import REPLACED, Replace, Subscribe, Subscribed
from linnet.content.predicate import Predicate
from linnet.content.reach import Reach
from linnet.content.rendezvous import PENDING, Elections, Verdict
from linnet.content.routes import RouteBook
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

Waiter = tuple[PeerId, int]
"""Who waits for an answer, and under which number it asked."""


class SubscribeDue(Timer, frozen=True, gc=False):
    """The next hop has not said in time whether a predicate stands."""

    number: int


class _Ask:
    """One predicate that was told to the next hop, or will be when that is known."""

    __slots__ = ("attribute", "hops", "moved", "peer", "predicate", "tries", "waiters")

    def __init__(self, attribute: str, predicate: Predicate, hops: int, waiters: list[Waiter]) -> None:
        self.attribute = attribute
        self.predicate = predicate
        self.hops = hops
        self.waiters = waiters
        self.peer: PeerId | None = None
        self.tries = 0
        self.moved = False


class SubscriptionRouter:
    """What was told to whom, and what is still open."""

    def __init__(
        self,
        ours: PeerId,
        config: ContentConfig,
        elections: Elections,
        reach: Reach,
        table: FilterTable,
        backups: Backups,
        book: RouteBook,
        out: Outbox,
    ) -> None:
        self._ours = ours
        self._out = out
        self._config = config
        self._elections = elections
        self._reach = reach
        self._table = table
        self._backups = backups
        self._book = book
        self._number = 0
        self._open: dict[int, _Ask] = {}
        self._parked: dict[str, list[_Ask]] = {}
        """What waits for a lookup."""
        self._told: dict[str, Filters] = {}
        """What the next hop was told in this period, by attribute."""
        self._next: dict[str, Contact] = {}
        self._elsewhere: dict[str, None] = {}
        """Attributes whose next hop was another before, in this period: it may have missed something."""
        self._said: dict[str, tuple[tuple[Contact, ...], Contact | None]] = {}
        """What it was told beside."""

    @property
    def next_hops(self) -> dict[PeerId, None]:
        """Peers that send us what we asked for."""
        return {contact.peer: None for contact in self._next.values()}

    @property
    def is_settled(self) -> bool:
        """Whether nothing is open."""
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
        """Have the next hop send what a predicate accepts, unless it was told already."""
        added = self._told.setdefault(attribute, Filters()).add(predicate)
        if added.covered and not self._has_news(attribute, now):
            for ask in [*self._open.values(), *self._parked.get(attribute, ())]:
                if ask.attribute == attribute and ask.predicate.covers(predicate):
                    ask.waiters += waiters
                    return
            self._answer(waiters, None)
            return
        ask = _Ask(attribute, added.stands, hops, waiters)
        ask.moved = moved
        self._ask_next_hop(ask, now)

    def _ask_next_hop(self, ask: _Ask, now: float) -> None:
        decided = self._elections.decide(ask.attribute, now)
        if decided is PENDING:
            self._parked.setdefault(ask.attribute, []).append(ask)
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
        self._reach.send(decided, message)
        if self._config.reliable:
            ask.peer = decided.peer
            self._open[self._number] = ask
            self._out.set_timer(self._wait(ask), SubscribeDue(self._number))
        if is_another:
            self._tell_rest(ask, now)

    def _tell_rest(self, ask: _Ask, now: float) -> None:
        """A next hop that was another before was told one predicate: tell it all others, since the one before
        was told that nothing counts any more."""
        told = self._told[ask.attribute] = Filters()
        told.add(ask.predicate)
        for predicate in self._table.asked(ask.attribute):
            self.tell(ask.attribute, predicate, 0, [], now, moved=True)

    def _beside(self, attribute: str, now: float) -> tuple[tuple[Contact, ...], Contact | None]:
        """What the next hop is told beside what is asked for: who can name this node's routes in its place,
        which nobody has to if it has none; and where to send past it, if it has but one."""
        routes = self._table.routes(attribute)
        others = [route for route in routes if route != self._ours]
        keepers = self._backups.contacts(now) if others else ()
        if not self._config.redirect or len(routes) != 1 or not others:
            return keepers, None
        return keepers, self._book.shortcut(others[0], attribute) or self._book.contact(others[0])

    def _has_news(self, attribute: str, now: float) -> bool:
        """Whether the next hop has to be told though it sends us enough: who stands in is another, or it may
        not send past us any more. All the way up: there may be a shortcut past any node on it."""
        return attribute in self._next and self._said.get(attribute) != self._beside(attribute, now)

    def _leave_next_hop(self, attribute: str, chosen: Contact | None = None) -> None:
        """Tell a next hop that another one is that now."""
        old = self._next.get(attribute)
        if old is None or (chosen is not None and old.peer == chosen.peer):
            return
        del self._next[attribute]
        self._reach.answer(old.peer, Replace(attribute, ()))

    def handle_answer(self, peer: PeerId, message: Subscribed, now: float) -> None:
        """Note that a predicate stands all the way, or ask another way."""
        ask = self._open.get(message.number)
        if ask is None or ask.peer != peer:
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="Subscribed"))
            return
        del self._open[message.number]
        self._out.cancel_timer(SubscribeDue(message.number))
        if message.reason is None:
            self._answer(ask.waiters, None)
            return
        self._elections.avoid(peer, now)
        self._ask_again(ask, now)

    def handle_timeout(self, timer: SubscribeDue, now: float) -> None:
        """Ask once more, and in the end by another way."""
        ask = self._open.pop(timer.number, None)
        if ask is None or ask.peer is None:
            return
        ask.tries += 1
        if ask.tries % self._config.tries == 0:
            self._elections.avoid(ask.peer, now)
        self._ask_again(ask, now)

    def _ask_again(self, ask: _Ask, now: float) -> None:
        if ask.tries >= self._config.tries * self._config.tries:
            note = f"a subscription under {ask.attribute}"
            self._out.record(Record(Kind.DROPPED, peer=ask.peer, reason=Reason.TIMEOUT, note=note))
            self._answer(ask.waiters, Reason.TIMEOUT)
            return
        self._ask_next_hop(ask, now)

    def resume(self, attribute: str, now: float) -> None:
        """Ask what waited for a lookup."""
        for ask in self._parked.pop(attribute, ()):
            self._ask_next_hop(ask, now)

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """Tell another all that was told to a peer that is gone."""
        for number, ask in [each for each in self._open.items() if each[1].peer == peer]:
            del self._open[number]
            self._out.cancel_timer(SubscribeDue(number))
            self._ask_next_hop(ask, now)
        for attribute in [name for name, contact in self._next.items() if contact.peer == peer]:
            del self._next[attribute]
            self._said.pop(attribute, None)
            self.retell(attribute, now)

    def retell(self, attribute: str, now: float) -> None:
        """Tell all that is asked for under an attribute, as if nothing had been told."""
        self._told.pop(attribute, None)
        for predicate in self._table.asked(attribute):
            self.tell(attribute, predicate, 0, [], now, moved=True)

    def withdraw(self, attribute: str) -> None:
        """Tell the next hop what is still asked for, since something is not any more."""
        contact = self._next.get(attribute)
        if contact is None:
            self._told.pop(attribute, None)
            return
        asked = self._table.asked(attribute)
        if len(asked) > REPLACED:
            note = f"{len(asked)} filters under {attribute} are left to end by themselves"
            self._out.record(Record(Kind.CONTROL, peer=contact.peer, reason=Reason.TOO_MANY, note=note))
            return
        if [*asked] == [*self._told.get(attribute, ())]:
            return
        self._told[attribute] = asked
        texts = tuple(each.text for each in asked)
        self._reach.send(contact, Replace(attribute, texts))
        if not texts:
            del self._next[attribute], self._told[attribute]

    def begin_period(self, now: float) -> None:
        """Tell all anew as it comes, and at once where the way is another."""
        self._told.clear()
        self._elsewhere.clear()
        for attribute, contact in list(self._next.items()):
            if attribute not in self._table.attributes:
                del self._next[attribute]
                continue
            decided = self._elections.decide(attribute, now)
            if decided is not PENDING and not (isinstance(decided, Contact) and decided.peer == contact.peer):
                self.retell(attribute, now)

    def _answer(self, waiters: list[Waiter], reason: Reason | None) -> None:
        for peer, number in waiters:
            self._reach.answer(peer, Subscribed(number, reason))

    def _wait(self, ask: _Ask) -> float:
        return float(self._config.resend * 2 ** (ask.tries % self._config.tries))
