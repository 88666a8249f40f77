"""Groups of others that this node is a member of: joining, renewing, leaving, and events that come."""

from __future__ import annotations

from linnet.content.application import Hand
from linnet.content.commands import Match
from linnet.content.config import ContentConfig
from linnet.content.fast.commands import GroupsJoined, Listing, MembershipStatus, NotJoined
from linnet.content.fast.config import FastConfig
from linnet.content.fast.group_requests import Entering, GroupRequests, Leaving
from linnet.content.fast.messages import PREDICATES, Enrol, Enrolled, Quit
from linnet.content.fast.signed_records import KEY_BYTES, TEXTS_CHARS, make_enrolment, receipt
from linnet.content.filter_table import Filters
from linnet.content.passing import Passing
from linnet.content.predicate import Predicate
from linnet.core.errors import Refused
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.machine.outbox import Notice, Outbox
from linnet.trace.records import Kind, Record

CONVEY = "convey"


class GroupsSought(Notice, frozen=True, gc=False):
    """Groups were sought for a subscription that this node keeps: which have taken it, and which have not."""

    subscription: int
    result: GroupsJoined


class _Membership:
    """One group, and what is wanted of it."""

    __slots__ = ("asking", "changed", "key", "listing", "promised", "region", "stands", "wanted")

    def __init__(self, listing: Listing, key: bytes, region: str, promised: int) -> None:
        self.listing = listing
        self.key = key
        self.region = region
        self.promised = promised
        self.wanted: dict[int, Predicate] = {}
        """By subscriptions of the application."""
        self.stands = False
        self.asking = False
        """Whether an answer of the publisher is awaited."""
        self.changed = False
        """Whether something else is wanted by now than what was asked."""

    @property
    def predicates(self) -> tuple[str, ...]:
        """All that is wanted, in as few predicates as can be."""
        filters = Filters()
        for predicate in self.wanted.values():
            for piece in predicate.pieces:
                filters.add(piece)
        return tuple(sorted(predicate.text for predicate in filters))


class _Joining:
    """A subscription whose application waits to hear which groups have taken it."""

    __slots__ = ("joined", "open", "predicate", "refused", "request", "unanswered")

    def __init__(self, request: int | None, predicate: str, unanswered: int) -> None:
        self.request = request
        """None: this node keeps the subscription, and is told by a notice."""
        self.predicate = predicate
        self.unanswered = unanswered
        self.open: dict[TopicId, None] = {}
        self.joined: list[Listing] = []
        self.refused: list[NotJoined] = []


class Memberships:
    """What this node wants of groups. Its own groups are among them, without anything being sent."""

    def __init__(
        self,
        context: Context,
        config: FastConfig,
        content: ContentConfig,
        requests: GroupRequests,
        listens: tuple[str, ...],
        out: Outbox,
        hand: Hand,
    ) -> None:
        self._out = out
        self._hand = hand
        self._context = context
        self._config = config
        self._content = content
        self._requests = requests
        self._listens = listens
        self._memberships: dict[TopicId, _Membership] = {}
        self._joining: dict[int, _Joining] = {}
        self._seen: dict[EventId, None] = {}

    def __contains__(self, group: TopicId) -> bool:
        return group in self._memberships

    def publisher(self, group: TopicId) -> PeerId | None:
        """Whose group it is, if this node is a member."""
        known = self._memberships.get(group)
        return None if known is None else known.listing.publisher.peer

    def promised(self, group: TopicId) -> int:
        """Members that this node said it would serve."""
        known = self._memberships.get(group)
        return 0 if known is None else known.promised

    def groups(self, subscription: int) -> int:
        """How many groups have taken a subscription."""
        return sum(each.stands and subscription in each.wanted for each in self._memberships.values())

    def serves(self, subscription: int) -> bool:
        """Whether there is a group for a subscription."""
        return any(subscription in each.wanted for each in self._memberships.values())

    # Joining and leaving.

    def join(
        self,
        subscription: int,
        predicate: Predicate,
        listings: tuple[Listing, ...],
        region: str,
        capacity: int | None,
        now: float,
    ) -> None:
        """Become a member of these groups, for one subscription."""
        for listing in listings:
            try:
                self._join(subscription, predicate, listing, region, capacity, now)
            except Refused as error:
                self._note_decision(listing, subscription, error.reason)

    def _join(
        self,
        subscription: int,
        predicate: Predicate,
        listing: Listing,
        region: str,
        capacity: int | None,
        now: float,
    ) -> None:
        known = self._memberships.get(listing.group)
        if known is None:
            if len(self._memberships) >= self._config.memberships:
                raise Refused(Reason.TOO_MANY, f"at most {self._config.memberships} memberships")
            known = _Membership(listing, self._context.entropy(KEY_BYTES), region, self._promise(capacity))
            self._memberships[listing.group] = known
        elif subscription in known.wanted:
            if known.stands:
                self._note_decision(listing, subscription, None)
            return
        before = known.predicates
        known.wanted[subscription] = predicate
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
        """What this node would serve in one more group."""
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
        number = self._requests.next_number()
        message = Enrol(number, listing.predicate, enrolment, known.key)
        self._requests.ask(number, listing.publisher, message, Entering(listing.group))

    def handle_answer(self, task: Entering, answer: Enrolled, now: float) -> None:
        """Note whether a publisher has us as a member."""
        self._note_outcome(task.group, answer.reason, now)

    def handle_failure(self, task: Entering, reason: Reason, now: float) -> None:
        """Note that a publisher says nothing."""
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
        """Leave the groups of which only a subscription that has ended wanted something."""
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
                number = self._requests.next_number()
                task = Leaving(group, publisher.peer)
                self._requests.withdraw(publisher.peer, Entering(group))
                self._requests.ask(number, publisher, Quit(number, group), task)

    def handle_close(self, group: TopicId) -> None:
        """Forget a group that its publisher has closed."""
        known = self._memberships.pop(group)
        publisher = known.listing.publisher.peer
        note = "the group was closed"
        self._out.record(
            Record(Kind.EXPIRED, peer=publisher, topic=group, reason=Reason.REMOTE_CLOSED, note=note)
        )
        self._requests.withdraw(publisher, Entering(group))
        for subscription in known.wanted:
            self._note_decision(known.listing, subscription, Reason.REMOTE_CLOSED)

    def renew(self, now: float) -> None:
        """Stay for longer, and knock once more where nobody answered."""
        for known in self._memberships.values():
            if known.listing.publisher.peer != self._context.peer and not known.asking:
                self._ask(known, now)

    # What the application waits for.

    def expect_answers(self, request: int | None, subscription: int, predicate: str, unanswered: int) -> None:
        """Expect the answers of groups that are joined next, for a subscription."""
        self._joining[subscription] = _Joining(request, predicate, unanswered)

    def answer_if_known(self, subscription: int) -> None:
        """Tell which groups have taken a subscription, if all have answered."""
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
        """Hand an event of a group to the subscriptions that accept it; whether it was new."""
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
            item = Match(event.id, event.author, passing.attributes.text, event.time, event.body, hops)
            self._out.record(Record(Kind.DELIVERED, topic=event.topic, event=event.id, hops=hops))
            self._hand(sorted(numbers), item)
        return True

    def receipt(self, group: TopicId, event: EventId) -> bytes | None:
        """Our receipt for an event."""
        known = self._memberships.get(group)
        return None if known is None else receipt(known.key, event)

    @property
    def linked(self) -> dict[PeerId, None]:
        """Publishers to which a link is kept, since they could not open one to us."""
        if self._listens:
            return {}
        return {each.listing.publisher.peer: None for each in self._memberships.values()}

    def status(self, serves: dict[TopicId, int]) -> tuple[MembershipStatus, ...]:
        """How memberships stand; with how many members are served for each group."""
        return tuple(
            MembershipStatus(each.listing, each.stands, each.promised, serves.get(group, 0))
            for group, each in self._memberships.items()
        )
