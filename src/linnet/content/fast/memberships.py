"""This node's memberships in groups: joining, renewing and leaving them, and receiving their events."""

from __future__ import annotations

from msgspec import Struct

from linnet.content.application import Hand
from linnet.content.commands import Match
from linnet.content.fast.commands import GroupsJoined, Listing, MembershipStatus, NotJoined
from linnet.content.fast.group_requests import Entering, FastStation, Leaving
from linnet.content.fast.messages import PREDICATES, Enrol, Enrolled, Quit
from linnet.content.fast.signed_records import KEY_BYTES, TEXTS_CHARS, make_enrolment, receipt
from linnet.content.filter_table import Filters
from linnet.content.passing import Passing
from linnet.content.predicate import Predicate
from linnet.core.errors import Refused
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Notice
from linnet.trace.records import Kind, Record

CONVEY = "convey"


class GroupsSought(Notice, frozen=True, gc=False):
    """The result of a search for groups for a subscription that this node keeps."""

    subscription: int
    result: GroupsJoined


class Wish(Struct, frozen=True, gc=False):
    """The predicate of a subscription, and what it offers to each group that it joins."""

    subscription: int
    predicate: Predicate
    region: str
    capacity: int | None
    """Members that this node offers to serve; None: half of the capacity that is not yet promised."""


class _Membership(Struct, eq=False):
    """One group that this node joins, and the predicates wanted of it."""

    listing: Listing
    key: bytes
    region: str
    promised: int
    wanted: dict[int, Predicate] = {}
    """The wanted predicates, by subscription of the application."""
    stands: bool = False
    asking: bool = False
    """Whether the publisher's answer is awaited."""
    changed: bool = False
    """Whether the wanted predicates have changed since the publisher was asked."""

    @property
    def predicates(self) -> tuple[str, ...]:
        """All wanted predicates, merged into as few as possible."""
        filters = Filters()
        for predicate in self.wanted.values():
            for piece in predicate.pieces:
                filters.add(piece)
        return tuple(sorted(predicate.text for predicate in filters))


class _Joining(Struct, eq=False):
    """A subscription that waits for its groups to answer."""

    request: int | None
    """The request to answer; None: this node keeps the subscription, and hears by a notice."""
    predicate: str
    unanswered: int
    open: dict[TopicId, None] = {}
    joined: list[Listing] = []
    refused: list[NotJoined] = []


class Memberships:
    """All memberships of this node, in its own groups too, for which no messages are needed."""

    def __init__(self, station: FastStation, hand: Hand) -> None:
        self._out = station.out
        self._hand = hand
        self._context = station.context
        self._config = station.config
        self._requests = station.requests
        self._listens = station.listens
        self._memberships: dict[TopicId, _Membership] = {}
        self._joining: dict[int, _Joining] = {}
        self._seen: dict[EventId, None] = {}

    def __contains__(self, group: TopicId) -> bool:
        return group in self._memberships

    def publisher(self, group: TopicId) -> PeerId | None:
        """Return the publisher of a group that this node is a member of; None if it is not."""
        known = self._memberships.get(group)
        return None if known is None else known.listing.publisher.peer

    def promised(self, group: TopicId) -> int:
        """Return how many members this node offered to serve in a group."""
        known = self._memberships.get(group)
        return 0 if known is None else known.promised

    def groups(self, subscription: int) -> int:
        """Return how many groups have taken a subscription."""
        return sum(each.stands and subscription in each.wanted for each in self._memberships.values())

    def serves(self, subscription: int) -> bool:
        """Return whether a subscription has a group, be it asked or joined."""
        return any(subscription in each.wanted for each in self._memberships.values())

    # Joining and leaving.

    def join(self, wish: Wish, listings: tuple[Listing, ...], now: float) -> None:
        """Join these groups for one subscription."""
        for listing in listings:
            try:
                self._join(wish, listing, now)
            except Refused as error:
                self._note_decision(listing, wish.subscription, error.reason)

    def _join(self, wish: Wish, listing: Listing, now: float) -> None:
        subscription = wish.subscription
        known = self._memberships.get(listing.group)
        if known is None:
            if len(self._memberships) >= self._config.memberships:
                raise Refused(Reason.TOO_MANY, f"at most {self._config.memberships} memberships")
            promised = self._promise(wish.capacity)
            known = _Membership(listing, self._context.entropy(KEY_BYTES), wish.region, promised)
            self._memberships[listing.group] = known
        elif subscription in known.wanted:
            if known.stands:
                self._note_decision(listing, subscription, None)
            return
        before = known.predicates
        known.wanted[subscription] = wish.predicate
        after = known.predicates
        if len(after) > PREDICATES or sum(map(len, after)) > TEXTS_CHARS:
            del known.wanted[subscription]
            raise Refused(Reason.TOO_MANY, "too many predicates for one group")
        if listing.publisher.peer == self._context.peer:
            known.stands = True
            self._note_decision(listing, subscription, None)
            return
        if subscription in self._joining:
            self._joining[subscription].open[listing.group] = None
        if known.stands and before == after:
            self._note_decision(listing, subscription, None)
            return
        self._ask(known, now)

    def _promise(self, capacity: int | None) -> int:
        """Return how many members this node offers to serve in one more group."""
        left = max(0, self._config.capacity - sum(each.promised for each in self._memberships.values()))
        return left // 2 if capacity is None else max(0, min(capacity, left))

    def _ask(self, known: _Membership, now: float) -> None:
        if known.asking:
            known.changed = True
            return
        known.asking, known.changed = True, False
        listing = known.listing
        until = int(now + 3 * self._config.refresh)
        enrolment = make_enrolment(
            self._context.key,
            listing.group,
            self._listens,
            known.predicates,
            known.region,
            known.promised,
            until,
        )
        message = Enrol(self._requests.next_number(), listing.predicate, enrolment, known.key)
        self._requests.ask_peer(listing.publisher, message, Entering(listing.group))

    def handle_answer(self, task: Entering, answer: Enrolled, now: float) -> None:
        """Note whether a publisher took us as a member."""
        self._note_outcome(task.group, answer.reason, now)

    def handle_failure(self, task: Entering, reason: Reason, now: float) -> None:
        """Note that a publisher does not answer."""
        self._note_outcome(task.group, reason, now)

    def _note_outcome(self, group: TopicId, reason: Reason | None, now: float) -> None:
        known = self._memberships.get(group)
        if known is None:
            return
        known.asking, known.stands = False, reason is None
        if reason is None and known.changed:
            self._ask(known, now)
            return
        if reason is not None:
            publisher = known.listing.publisher.peer
            self._out.record(Record(Kind.REJECTED, peer=publisher, topic=group, reason=reason, note="Enrol"))
        for subscription in known.wanted:
            self._note_decision(known.listing, subscription, reason)

    def leave(self, subscription: int, now: float) -> None:
        """Leave the groups that only a subscription which has ended needed."""
        self._joining.pop(subscription, None)
        for group, known in list(self._memberships.items()):
            if known.wanted.pop(subscription, None) is None:
                continue
            publisher = known.listing.publisher
            if publisher.peer == self._context.peer:
                if not known.wanted:
                    del self._memberships[group]
            elif known.wanted:
                self._ask(known, now)
            else:
                del self._memberships[group]
                self._requests.forget(publisher.peer, Entering(group))
                message = Quit(self._requests.next_number(), group)
                self._requests.ask_peer(publisher, message, Leaving(group, publisher.peer))

    def handle_close(self, group: TopicId) -> None:
        """Forget a group that its publisher has closed."""
        known = self._memberships.pop(group)
        publisher = known.listing.publisher.peer
        note = "the group was closed"
        self._out.record(
            Record(Kind.EXPIRED, peer=publisher, topic=group, reason=Reason.REMOTE_CLOSED, note=note)
        )
        self._requests.forget(publisher, Entering(group))
        for subscription in known.wanted:
            self._note_decision(known.listing, subscription, Reason.REMOTE_CLOSED)

    def renew(self, now: float) -> None:
        """Renew all memberships, and ask again where a publisher did not answer."""
        for known in self._memberships.values():
            if known.listing.publisher.peer != self._context.peer and not known.asking:
                self._ask(known, now)

    # Answers to the application.

    def expect_answers(self, request: int | None, subscription: int, predicate: str, unanswered: int) -> None:
        """Gather the decisions of the groups that are joined next for a subscription."""
        self._joining[subscription] = _Joining(request, predicate, unanswered)

    def answer_if_known(self, subscription: int) -> None:
        """Report the groups of a subscription once all have answered."""
        joining = self._joining.get(subscription)
        if joining is None or joining.open:
            return
        del self._joining[subscription]
        result = GroupsJoined(
            joining.predicate, tuple(joining.joined), tuple(joining.refused), joining.unanswered
        )
        if joining.request is None:
            self._out.notify(GroupsSought(subscription, result))
        else:
            self._out.reply(joining.request, result)

    def _note_decision(self, listing: Listing, subscription: int, reason: Reason | None) -> None:
        joining = self._joining.get(subscription)
        if joining is None:
            return
        was_open = joining.open.pop(listing.group, True) is None
        if reason is None:
            joining.joined.append(listing)
        else:
            joining.refused.append(NotJoined(listing, reason))
        if was_open:
            self.answer_if_known(subscription)

    # Events.

    def take(self, passing: Passing, hops: int) -> bool:
        """Hand an event of a group to the subscriptions that accept it; return whether it was new."""
        event = passing.event
        known = self._memberships.get(event.topic)
        if event.id in self._seen:
            self._out.record(
                Record(Kind.DUPLICATE, topic=event.topic, event=event.id, hops=hops, note=CONVEY)
            )
            return False
        self._seen[event.id] = None
        if len(self._seen) > self._config.remembered:
            del self._seen[next(iter(self._seen))]
        self._out.record(Record(Kind.RECEIVED, topic=event.topic, event=event.id, hops=hops, note=CONVEY))
        wanted = {} if known is None else known.wanted
        numbers = [number for number, each in wanted.items() if each.covers(passing.attributes)]
        if numbers:
            item = Match(
                event.id,
                event.author,
                passing.attributes.text,
                event.time,
                event.body,
                hops,
                doubtful=event.doubtful,
            )
            self._out.record(Record(Kind.DELIVERED, topic=event.topic, event=event.id, hops=hops))
            self._hand(sorted(numbers), item)
        return True

    def receipt(self, group: TopicId, event: EventId) -> bytes | None:
        """Return our receipt for an event; None if this node is not in the group."""
        known = self._memberships.get(group)
        return None if known is None else receipt(known.key, event)

    @property
    def linked(self) -> dict[PeerId, None]:
        """Publishers that links are kept to, since they cannot dial us."""
        if self._listens:
            return {}
        return {each.listing.publisher.peer: None for each in self._memberships.values()}

    def status(self, serves: dict[TopicId, int]) -> tuple[MembershipStatus, ...]:
        """Return the status of all memberships; `serves` has the members served in each group."""
        return tuple(
            MembershipStatus(each.listing, each.stands, each.promised, serves.get(group, 0))
            for group, each in self._memberships.items()
        )
