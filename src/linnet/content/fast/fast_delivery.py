"""FastDelivery: publishers' groups, at one node.

After Agostinho 2021. A node can have all roles at once: publisher of groups, member of others' groups, deputy
that serves members for a publisher, and keeper of boards. The reasons are in docs/adr/0022-fast-delivery.md.
"""

from __future__ import annotations

from typing import TypeVar, assert_never

from msgspec import Struct
from msgspec.structs import replace

from linnet.content.application import Hand
from linnet.content.attribute_keys import Directory, Located
from linnet.content.config import ContentConfig, FastConfig
from linnet.content.fast.advertisements import Advertisements, Boards, is_near
from linnet.content.fast.commands import (
    CloseGroup,
    ExamineGroups,
    GroupsStatus,
    JoinGroups,
    OpenGroup,
    PublishToGroup,
    SearchGroups,
)
from linnet.content.fast.group_requests import (
    Advertising,
    AnswerDue,
    Browsing,
    Entering,
    Entrusting,
    FastStation,
    Forwarding,
    GroupRequests,
    Leaving,
    Publishing,
    Task,
)
from linnet.content.fast.group_search import Searches, Subscriptions
from linnet.content.fast.memberships import Memberships
from linnet.content.fast.messages import (
    Browse,
    Browsed,
    Convey,
    Conveyed,
    Enrol,
    Enrolled,
    Enrolment,
    Entrust,
    Entrusted,
    Parted,
    Post,
    Posted,
    Quit,
)
from linnet.content.fast.publisher import GroupConfirmDue, Publisher
from linnet.content.fast.signed_records import check_enrolment, check_posting
from linnet.content.matching_index import Index
from linnet.content.passing import Passing, check
from linnet.content.predicate import Predicate, foreign_predicate
from linnet.content.routes import Listener, Promise, hears
from linnet.core.errors import RemoteError
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox
from linnet.machine.part import on_command, on_timer
from linnet.machine.requests import Failed
from linnet.trace.records import Kind, Record


class ReceiptsDue(Timer, frozen=True, gc=False):
    """The time for gathering an event's receipts for its publisher is up."""

    event: EventId


class _Charge:
    """The members that this node serves in one group."""

    __slots__ = ("index", "members")

    def __init__(self) -> None:
        self.members: dict[PeerId, tuple[Enrolment, int]] = {}
        """The members' enrolments, and the number of predicates of each."""
        self.index: Index[tuple[PeerId, int]] = Index()

    def add(self, enrolment: Enrolment, predicates: tuple[Predicate, ...]) -> None:
        peer = enrolment.member.peer
        self.remove(peer)
        self.members[peer] = (enrolment, len(predicates))
        for number, predicate in enumerate(predicates):
            self.index.add((peer, number), predicate)

    def remove(self, peer: PeerId) -> None:
        _, count = self.members.pop(peer, (None, 0))
        for number in range(count):
            self.index.remove((peer, number))


class _Gathering(Struct, eq=False):
    """An event, with the receipts gathered and those awaited."""

    publisher: PeerId
    answer: Conveyed
    open: dict[PeerId, None]
    receipts: list[tuple[PeerId, bytes]] = []


class DeputyService:
    """Serves members for other publishers, and gathers their receipts."""

    def __init__(self, requests: GroupRequests, remembered: int, out: Outbox) -> None:
        self._out = out
        self._requests = requests
        self._remembered = remembered
        self._charges: dict[TopicId, _Charge] = {}
        self._gathering: dict[EventId, _Gathering] = {}

    def entrust(
        self, message: Entrust, predicates: list[tuple[Predicate, ...]], promised: int, now: float
    ) -> None:
        """Serve some members, and stop serving others; `RemoteError` if that is more than was promised."""
        known = self._charges.get(message.group, _Charge())
        gone = dict.fromkeys(message.gone)
        added = dict.fromkeys(each.member.peer for each in message.added)
        stay = [peer for peer in known.members if peer not in gone and peer not in added]
        if len(stay) + len(added) > promised:
            raise RemoteError(Reason.TOO_MANY, f"more than the {promised} members that were promised")
        if any(each.group != message.group for each in message.added):
            raise RemoteError(Reason.NOT_A_MEMBER, "one who enrolled for another group")
        if any(not each.member.hints for each in message.added):
            raise RemoteError(Reason.NO_ADDRESS, "one whom nobody can dial")
        for peer in message.gone:
            known.remove(peer)
        for enrolment, each in zip(message.added, predicates, strict=True):
            known.add(enrolment, each)
        if known.members:
            self._charges[message.group] = known
        else:
            self._charges.pop(message.group, None)
        for enrolment in message.added:
            self._requests.hold(enrolment.member)

    def release(self, group: TopicId) -> None:
        """Stop serving a group that this node has left."""
        self._charges.pop(group, None)

    def forward(
        self, publisher: PeerId, message: Convey, passing: Passing, answer: Conveyed, now: float
    ) -> None:
        """Bring an event to the members that want it; answer its publisher when all have, or in time."""
        event = passing.id
        if event in self._gathering:
            self._repeat_answer(event, message.number)
            return
        charge = self._charges.get(passing.event.topic, _Charge())
        wanted = dict.fromkeys(peer for peer, _ in charge.index.matching(passing.attributes))
        for peer in list(wanted):
            if charge.members[peer][0].until < now:
                del wanted[peer]
                charge.remove(peer)
        self._gathering[event] = _Gathering(publisher, answer, dict(wanted))
        self._forget()
        for peer in wanted:
            onwards = Convey(self._requests.next_number(), message.unit, message.card, False, 0)
            self._requests.ask_peer(charge.members[peer][0].member, onwards, Forwarding(event, peer))
        if not wanted:
            self._requests.answer(publisher, answer)
            return
        self._requests.answer(publisher, replace(answer, waiting=True))
        self._out.set_timer(message.patience / 1000, ReceiptsDue(event))

    def _repeat_answer(self, event: EventId, number: int) -> None:
        """Repeat the answer for a publisher that asks once more."""
        gathering = self._gathering[event]
        gathering.answer = replace(gathering.answer, number=number)
        if gathering.open:
            self._requests.answer(gathering.publisher, replace(gathering.answer, waiting=True))
            return
        self._tell(gathering)

    def handle_answer(self, task: Forwarding, answer: Conveyed) -> None:
        """Keep the receipt of a member, or go on without it."""
        gathering = self._gathering.get(task.event)
        if gathering is None or task.member not in gathering.open:
            return
        del gathering.open[task.member]
        if answer.receipt is not None and answer.reason is None:
            gathering.receipts.append((task.member, answer.receipt))
        else:
            reason = answer.reason or Reason.MALFORMED
            self._out.record(
                Record(Kind.REJECTED, event=task.event, peer=task.member, reason=reason, note="Convey")
            )
        self._tell_if_all(task.event, gathering)

    def handle_failure(self, task: Forwarding) -> None:
        """Go on without a member that does not answer."""
        gathering = self._gathering.get(task.event)
        if gathering is None or task.member not in gathering.open:
            return
        del gathering.open[task.member]
        self._tell_if_all(task.event, gathering)

    def end_gathering(self, timer: ReceiptsDue) -> None:
        """Leave the members that have not answered to the publisher."""
        event = timer.event
        gathering = self._gathering.get(event)
        if gathering is None or not gathering.open:
            return
        for peer in gathering.open:
            self._out.record(
                Record(Kind.DROPPED, event=event, peer=peer, reason=Reason.TIMEOUT, note="Convey")
            )
            self._requests.forget(peer, Forwarding(event, peer))
        gathering.open = {}
        self._tell(gathering)

    def _tell_if_all(self, event: EventId, gathering: _Gathering) -> None:
        if gathering.open:
            return
        self._out.cancel_timer(ReceiptsDue(event))
        self._tell(gathering)

    def _tell(self, gathering: _Gathering) -> None:
        told = replace(gathering.answer, receipts=tuple(gathering.receipts))
        self._requests.answer(gathering.publisher, told)

    def _forget(self) -> None:
        while len(self._gathering) > self._remembered:
            event = next(iter(self._gathering))
            if self._gathering.pop(event).open:
                self._out.cancel_timer(ReceiptsDue(event))
                self._out.record(
                    Record(Kind.EVICTED, event=event, reason=Reason.TOO_MANY, note="receipts were awaited")
                )

    @property
    def linked(self) -> dict[PeerId, None]:
        """Members that links are kept to."""
        return {peer: None for charge in self._charges.values() for peer in charge.members}

    @property
    def counts(self) -> dict[TopicId, int]:
        """The number of members served in each group."""
        return {group: len(charge.members) for group, charge in self._charges.items()}


A = TypeVar("A", Posted, Browsed, Enrolled, Entrusted, Conveyed, Parted)


def _refuse_event(message: Convey, reason: Reason) -> Conveyed:
    return Conveyed(message.number, EventId(bytes(32)), None, False, False, (), reason)


class RenewDue(Timer, frozen=True, gc=False):
    """Memberships and advertisements are due for renewal."""


class IdleDue(Timer, frozen=True, gc=False):
    """Idle links are due to be released."""


class FastDelivery(Listener):
    """Groups at one node.

    The part that keeps subscriptions has them looked for here, and reports links and finished lookups.
    """

    def __init__(
        self,
        context: Context,
        config: FastConfig,
        content: ContentConfig,
        directory: Directory,
        listens: tuple[str, ...],
        out: Outbox,
        hand: Hand,
        promise: Promise,
    ) -> None:
        """`hand` passes events to subscriptions; `promise` gives the outbox that acknowledges them."""
        super().__init__(out)
        self._directory = directory
        requests = GroupRequests(config, out, promise)
        boards = self._boards = Boards(config)
        station = self._station = FastStation(context, config, content, requests, listens, out)
        adverts = self._advertisements = Advertisements(station, boards)
        self._searches = Searches(station, boards)
        self.memberships = Memberships(station, hand)
        self._deputy_service = DeputyService(requests, config.publications, out)
        self.publisher = Publisher(station, adverts, self.memberships, promise)
        self._subscriptions = Subscriptions(station, self._searches, self.memberships, self.publisher)

    @property
    def is_settled(self) -> bool:
        """Whether all requests have been answered, as far as this node knows."""
        return not len(self._station.requests) and not len(self._searches) and self._advertisements.is_settled

    def start(self, now: float) -> None:
        """Start the timers for renewal and for idle links, at a random moment of the period."""
        luck = self._station.context.rng
        self._out.set_timer(self._station.config.refresh * luck.uniform(0.5, 1.0), RenewDue())
        self._out.set_timer(self._station.config.idle, IdleDue())

    def reopen_groups(self, now: float) -> None:
        """Open the groups that this node had before a restart."""
        self.publisher.reopen(now)
        self.finish(now)

    def looks_again(self, *, is_lacking: bool) -> float:
        """Return the seconds until the next search, for a subscription that is in no group or in some."""
        return self._station.config.idle if is_lacking else self._station.config.refresh

    def reads(self, subscription: int) -> bool:
        """Return whether a subscription of the application is served by groups."""
        return self._subscriptions.reads(subscription)

    # The application.

    def admit_subscription(self, request: int | None, command: JoinGroups) -> None:
        """Keep a subscription; `Refused` or `BadText` if it cannot be.

        The request is answered when groups have been searched for; without a request a notice tells the
        result of each search. No search starts before `begin_subscription`.
        """
        self._subscriptions.admit(request, command)

    def begin_subscription(self, number: int, now: float) -> None:
        """Search for groups that carry what a subscription accepts, and join them."""
        self._subscriptions.begin(number, now)
        self.finish(now)

    def end_subscription(self, number: int, now: float) -> None:
        """End a subscription, and leave the groups that no other subscription needs."""
        self._subscriptions.leave(number, now)
        for group in list(self._deputy_service.counts):
            if group not in self.memberships:
                self._deputy_service.release(group)
        self.finish(now)

    @on_command(OpenGroup)
    def open_group(self, request: int, command: OpenGroup, now: float) -> None:
        """Open a group that serves the events that a predicate accepts."""
        self.publisher.open(request, command, now)
        self.finish(now)

    @on_command(CloseGroup)
    def close_group(self, request: int, command: CloseGroup, now: float) -> None:
        """Close a group, and tell its members."""
        self.publisher.close(request, command.group, now)
        self.finish(now)

    @on_command(PublishToGroup)
    def publish_to_group(self, request: int, command: PublishToGroup, now: float) -> None:
        """Send an event to the members of a group of ours."""
        self.publisher.publish(request, command, now)
        self.finish(now)

    @on_command(SearchGroups)
    def search_groups(self, request: int, command: SearchGroups, now: float) -> None:
        """Search for groups that carry all of a predicate."""
        self._subscriptions.search(request, command.predicate)
        self.finish(now)

    @on_command(ExamineGroups)
    def examine_groups(self, request: int, command: ExamineGroups, now: float) -> None:
        """Report the groups of this node and its memberships."""
        memberships = self.memberships.status(self._deputy_service.counts)
        self._out.reply(request, GroupsStatus(self.publisher.status(), memberships, len(self._boards)))
        self.finish(now)

    # Messages.

    def answer(self, peer: PeerId, message: Message) -> None:
        """See `Listener.answer`."""
        self._station.requests.answer(peer, message)

    @hears(Post, lambda message, reason: Posted(message.number, reason))
    def handle_post(self, peer: PeerId, message: Post, now: float) -> None:
        """Keep an advertisement on the board of an attribute."""
        context, config, content = self._station.context, self._station.config, self._station.content
        if not is_near(context.peer, message.attribute, self._directory):
            raise RemoteError(Reason.NOT_RESPONSIBLE, "others are closer to this attribute")
        predicate = check_posting(message.posting, context, content.attributes, 3 * config.refresh, now)
        self._boards.put(message.attribute, message.posting, predicate)
        self.answer(peer, Posted(message.number, None))

    @hears(Browse, lambda message, reason: Browsed(message.number, (), False, reason))
    def handle_browse(self, peer: PeerId, message: Browse, now: float) -> None:
        """Answer with the groups on a board that carry all of a peer's predicate."""
        wanted = foreign_predicate(message.predicate, self._station.content.attributes)
        postings, more = self._boards.page(message.attribute, wanted, message.after, now)
        self.answer(peer, Browsed(message.number, postings, more, None))

    @hears(Enrol, lambda message, reason: Enrolled(message.number, reason))
    def handle_enrol(self, peer: PeerId, message: Enrol, now: float) -> None:
        """Take a peer as a member of a group of ours."""
        self.publisher.enrol(peer, message, now)

    @hears(Entrust, lambda message, reason: Entrusted(message.number, reason))
    def handle_entrust(self, peer: PeerId, message: Entrust, now: float) -> None:
        """Serve members of a group for its publisher."""
        if self.memberships.publisher(message.group) != peer:
            raise RemoteError(Reason.NOT_A_MEMBER, "no group of its that this node is in")
        predicates = [check_enrolment(each, self._station.content.attributes, now) for each in message.added]
        promised = self.memberships.promised(message.group)
        self._deputy_service.entrust(message, predicates, promised, now)
        self.answer(peer, Entrusted(message.number, None))

    @hears(Convey, _refuse_event)
    def handle_convey(self, peer: PeerId, message: Convey, now: float) -> None:
        """Take an event of a group, and bring it to the members that this node serves."""
        group = message.unit.topic
        publisher = self.memberships.publisher(group)
        if publisher is None:
            raise RemoteError(Reason.NOT_A_MEMBER, "no group that this node is in")
        if message.card.device_key != publisher:
            raise RemoteError(Reason.NOT_A_PUBLISHER, "an event of somebody else")
        passing = check(message.unit, message.card, self._station.context, self._station.content, now)
        if passing.event.time / 1000 + self._station.config.stale < now:
            raise RemoteError(Reason.STALE, "an old event")
        fresh = self.memberships.take(passing, 1 if peer == publisher else 2)
        given = self.memberships.receipt(group, passing.id)
        answer = Conveyed(message.number, passing.id, given, fresh, False, (), None)
        if message.serve and peer == publisher:
            self._deputy_service.forward(peer, message, passing, answer, now)
        else:
            self.answer(peer, answer)

    @hears(Quit)
    def handle_quit(self, peer: PeerId, message: Quit, now: float) -> None:
        """Forget a member that leaves a group of ours, or a group that its publisher has closed."""
        self.answer(peer, Parted(message.number))
        if self.memberships.publisher(message.group) == peer:
            self._deputy_service.release(message.group)
            self.memberships.handle_close(message.group)
        else:
            self.publisher.remove_member(peer, message.group)

    # Answers.

    @hears(Posted)
    def handle_posted(self, peer: PeerId, message: Posted, now: float) -> None:
        """Note whether an advertisement of ours is on a board."""
        self._hear_answer(peer, message, now)

    @hears(Browsed)
    def handle_browsed(self, peer: PeerId, message: Browsed, now: float) -> None:
        """Note which groups are on a board."""
        self._hear_answer(peer, message, now)

    @hears(Enrolled)
    def handle_enrolled(self, peer: PeerId, message: Enrolled, now: float) -> None:
        """Note whether a publisher has taken us as a member."""
        self._hear_answer(peer, message, now)

    @hears(Entrusted)
    def handle_entrusted(self, peer: PeerId, message: Entrusted, now: float) -> None:
        """Note whether a member serves others for us."""
        self._hear_answer(peer, message, now)

    @hears(Parted)
    def handle_parted(self, peer: PeerId, message: Parted, now: float) -> None:
        """Note that the other side knows that a group was left or closed."""
        self._hear_answer(peer, message, now)

    @hears(Conveyed)
    def handle_conveyed(self, peer: PeerId, message: Conveyed, now: float) -> None:
        """Note that a member has an event, or gathers receipts of others."""
        if not message.waiting:
            self._hear_answer(peer, message, now)
            return
        task = self._station.requests.find_task(peer, message.number)
        if not isinstance(task, Publishing):
            raise RemoteError(Reason.MALFORMED, "it serves nobody here")
        self.publisher.publications.handle_waiting(task, message)

    def _hear_answer(self, peer: PeerId, message: A, now: float) -> None:
        task = self._station.requests.take_task(peer, message.number)
        match task, message:
            case Advertising(), Posted():
                self._advertisements.handle_answer(task, message)
            case Browsing(), Browsed():
                self._searches.handle_answer(task, message, now)
            case Entering(), Enrolled():
                self.memberships.handle_answer(task, message, now)
            case Entrusting(), Entrusted():
                self.publisher.handle_entrusted(task, message, now)
            case Publishing(), Conveyed():
                self.publisher.publications.handle_answer(task, message, now)
            case Forwarding(), Conveyed():
                self._deputy_service.handle_answer(task, message)
            case Leaving(), Parted():
                pass
            case _:
                note = f"{type(message).__name__}: no answer to what was asked"
                self._out.record(Record(Kind.REJECTED, reason=Reason.PROTOCOL_ERROR, note=note))
                self._fail(task, Reason.PROTOCOL_ERROR, now)

    def _fail(self, task: Task, reason: Reason, now: float) -> None:
        """Go on without an answer."""
        match task:
            case Advertising():
                self._advertisements.handle_failure(task, reason)
            case Browsing():
                self._searches.handle_failure(task, reason, now)
            case Entering():
                self.memberships.handle_failure(task, reason, now)
            case Entrusting():
                self.publisher.handle_refusal(task, reason, now)
            case Publishing():
                self.publisher.publications.handle_failure(task, reason, now)
            case Forwarding():
                self._deputy_service.handle_failure(task)
            case Leaving():
                pass
            case _:
                assert_never(task)

    # Links, lookups and time.

    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Send all open requests to a peer whose link is up."""
        self._station.requests.handle_link_up(event.peer)

    def handle_link_loss(self, event: LinkDown | DialFailed, now: float) -> None:
        """Fail the requests that cannot be answered, since a link is down or did not come up."""
        self._go_on(*self._station.requests.handle_link_loss(event.peer, event.reason), now)

    @on_timer(AnswerDue)
    def handle_timeout(self, timer: AnswerDue, now: float) -> None:
        """Ask once more, or give up when all tries are spent."""
        self._go_on(*self._station.requests.handle_answer_due(timer), now)

    def _go_on(self, failed: list[Failed[Task]], silent: list[Task], now: float) -> None:
        for each in failed:
            self._fail(each.context, each.reason, now)
        for task in silent:
            if isinstance(task, Publishing):
                self.publisher.publications.handle_silence(task)
        self.finish(now)

    def handle_nodes_found(self, found: Located, now: float) -> None:
        """Continue the advertisements and searches that waited for a lookup."""
        self._advertisements.handle_nodes_found(found, now)
        self._searches.handle_nodes_found(found, now)
        self.finish(now)

    @on_timer(ReceiptsDue)
    def end_gathering(self, timer: ReceiptsDue, now: float) -> None:
        """Leave the members that gave no receipt to the publisher."""
        self._deputy_service.end_gathering(timer)
        self.finish(now)

    @on_timer(GroupConfirmDue)
    def end_confirmation(self, timer: GroupConfirmDue, now: float) -> None:
        """Answer the application although some members have not answered."""
        self.publisher.publications.end_confirmation(timer)

    @on_timer(IdleDue)
    def release_idle(self, timer: IdleDue, now: float) -> None:
        """Release idle links, and retry groups on no board and subscriptions without a group."""
        needed = {**self.publisher.linked, **self._deputy_service.linked, **self.memberships.linked}
        self._station.requests.release_idle(needed)
        self.publisher.advertise_again(now)
        self._subscriptions.look_again(lacking=True)
        self._out.set_timer(self._station.config.idle, IdleDue())
        self.finish(now)

    @on_timer(RenewDue)
    def renew(self, timer: RenewDue, now: float) -> None:
        """Renew our memberships and advertisements, and forget those that others did not renew."""
        self.publisher.renew(now)
        self.memberships.renew(now)
        over = self._boards.expire(now)
        if over:
            note = "advertisements"
            self._out.record(Record(Kind.EXPIRED, events=over, reason=Reason.RETENTION, note=note))
        self._subscriptions.look_again(lacking=False)
        self._out.set_timer(self._station.config.refresh, RenewDue())
        self.finish(now)

    def finish(self, now: float) -> None:
        """Act on the results of an input: join the groups that were found, and tell deputies what is new."""
        while self._searches.ended:
            ended, self._searches.ended = self._searches.ended, []
            for search, listings, unanswered in ended:
                self._subscriptions.handle_found(search, listings, unanswered, now)
        self.publisher.tell_deputies()
