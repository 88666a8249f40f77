"""Groups of this node: opened and closed, joined and left, and what is said in them."""

from __future__ import annotations

from linnet.content.commands import Ended
from linnet.content.config import ContentConfig
from linnet.content.fast.adverts import Adverts
from linnet.content.fast.calls import Calls
from linnet.content.fast.commands import GroupOpened, GroupStatus, OpenGroup, PublishToGroup
from linnet.content.fast.config import FastConfig
from linnet.content.fast.effects import FastEffect
from linnet.content.fast.group import Group
from linnet.content.fast.memberships import Memberships
from linnet.content.fast.messages import Enrol, Enrolled, Entrust, Entrusted, Quit
from linnet.content.fast.publications import Publications
from linnet.content.fast.signed import check_enrolment, group_id
from linnet.content.fast.tasks import Entrusting, Leaving
from linnet.content.passing import KIND, Passing
from linnet.content.predicates import foreign_predicate, read_attributes, read_predicate
from linnet.core.effects import Reply
from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.limits import BODY_BYTES, CLEAR_BYTES
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.event.event import Tail
from linnet.event.signing import sign_unit
from linnet.trace.records import Kind, Record


class Publisher:
    """What this node is the publisher of."""

    def __init__(
        self,
        context: Context,
        config: FastConfig,
        content: ContentConfig,
        calls: Calls,
        adverts: Adverts,
        memberships: Memberships,
    ) -> None:
        self._context = context
        self._config = config
        self._content = content
        self._calls = calls
        self._adverts = adverts
        self._memberships = memberships
        self.groups: dict[TopicId, Group] = {}
        self.publications = Publications(config, calls)
        self._last_time = 0

    # The application.

    def open(self, request: int, command: OpenGroup, now: float) -> list[FastEffect]:
        """A new group."""
        predicate = read_predicate(command.predicate, self._content.attributes)
        group = group_id(self._context.peer, predicate.text)
        if group in self.groups:
            raise Refused(Reason.IN_USE, f"there is a group {predicate.text} already")
        if len(self.groups) >= self._config.groups:
            raise Refused(Reason.TOO_MANY, f"at most {self._config.groups} groups")
        opened = self.groups[group] = Group(group, predicate, command.listed, self._config)
        effects: list[FastEffect] = [Reply(request, GroupOpened(group, predicate.text))]
        return [*effects, *(self._adverts.advertise(opened, now) if command.listed else ())]

    def close(self, request: int, text: str, now: float) -> list[FastEffect]:
        """A group is no more; its members are told."""
        group = self._own(text)
        del self.groups[group.id]
        effects: list[FastEffect] = [Reply(request, Ended())]
        for peer in group.members:
            number = self._calls.next_number()
            task = Leaving(group.id, peer)
            effects += self._calls.ask(number, group.contact(peer), Quit(number, group.id), task)
        if group.id in self._memberships:
            effects += self._memberships.closed(group.id)
        return [*effects, *self._adverts.withdraw(group, now)]

    def publish(self, request: int, command: PublishToGroup, now: float) -> list[FastEffect]:
        """Say something in a group."""
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
        if len(self._calls) >= self._config.calls:
            raise Refused(Reason.CONGESTED, f"{len(self._calls)} answers are awaited")
        # Pushed on where the clock stood still: no two events of a device are the same.
        self._last_time = max(int(now * 1000), self._last_time + 1)
        tail = Tail(None, None, None, None, KIND, None, self._last_time, clear, command.body)
        context = self._context
        signed = sign_unit(context.key, group.id, context.author, context.device, None, None, (tail,))
        passing = Passing(signed.events[-1], attributes, signed.unit, context.card)
        effects: list[FastEffect] = [
            Record(Kind.PUBLISHED, topic=group.id, event=passing.id, bytes=len(command.body))
        ]
        if group.id in self._memberships:
            effects += self._memberships.take(passing, 0)[0]
        return [*effects, *self.publications.begin(request, group, passing, command.confirm)]

    def _own(self, text: str) -> Group:
        predicate = read_predicate(text, self._content.attributes)
        group = self.groups.get(group_id(self._context.peer, predicate.text))
        if group is None:
            raise Refused(Reason.UNKNOWN, f"this node has no group {predicate.text}")
        return group

    # Members.

    def enrol(self, peer: PeerId, message: Enrol, now: float) -> list[FastEffect]:
        """One wants to be a member, or to stay one."""
        enrolment = message.enrolment
        foreign_predicate(message.group, self._content.attributes)
        group = self.groups.get(group_id(self._context.peer, message.group))
        if group is None or enrolment.group != group.id:
            raise RemoteError(Reason.UNKNOWN, "no group of this node")
        if enrolment.member.peer != peer:
            raise RemoteError(Reason.NOT_ALLOWED, "an enrolment of somebody else")
        predicates = check_enrolment(enrolment, self._content.attributes, now)
        group.enrol(enrolment, predicates, message.key, now)
        effects = self._calls.answer(peer, Enrolled(message.number, None))
        return [*effects, *self._calls.hold(enrolment.member)] if peer in group.linked else effects

    def quit(self, peer: PeerId, group: TopicId) -> list[FastEffect]:
        """One is no member any more."""
        known = self.groups.get(group)
        if known is None or not known.remove(peer):
            return [Record(Kind.REJECTED, peer=peer, topic=group, reason=Reason.STALE, note="Quit")]
        return []

    def errands(self) -> list[FastEffect]:
        """Tell deputies what is new for them."""
        effects: list[FastEffect] = []
        for group in self.groups.values():
            for errand, enrolments in group.errands():
                number = self._calls.next_number()
                message = Entrust(number, group.id, enrolments, errand.gone)
                task = Entrusting(group.id, errand.deputy)
                effects += self._calls.ask(number, group.contact(errand.deputy), message, task)
        return effects

    def entrusted(self, task: Entrusting, answer: Entrusted, now: float) -> list[FastEffect]:
        """A deputy says whether it serves whom it was asked to serve."""
        if answer.reason is not None:
            return self.not_entrusted(task, answer.reason, now)
        group = self.groups.get(task.group)
        if group is not None:
            group.agreed(task.deputy)
        return []

    def not_entrusted(self, task: Entrusting, reason: Reason, now: float) -> list[FastEffect]:
        """One who said that it could serve others does not; it is not asked again for a while."""
        group = self.groups.get(task.group)
        if group is None:
            return []
        group.relieve(task.deputy, now + self._config.refresh)
        record = Record(Kind.REJECTED, peer=task.deputy, topic=group.id, reason=reason, note="Entrust")
        return [record]

    def renew(self, now: float) -> list[FastEffect]:
        """A period is over."""
        effects: list[FastEffect] = []
        for group in self.groups.values():
            for peer in group.expired(now):
                group.remove(peer)
                effects.append(
                    Record(Kind.EXPIRED, peer=peer, topic=group.id, reason=Reason.STALE, note="a member")
                )
            if group.listed:
                effects += self._adverts.advertise(group, now)
        return effects

    def advertise_again(self, now: float) -> list[FastEffect]:
        """Look once more for boards where groups are on none, as when this node had not found others yet."""
        effects: list[FastEffect] = []
        for group in self.groups.values():
            if group.listed and self._adverts.is_alone(group.id):
                effects += self._adverts.advertise(group, now)
        return effects

    @property
    def linked(self) -> dict[PeerId, None]:
        """Members to which links are kept."""
        return {peer: None for group in self.groups.values() for peer in group.linked}

    def status(self) -> tuple[GroupStatus, ...]:
        """How groups stand."""
        return tuple(group.status(self._adverts.boards(group.id)) for group in self.groups.values())
