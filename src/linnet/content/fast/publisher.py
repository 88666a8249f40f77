"""Groups of this node: opened and closed, joined and left, and what is said in them."""

from __future__ import annotations

from linnet.content.commands import Ended
from linnet.content.config import ContentConfig
from linnet.content.fast.advertisements import Advertisements
from linnet.content.fast.commands import GroupOpened, GroupStatus, OpenGroup, PublishToGroup
from linnet.content.fast.config import FastConfig
from linnet.content.fast.group_requests import Entrusting, GroupRequests, Leaving
from linnet.content.fast.memberships import Memberships
from linnet.content.fast.messages import Enrol, Enrolled, Entrust, Entrusted, Quit
from linnet.content.fast.publications import Publications
from linnet.content.fast.publisher_groups import Group
from linnet.content.fast.signed_records import check_enrolment, group_id
from linnet.content.passing import KIND, Passing
from linnet.content.predicate import foreign_predicate, read_attributes, read_predicate
from linnet.content.reach import Promise
from linnet.core.errors import BadText, Refused, RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.limits import BODY_BYTES, CLEAR_BYTES
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.event.event import Tail
from linnet.event.signing import sign_unit
from linnet.machine.commands import declined
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

GROUPS = "content_groups"
"""Cells with the groups of this node: the predicate, and whether it is advertised."""


class Publisher:
    """What this node is the publisher of."""

    def __init__(
        self,
        context: Context,
        config: FastConfig,
        content: ContentConfig,
        requests: GroupRequests,
        adverts: Advertisements,
        memberships: Memberships,
        out: Outbox,
        promise: Promise,
    ) -> None:
        self._out = out
        self._cells = context.store.cells
        self._context = context
        self._config = config
        self._content = content
        self._requests = requests
        self._advertisements = adverts
        self._memberships = memberships
        self.groups: dict[TopicId, Group] = {}
        self.publications = Publications(config, requests, out, promise)
        self._last_time = 0

    # The application.

    def open(self, request: int, command: OpenGroup, now: float) -> None:
        """Open a group, which is there again after a restart."""
        group = self._open(command)
        self._cells.put(GROUPS, group.predicate.text.encode(), b"1" if command.listed else b"0")
        self._out.committed.reply(request, GroupOpened(group.id, group.predicate.text))
        if group.listed:
            self._advertisements.advertise(group, now)

    def reopen(self, now: float) -> None:
        """Open the groups that there were before a restart."""
        for text, listed in self._cells.scan(GROUPS):
            try:
                group = self._open(OpenGroup(text.decode(), listed == b"1"))
            except (BadText, Refused) as error:
                refusal = declined(error)
                note = f"content: {refusal.detail}"[:200]
                self._out.record(Record(Kind.DROPPED, reason=refusal.reason, note=note))
                continue
            if group.listed:
                self._advertisements.advertise(group, now)

    def _open(self, command: OpenGroup) -> Group:
        predicate = read_predicate(command.predicate, self._content.attributes)
        group = group_id(self._context.peer, predicate.text)
        if group in self.groups:
            raise Refused(Reason.IN_USE, f"there is a group {predicate.text} already")
        if len(self.groups) >= self._config.groups:
            raise Refused(Reason.TOO_MANY, f"at most {self._config.groups} groups")
        opened = self.groups[group] = Group(group, predicate, command.listed, self._config)
        return opened

    def close(self, request: int, text: str, now: float) -> None:
        """Close a group, and tell its members."""
        group = self._own(text)
        del self.groups[group.id]
        self._cells.delete(GROUPS, group.predicate.text.encode())
        self._out.committed.reply(request, Ended())
        for peer in group.members:
            number = self._requests.next_number()
            task = Leaving(group.id, peer)
            self._requests.ask(number, group.contact(peer), Quit(number, group.id), task)
        if group.id in self._memberships:
            self._memberships.handle_close(group.id)
        self._advertisements.withdraw(group, now)

    def publish(self, request: int, command: PublishToGroup, now: float) -> None:
        """Send an event to the members of a group."""
        group = self._own(command.group)
        attributes = read_attributes(command.attributes, self._content.attributes)
        if not group.predicate.covers(attributes):
            raise Refused(Reason.NOT_ALLOWED, f"the group {group.predicate.text} does not carry this")
        clear = attributes.text.encode()
        if len(command.body) > BODY_BYTES or len(clear) > CLEAR_BYTES:
            raise Refused(
                Reason.TOO_LARGE, f"a body has at most {BODY_BYTES} bytes, attributes {CLEAR_BYTES}"
            )
        if len(self.publications) >= self._config.publications:
            raise Refused(Reason.CONGESTED, f"at most {self._config.publications} events under way")
        if len(self._requests) >= self._config.calls:
            raise Refused(Reason.CONGESTED, f"{len(self._requests)} answers are awaited")
        # Pushed on where the clock stood still: no two events of a device are the same.
        self._last_time = max(int(now * 1000), self._last_time + 1)
        tail = Tail(None, None, None, None, KIND, None, self._last_time, clear, command.body)
        context = self._context
        signed = sign_unit(context.key, group.id, context.author, context.device, None, None, (tail,))
        passing = Passing(signed.events[-1], attributes, signed.unit, context.card)
        self._out.record(Record(Kind.PUBLISHED, topic=group.id, event=passing.id, bytes=len(command.body)))
        if group.id in self._memberships:
            self._memberships.take(passing, 0)
        self.publications.begin(request, group, passing, command.confirm)

    def _own(self, text: str) -> Group:
        predicate = read_predicate(text, self._content.attributes)
        group = self.groups.get(group_id(self._context.peer, predicate.text))
        if group is None:
            raise Refused(Reason.UNKNOWN, f"this node has no group {predicate.text}")
        return group

    # Members.

    def enrol(self, peer: PeerId, message: Enrol, now: float) -> None:
        """Take a peer as a member, or let it stay one."""
        enrolment = message.enrolment
        foreign_predicate(message.group, self._content.attributes)
        group = self.groups.get(group_id(self._context.peer, message.group))
        if group is None or enrolment.group != group.id:
            raise RemoteError(Reason.UNKNOWN, "no group of this node")
        if enrolment.member.peer != peer:
            raise RemoteError(Reason.NOT_ALLOWED, "an enrolment of somebody else")
        predicates = check_enrolment(enrolment, self._content.attributes, now)
        group.enrol(enrolment, predicates, message.key, now)
        self._requests.answer(peer, Enrolled(message.number, None))
        if peer in group.linked:
            self._requests.hold(enrolment.member)

    def remove_member(self, peer: PeerId, group: TopicId) -> None:
        """Forget a member that leaves."""
        known = self.groups.get(group)
        if known is None or not known.remove(peer):
            self._out.record(Record(Kind.REJECTED, peer=peer, topic=group, reason=Reason.STALE, note="Quit"))

    def tell_deputies(self) -> None:
        """Tell deputies what is new for them."""
        for group in self.groups.values():
            for errand, enrolments in group.errands():
                number = self._requests.next_number()
                message = Entrust(number, group.id, enrolments, errand.gone)
                task = Entrusting(group.id, errand.deputy)
                self._requests.ask(number, group.contact(errand.deputy), message, task)

    def handle_entrusted(self, task: Entrusting, answer: Entrusted, now: float) -> None:
        """Note whether a deputy serves whom it was asked to serve."""
        if answer.reason is not None:
            self.handle_refusal(task, answer.reason, now)
            return
        group = self.groups.get(task.group)
        if group is not None:
            group.agreed(task.deputy)

    def handle_refusal(self, task: Entrusting, reason: Reason, now: float) -> None:
        """Relieve one who said that it could serve others and does not, for a while."""
        group = self.groups.get(task.group)
        if group is None:
            return
        group.relieve(task.deputy, now + self._config.refresh)
        self._out.record(
            Record(Kind.REJECTED, peer=task.deputy, topic=group.id, reason=reason, note="Entrust")
        )

    def renew(self, now: float) -> None:
        """Forget members that did not renew, and advertise again."""
        for group in self.groups.values():
            for peer in group.expired(now):
                group.remove(peer)
                self._out.record(
                    Record(Kind.EXPIRED, peer=peer, topic=group.id, reason=Reason.STALE, note="a member")
                )
            if group.listed:
                self._advertisements.advertise(group, now)

    def advertise_again(self, now: float) -> None:
        """Look once more for boards where groups are on none, as when this node had not found others yet."""
        for group in self.groups.values():
            if group.listed and self._advertisements.is_alone(group.id):
                self._advertisements.advertise(group, now)

    @property
    def linked(self) -> dict[PeerId, None]:
        """Members to which links are kept."""
        return {peer: None for group in self.groups.values() for peer in group.linked}

    def status(self) -> tuple[GroupStatus, ...]:
        """How groups stand."""
        return tuple(group.status(self._advertisements.boards(group.id)) for group in self.groups.values())
