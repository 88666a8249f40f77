"""FastDelivery: groups of a publisher, at one node.

After Agostinho 2021. A node may be all of it at once: publisher of groups, member of others',
one who serves members for a publisher, and keeper of boards. Why so: docs/adr/0022-fast-delivery.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, assert_never

from linnet.content.application import Hand
from linnet.content.attribute_keys import Directory, Located
from linnet.content.config import ContentConfig
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
from linnet.content.fast.config import FastConfig
from linnet.content.fast.deputy_service import DeputyService, ReceiptsDue
from linnet.content.fast.group_requests import (
    Advertising,
    AnswerDue,
    Browsing,
    Entering,
    Entrusting,
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
    Entrust,
    Entrusted,
    FastMessage,
    Parted,
    Post,
    Posted,
    Quit,
)
from linnet.content.fast.publications import GroupConfirmDue
from linnet.content.fast.publisher import Publisher
from linnet.content.fast.signed_records import check_enrolment, check_posting
from linnet.content.passing import check
from linnet.content.predicate import foreign_predicate
from linnet.content.reach import Promise
from linnet.core.errors import RemoteError
from linnet.core.ids import EventId, PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_command, on_message, on_timer
from linnet.machine.requests import Failed
from linnet.trace.records import Kind, Record

M = TypeVar("M", bound=FastMessage)
A = TypeVar("A", Posted, Browsed, Enrolled, Entrusted, Conveyed, Parted)


class RenewDue(Timer, frozen=True, gc=False):
    """Memberships and advertisements are to be renewed."""


class IdleDue(Timer, frozen=True, gc=False):
    """Links that nothing goes over are to be let go."""


class FastDelivery(Part):
    """Groups at one node.

    The part that keeps subscriptions asks it for them, and tells it of links and of lookups that have ended.
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
        """Have events handed to subscriptions by `hand`, and say by `promise` that they arrived."""
        self._context = context
        self._config = config
        self._content = content
        self._directory = directory
        self._out = out
        requests = self._requests = GroupRequests(config, out, promise)
        boards = self._boards = Boards(config)
        adverts = self._advertisements = Advertisements(context, config, requests, boards, listens, out)
        self._searches = Searches(context, config, content.attributes, requests, boards, out)
        self.memberships = Memberships(context, config, content, requests, listens, out, hand)
        self._deputy_service = DeputyService(requests, config.publications, out)
        self.publisher = Publisher(
            context, config, content, requests, adverts, self.memberships, out, promise
        )
        self._subscriptions = Subscriptions(
            context, config, content, self._searches, self.memberships, self.publisher, out
        )

    @property
    def is_settled(self) -> bool:
        """Whether everything that was asked has been answered, as far as this node knows."""
        return not len(self._requests) and not len(self._searches) and self._advertisements.is_settled

    def start(self, now: float) -> None:
        """Begin to renew, from a moment of this node's own."""
        luck = self._context.rng
        self._out.set_timer(self._config.refresh * luck.uniform(0.5, 1.0), RenewDue())
        self._out.set_timer(self._config.idle, IdleDue())

    def reopen_groups(self, now: float) -> None:
        """Open the groups of this node that there were before a restart."""
        self.publisher.reopen(now)
        self._finish(now)

    def looks_again(self, *, is_lacking: bool) -> float:
        """Seconds after which groups are looked for again, for a subscription that is in none or in some."""
        return self._config.idle if is_lacking else self._config.refresh

    def reads(self, subscription: int) -> bool:
        """Whether a subscription of the application is one of these."""
        return self._subscriptions.reads(subscription)

    # The application.

    def admit_subscription(self, request: int | None, command: JoinGroups) -> None:
        """Keep a subscription; `Refused` or `BadText` if it cannot be.

        The request is answered when groups have been looked for; without one a notice says each time what
        came of that. Nothing is looked for before `begin_subscription`.
        """
        self._subscriptions.admit(request, command)

    def begin_subscription(self, number: int, now: float) -> None:
        """Look for groups that carry what a subscription accepts, and join them."""
        self._subscriptions.begin(number, now)
        self._finish(now)

    def end_subscription(self, number: int, now: float) -> None:
        """Leave groups of which nothing else is wanted."""
        self._subscriptions.leave(number, now)
        for group in list(self._deputy_service.counts):
            if group not in self.memberships:
                self._deputy_service.release(group)
        self._finish(now)

    @on_command(OpenGroup)
    def open_group(self, request: int, command: OpenGroup, now: float) -> None:
        """Serve those who want events of a predicate."""
        self.publisher.open(request, command, now)
        self._finish(now)

    @on_command(CloseGroup)
    def close_group(self, request: int, command: CloseGroup, now: float) -> None:
        """Serve a group no longer."""
        self.publisher.close(request, command.group, now)
        self._finish(now)

    @on_command(PublishToGroup)
    def publish_to_group(self, request: int, command: PublishToGroup, now: float) -> None:
        """Send an event to the members of a group of ours."""
        self.publisher.publish(request, command, now)
        self._finish(now)

    @on_command(SearchGroups)
    def search_groups(self, request: int, command: SearchGroups, now: float) -> None:
        """Look for groups that carry all of a predicate."""
        self._subscriptions.search(request, command.predicate)
        self._finish(now)

    @on_command(ExamineGroups)
    def examine_groups(self, request: int, command: ExamineGroups, now: float) -> None:
        """Tell how groups stand."""
        memberships = self.memberships.status(self._deputy_service.counts)
        self._out.reply(request, GroupsStatus(self.publisher.status(), memberships, len(self._boards)))
        self._finish(now)

    # Messages.

    def _hear(
        self, peer: PeerId, message: M, handle: Callable[[PeerId, M, float], None], now: float
    ) -> Reason | None:
        """Handle a message of a peer; why it is refused, which a record says as well."""
        before = self._out.mark()
        try:
            handle(peer, message, now)
        except RemoteError as error:
            self._out.forget_since(before)
            note = f"{type(message).__name__}: {error.detail}"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=error.reason, note=note[:200]))
            return error.reason
        self._finish(now)
        return None

    @on_message(Post)
    def handle_post(self, peer: PeerId, message: Post, now: float) -> None:
        """Keep an advertisement on the board of an attribute."""
        refusal = self._hear(peer, message, self._keep_posting, now)
        if refusal is not None:
            self._requests.answer(peer, Posted(message.number, refusal))

    def _keep_posting(self, peer: PeerId, message: Post, now: float) -> None:
        if not is_near(self._context.peer, message.attribute, self._directory):
            raise RemoteError(Reason.NOT_RESPONSIBLE, "others are closer to this attribute")
        attributes, longest = self._content.attributes, 3 * self._config.refresh
        predicate = check_posting(message.posting, self._context, attributes, longest, now)
        self._boards.put(message.attribute, message.posting, predicate)
        self._requests.answer(peer, Posted(message.number, None))

    @on_message(Browse)
    def handle_browse(self, peer: PeerId, message: Browse, now: float) -> None:
        """Tell which groups on a board carry what a peer wants."""
        refusal = self._hear(peer, message, self._show_board, now)
        if refusal is not None:
            self._requests.answer(peer, Browsed(message.number, (), False, refusal))

    def _show_board(self, peer: PeerId, message: Browse, now: float) -> None:
        wanted = foreign_predicate(message.predicate, self._content.attributes)
        postings, more = self._boards.page(message.attribute, wanted, message.after, now)
        self._requests.answer(peer, Browsed(message.number, postings, more, None))

    @on_message(Enrol)
    def handle_enrol(self, peer: PeerId, message: Enrol, now: float) -> None:
        """Take a peer as a member of a group of ours."""
        refusal = self._hear(peer, message, self.publisher.enrol, now)
        if refusal is not None:
            self._requests.answer(peer, Enrolled(message.number, refusal))

    @on_message(Entrust)
    def handle_entrust(self, peer: PeerId, message: Entrust, now: float) -> None:
        """Serve members of a group for its publisher."""
        refusal = self._hear(peer, message, self._take_charge, now)
        if refusal is not None:
            self._requests.answer(peer, Entrusted(message.number, refusal))

    def _take_charge(self, peer: PeerId, message: Entrust, now: float) -> None:
        if self.memberships.publisher(message.group) != peer:
            raise RemoteError(Reason.NOT_A_MEMBER, "no group of its that this node is in")
        predicates = [check_enrolment(each, self._content.attributes, now) for each in message.added]
        promised = self.memberships.promised(message.group)
        self._deputy_service.entrust(message, predicates, promised, now)
        self._requests.answer(peer, Entrusted(message.number, None))

    @on_message(Convey)
    def handle_convey(self, peer: PeerId, message: Convey, now: float) -> None:
        """Take an event of a group, and bring it to those whom we serve."""
        refusal = self._hear(peer, message, self._take_event, now)
        if refusal is not None:
            nothing = Conveyed(message.number, EventId(bytes(32)), None, False, False, (), refusal)
            self._requests.answer(peer, nothing)

    def _take_event(self, peer: PeerId, message: Convey, now: float) -> None:
        group = message.unit.topic
        publisher = self.memberships.publisher(group)
        if publisher is None:
            raise RemoteError(Reason.NOT_A_MEMBER, "no group that this node is in")
        if message.card.device_key != publisher:
            raise RemoteError(Reason.NOT_A_PUBLISHER, "an event of somebody else")
        passing = check(message.unit, message.card, self._context, self._content, now)
        if passing.event.time / 1000 + self._config.stale < now:
            raise RemoteError(Reason.STALE, "an old event")
        fresh = self.memberships.take(passing, 1 if peer == publisher else 2)
        given = self.memberships.receipt(group, passing.id)
        answer = Conveyed(message.number, passing.id, given, fresh, False, (), None)
        if message.serve and peer == publisher:
            self._deputy_service.forward(peer, message, passing, answer, now)
        else:
            self._requests.answer(peer, answer)

    @on_message(Quit)
    def handle_quit(self, peer: PeerId, message: Quit, now: float) -> None:
        """Forget a member that leaves a group of ours, or a group that its publisher has closed."""
        self._hear(peer, message, self._leave_or_forget, now)

    def _leave_or_forget(self, peer: PeerId, message: Quit, now: float) -> None:
        self._requests.answer(peer, Parted(message.number))
        if self.memberships.publisher(message.group) == peer:
            self._deputy_service.release(message.group)
            self.memberships.handle_close(message.group)
        else:
            self.publisher.remove_member(peer, message.group)

    # Answers.

    @on_message(Posted)
    def handle_posted(self, peer: PeerId, message: Posted, now: float) -> None:
        """Note whether an advertisement of ours is on a board."""
        self._hear(peer, message, self._hear_answer, now)

    @on_message(Browsed)
    def handle_browsed(self, peer: PeerId, message: Browsed, now: float) -> None:
        """Note which groups are on a board."""
        self._hear(peer, message, self._hear_answer, now)

    @on_message(Enrolled)
    def handle_enrolled(self, peer: PeerId, message: Enrolled, now: float) -> None:
        """Note whether a publisher has taken us as a member."""
        self._hear(peer, message, self._hear_answer, now)

    @on_message(Entrusted)
    def handle_entrusted(self, peer: PeerId, message: Entrusted, now: float) -> None:
        """Note whether a member serves others for us."""
        self._hear(peer, message, self._hear_answer, now)

    @on_message(Parted)
    def handle_parted(self, peer: PeerId, message: Parted, now: float) -> None:
        """Note that the other side knows that a group was left or closed."""
        self._hear(peer, message, self._hear_answer, now)

    @on_message(Conveyed)
    def handle_conveyed(self, peer: PeerId, message: Conveyed, now: float) -> None:
        """Note that a member has an event, or gathers receipts of others."""
        self._hear(peer, message, self._hear_waiting if message.waiting else self._hear_answer, now)

    def _hear_waiting(self, peer: PeerId, message: Conveyed, now: float) -> None:
        task = self._requests.pending(peer, message.number)
        if not isinstance(task, Publishing):
            raise RemoteError(Reason.MALFORMED, "it serves nobody here")
        self.publisher.publications.handle_waiting(task, message)

    def _hear_answer(self, peer: PeerId, message: A, now: float) -> None:
        task = self._requests.handle_answer(peer, message.number)
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
        """Send what was asked of a peer over the link to it."""
        self._requests.handle_link_up(event.peer)

    def handle_link_loss(self, event: LinkDown | DialFailed, now: float) -> None:
        """Go on without what was asked over a link that is down, or that did not come up."""
        self._go_on(*self._requests.handle_link_loss(event.peer, event.reason), now)

    @on_timer(AnswerDue)
    def handle_timeout(self, timer: AnswerDue, now: float) -> None:
        """Ask once more, and in the end no more."""
        self._go_on(*self._requests.handle_timeout(timer), now)

    def _go_on(self, failed: list[Failed[Task]], silent: list[Task], now: float) -> None:
        for each in failed:
            self._fail(each.context, each.reason, now)
        for task in silent:
            if isinstance(task, Publishing):
                self.publisher.publications.handle_silence(task)
        self._finish(now)

    def handle_nodes_found(self, found: Located, now: float) -> None:
        """Go on with what waited for a lookup."""
        self._advertisements.handle_nodes_found(found, now)
        self._searches.handle_nodes_found(found, now)
        self._finish(now)

    @on_timer(ReceiptsDue)
    def end_gathering(self, timer: ReceiptsDue, now: float) -> None:
        """Leave it to a publisher to see to those who gave no receipt."""
        self._deputy_service.end_gathering(timer)
        self._finish(now)

    @on_timer(GroupConfirmDue)
    def end_confirmation(self, timer: GroupConfirmDue, now: float) -> None:
        """Answer a publisher without those who say nothing."""
        self.publisher.publications.end_confirmation(timer)

    @on_timer(IdleDue)
    def release_idle(self, timer: IdleDue, now: float) -> None:
        """Let links go, and look again for what was not found: boards, and groups."""
        needed = {**self.publisher.linked, **self._deputy_service.linked, **self.memberships.linked}
        self._requests.release_idle(needed)
        self.publisher.advertise_again(now)
        self._subscriptions.look_again(lacking=True)
        self._out.set_timer(self._config.idle, IdleDue())
        self._finish(now)

    @on_timer(RenewDue)
    def renew(self, timer: RenewDue, now: float) -> None:
        """Renew what we want, and forget what others did not renew."""
        self.publisher.renew(now)
        self.memberships.renew(now)
        over = self._boards.expire(now)
        if over:
            note = "advertisements"
            self._out.record(Record(Kind.EXPIRED, events=over, reason=Reason.RETENTION, note=note))
        self._subscriptions.look_again(lacking=False)
        self._out.set_timer(self._config.refresh, RenewDue())
        self._finish(now)

    def _finish(self, now: float) -> None:
        """See to what came of an input: searches that have ended, and news for those who serve others."""
        while self._searches.ended:
            ended, self._searches.ended = self._searches.ended, []
            for search, listings, unanswered in ended:
                self._subscriptions.handle_found(search, listings, unanswered, now)
        self.publisher.tell_deputies()
