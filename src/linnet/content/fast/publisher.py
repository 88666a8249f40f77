"""The groups that this node publishes in: opening and closing, members, and the outcome of each event.

An event goes to all deputies and to all members that the publisher serves itself, at once. A deputy answers
with the receipts of the members that it serves. A member without a receipt, because its deputy is gone,
failed it or lies, is sent the event by the publisher itself, within the same publication.
"""

from __future__ import annotations

from msgspec import Struct

from linnet.content.commands import Ended
from linnet.content.config import FastConfig
from linnet.content.fast.advertisements import Advertisements
from linnet.content.fast.commands import (
    GroupOpened,
    GroupOutcome,
    GroupStatus,
    OpenGroup,
    PublishToGroup,
    Relieved,
)
from linnet.content.fast.group_requests import Entrusting, FastStation, GroupRequests, Leaving, Publishing
from linnet.content.fast.memberships import Memberships
from linnet.content.fast.messages import Convey, Conveyed, Enrol, Enrolled, Entrust, Entrusted, Quit
from linnet.content.fast.publisher_groups import Group
from linnet.content.fast.signed_records import check_enrolment, group_id
from linnet.content.passing import EventSigner, Passing
from linnet.content.predicate import foreign_predicate, read_attributes, read_predicate
from linnet.content.routes import Promise
from linnet.core.counts import counted
from linnet.core.errors import BadText, Refused, RemoteError
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.commands import declined
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

GROUPS = "content_groups"
"""Cells with the groups of this node: the predicate, and whether it is advertised."""
_ANSWERING = 2.0
"""How many times a deputy's patience the publisher waits for its receipts."""
_AT_FAULT = (Reason.LOST, Reason.FORGING)
_NOT_THERE = (Reason.NOT_A_MEMBER, Reason.UNSUPPORTED)


class GroupConfirmDue(Timer, frozen=True, gc=False):
    """The application's `confirm` seconds are over: answer it even if some members are silent."""

    event: EventId


class _Publication(Struct, eq=False):
    """An event that was published, and the receipts that are missing."""

    request: int | None
    """The application's request that waits for the outcome; None once it was answered."""
    group: Group
    passing: Passing
    confirms: bool
    """Whether silent members are waited for."""
    open: dict[PeerId, PeerId | None]
    """Members without a receipt, each with the deputy that failed it, if one did."""
    deputies: dict[PeerId, dict[PeerId, None]] = {}
    """The members whose receipts each deputy owes."""
    reached: int = 0
    missed: list[PeerId] = []
    taken_back: int = 0
    relieved: list[Relieved] = []


class Publications:
    """The events published in groups of this node that are not settled."""

    def __init__(self, config: FastConfig, requests: GroupRequests, out: Outbox, promise: Promise) -> None:
        self._out = out
        self._promise = promise
        self._config = config
        self._requests = requests
        self._open: dict[EventId, _Publication] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, request: int, group: Group, passing: Passing, confirm: float) -> None:
        """Send an event to all members that want it; silent ones are waited for `confirm` seconds."""
        matching = group.matching(passing.attributes)
        publication = _Publication(request, group, passing, confirm > 0, dict.fromkeys(matching))
        self._open[passing.id] = publication
        for peer, deputy in matching.items():
            if deputy is not None:
                publication.deputies.setdefault(deputy, {})[peer] = None
        direct = [peer for peer, deputy in matching.items() if deputy is None]
        for peer in dict.fromkeys([*publication.deputies, *direct]):
            self._send(publication, peer)
        if confirm > 0 and matching:
            self._out.set_timer(confirm, GroupConfirmDue(passing.id))
        self._settle(publication)

    def _send(self, publication: _Publication, peer: PeerId) -> None:
        passing = publication.passing
        patience = int(1000 * self._config.patience)
        serves = peer in publication.deputies
        message = Convey(self._requests.next_number(), passing.unit, passing.card, serves, patience)
        contact = publication.group.contact(peer)
        self._requests.ask_peer(contact, message, Publishing(passing.id, peer), hasty=serves)

    def handle_waiting(self, task: Publishing, answer: Conveyed) -> None:
        """Extend the wait for a deputy that has the event and gathers receipts."""
        publication = self._open.get(task.event)
        if publication is None:
            return
        self._own_receipt(publication, task.member, answer)
        self._requests.extend(answer.number, _ANSWERING * self._config.patience)

    def handle_answer(self, task: Publishing, answer: Conveyed, now: float) -> None:
        """Count the receipt of a member, and those that a deputy gathered."""
        publication = self._open.get(task.event)
        if publication is None:
            return
        peer = task.member
        if answer.reason in _NOT_THERE:
            self._fail_member(publication, peer, answer.reason, now)
            publication.group.remove(peer)
            self._settle(publication)
            return
        self._own_receipt(publication, peer, answer)
        if peer in publication.deputies:
            self._check_receipts(publication, peer, answer, now)
        if answer.reason is not None and peer in publication.open:
            self._fail_member(publication, peer, answer.reason, now)
        self._settle(publication)

    def _own_receipt(self, publication: _Publication, peer: PeerId, answer: Conveyed) -> None:
        """Check the receipt that a peer gives for itself."""
        group, event = publication.group, publication.passing.id
        if peer not in publication.open or answer.reason is not None:
            return
        if not group.is_receipt(peer, event, answer.receipt):
            note = "a receipt that is not its own"
            self._out.record(Record(Kind.REJECTED, event=event, peer=peer, reason=Reason.FORGING, note=note))
            self._miss(publication, peer)
            return
        group.answered(peer)
        deputy = publication.open.pop(peer)
        publication.reached += 1
        if deputy is None or not answer.fresh:
            return
        if group.doubt(deputy, peer):
            self._relieve(publication, deputy, Reason.LOST, "members did not get events from it")
            return
        note = "a member did not get an event from it"
        self._out.record(Record(Kind.DROPPED, event=event, peer=deputy, reason=Reason.LOST, note=note))

    def _check_receipts(
        self, publication: _Publication, deputy: PeerId, answer: Conveyed, now: float
    ) -> None:
        """Check the receipts that a deputy gathered from the members that it serves."""
        owed = publication.deputies.pop(deputy)
        group, event = publication.group, publication.passing.id
        forged = False
        for peer, given in answer.receipts:
            if group.is_receipt(peer, event, given):
                if peer in owed and peer in publication.open:
                    del publication.open[peer]
                    publication.reached += 1
            elif peer in group:
                forged = True
        if forged:
            self._relieve(publication, deputy, Reason.FORGING, "receipts that nobody gave")
        blamed = None if forged else deputy
        self._take_back(publication, list(owed), blamed)

    def _take_back(self, publication: _Publication, peers: list[PeerId], deputy: PeerId | None) -> None:
        """Send the event directly to members that a deputy should have served."""
        for peer in peers:
            if peer not in publication.open:
                continue
            publication.taken_back += 1
            if peer not in publication.group:
                self._miss(publication, peer)
                continue
            publication.open[peer] = deputy
            self._send(publication, peer)

    def handle_failure(self, task: Publishing, reason: Reason, now: float) -> None:
        """Go on without a member that did not answer."""
        publication = self._open.get(task.event)
        if publication is None:
            return
        self._fail_member(publication, task.member, reason, now)
        self._settle(publication)

    def _fail_member(self, publication: _Publication, peer: PeerId, reason: Reason, now: float) -> None:
        owed = publication.deputies.pop(peer, None)
        if owed is not None:
            self._relieve(publication, peer, reason, "it did not answer")
            self._take_back(publication, list(owed), None)
            if peer in publication.open and peer in publication.group and reason not in _NOT_THERE:
                # It may still take the event for itself: send it once more, with more patience.
                self._send(publication, peer)
                return
        if peer in publication.open:
            self._miss(publication, peer)

    def _miss(self, publication: _Publication, peer: PeerId) -> None:
        del publication.open[peer]
        if peer not in publication.group:
            # It left in the meantime, and no longer wants the event.
            return
        publication.missed.append(peer)
        if not publication.group.missed(peer):
            return
        publication.group.remove(peer)
        note = f"{self._config.strikes} events in a row without a word"
        self._out.record(
            Record(Kind.EVICTED, peer=peer, topic=publication.group.id, reason=Reason.TIMEOUT, note=note)
        )

    def _relieve(self, publication: _Publication, deputy: PeerId, reason: Reason, note: str) -> None:
        group = publication.group
        if any(each.peer == deputy for each in publication.relieved):
            return
        publication.relieved.append(Relieved(deputy, reason))
        # A link may break without any fault of its own.
        seconds = self._config.distrust if reason in _AT_FAULT else self._config.refresh
        group.relieve(deputy, publication.passing.event.time / 1000 + seconds)
        self._out.record(
            Record(Kind.REJECTED, topic=group.id, peer=deputy, reason=reason, note=f"relieved: {note}")
        )

    def end_confirmation(self, timer: GroupConfirmDue) -> None:
        """Answer the application although some members have not answered."""
        publication = self._open.get(timer.event)
        if publication is not None:
            self._answer(publication)

    def handle_silence(self, task: Publishing) -> None:
        """Answer the application if only silent members are left."""
        publication = self._open.get(task.event)
        if publication is not None:
            self._settle(publication)

    def _settle(self, publication: _Publication) -> None:
        event = publication.passing.id
        if publication.open or publication.deputies:
            if not publication.confirms and self._is_stalled(publication):
                self._answer(publication)
            return
        del self._open[event]
        if publication.request is None:
            self._out.record(_later(publication))
            return
        if publication.confirms:
            self._out.cancel_timer(GroupConfirmDue(event))
        self._answer(publication)

    def _is_stalled(self, publication: _Publication) -> bool:
        """Return whether only silent members are left, and members that silent deputies should serve."""
        event = publication.passing.id
        silent = {
            peer: None
            for peer in (*publication.deputies, *publication.open)
            if self._requests.is_silent(peer, Publishing(event, peer))
        }
        served = {peer: None for each in publication.deputies for peer in publication.deputies[each]}
        return all(peer in silent for peer in publication.deputies) and all(
            peer in silent or peer in served for peer in publication.open
        )

    def _answer(self, publication: _Publication) -> None:
        request, publication.request = publication.request, None
        if request is None:
            return
        silent = tuple(publication.open)
        outcome = GroupOutcome(
            publication.passing.id,
            publication.reached + len(publication.missed) + len(silent),
            publication.reached,
            tuple(publication.missed),
            publication.taken_back,
            tuple(publication.relieved),
            silent,
        )
        self._promise().reply(request, outcome)


def _later(publication: _Publication) -> Record:
    """Return a record of the final outcome of an event whose publisher was answered before."""
    topic, event, missed = publication.group.id, publication.passing.id, len(publication.missed)
    told = f"{counted(publication.reached, 'member')} gave a receipt, {missed} did not"
    note = f"convey, after its publisher was answered: {told}"
    if not missed:
        return Record(Kind.ACKED, topic=topic, event=event, note=note)
    return Record(Kind.DROPPED, topic=topic, event=event, reason=Reason.TIMEOUT, note=note)


class Publisher:
    """The groups of this node as their publisher."""

    def __init__(
        self, station: FastStation, adverts: Advertisements, memberships: Memberships, promise: Promise
    ) -> None:
        self._station = station
        self._advertisements = adverts
        self._memberships = memberships
        self.groups: dict[TopicId, Group] = {}
        self.publications = Publications(station.config, station.requests, station.out, promise)
        self._signer = EventSigner(station.context)

    # The application.

    def open(self, request: int, command: OpenGroup, now: float) -> None:
        """Open a group; it is opened again after a restart."""
        group = self._open(command)
        self._station.context.store.cells.put(
            GROUPS, group.predicate.text.encode(), b"1" if command.listed else b"0"
        )
        self._station.out.committed.reply(request, GroupOpened(group.id, group.predicate.text))
        if group.listed:
            self._advertisements.advertise(group, now)

    def reopen(self, now: float) -> None:
        """Open the groups that this node had before a restart."""
        for text, listed in self._station.context.store.cells.scan(GROUPS):
            try:
                group = self._open(OpenGroup(text.decode(), listed == b"1"))
            except (BadText, Refused) as error:
                refusal = declined(error)
                note = f"content: {refusal.detail}"[:200]
                self._station.out.record(Record(Kind.DROPPED, reason=refusal.reason, note=note))
                continue
            if group.listed:
                self._advertisements.advertise(group, now)

    def _open(self, command: OpenGroup) -> Group:
        predicate = read_predicate(command.predicate, self._station.content.attributes)
        group = group_id(self._station.context.peer, predicate.text)
        if group in self.groups:
            raise Refused(Reason.IN_USE, f"there is a group {predicate.text} already")
        if len(self.groups) >= self._station.config.groups:
            raise Refused(Reason.TOO_MANY, f"at most {self._station.config.groups} groups")
        opened = self.groups[group] = Group(group, predicate, command.listed, self._station.config)
        return opened

    def close(self, request: int, text: str, now: float) -> None:
        """Close a group, and tell its members."""
        group = self._own(text)
        del self.groups[group.id]
        self._station.context.store.cells.delete(GROUPS, group.predicate.text.encode())
        self._station.out.committed.reply(request, Ended())
        for peer in group.members:
            message = Quit(self._station.requests.next_number(), group.id)
            self._station.requests.ask_peer(group.contact(peer), message, Leaving(group.id, peer))
        if group.id in self._memberships:
            self._memberships.handle_close(group.id)
        self._advertisements.withdraw(group, now)

    def publish(self, request: int, command: PublishToGroup, now: float) -> None:
        """Send an event to the members of a group."""
        group = self._own(command.group)
        attributes = read_attributes(command.attributes, self._station.content.attributes)
        if not group.predicate.covers(attributes):
            raise Refused(Reason.NOT_ALLOWED, f"the group {group.predicate.text} does not carry this")
        if len(self.publications) >= self._station.config.publications:
            raise Refused(Reason.CONGESTED, f"at most {self._station.config.publications} events under way")
        if len(self._station.requests) >= self._station.config.calls:
            raise Refused(Reason.CONGESTED, f"{len(self._station.requests)} answers are awaited")
        passing = self._signer.sign(group.id, attributes, command.body, now)
        self._station.out.record(
            Record(Kind.PUBLISHED, topic=group.id, event=passing.id, bytes=len(command.body))
        )
        if group.id in self._memberships:
            self._memberships.take(passing, 0)
        self.publications.begin(request, group, passing, command.confirm)

    def _own(self, text: str) -> Group:
        predicate = read_predicate(text, self._station.content.attributes)
        group = self.groups.get(group_id(self._station.context.peer, predicate.text))
        if group is None:
            raise Refused(Reason.UNKNOWN, f"this node has no group {predicate.text}")
        return group

    # Members.

    def enrol(self, peer: PeerId, message: Enrol, now: float) -> None:
        """Take a peer as a member, or renew its membership."""
        enrolment = message.enrolment
        foreign_predicate(message.group, self._station.content.attributes)
        group = self.groups.get(group_id(self._station.context.peer, message.group))
        if group is None or enrolment.group != group.id:
            raise RemoteError(Reason.UNKNOWN, "no group of this node")
        if enrolment.member.peer != peer:
            raise RemoteError(Reason.NOT_ALLOWED, "an enrolment of somebody else")
        predicates = check_enrolment(enrolment, self._station.content.attributes, now)
        group.enrol(enrolment, predicates, message.key, now)
        self._station.requests.answer(peer, Enrolled(message.number, None))
        if peer in group.linked:
            self._station.requests.hold(enrolment.member)

    def remove_member(self, peer: PeerId, group: TopicId) -> None:
        """Remove a member that leaves."""
        known = self.groups.get(group)
        if known is None or not known.remove(peer):
            self._station.out.record(
                Record(Kind.REJECTED, peer=peer, topic=group, reason=Reason.STALE, note="Quit")
            )

    def tell_deputies(self) -> None:
        """Tell deputies which members to serve, and which no longer."""
        for group in self.groups.values():
            for errand, enrolments in group.errands():
                message = Entrust(self._station.requests.next_number(), group.id, enrolments, errand.gone)
                task = Entrusting(group.id, errand.deputy)
                self._station.requests.ask_peer(group.contact(errand.deputy), message, task)

    def handle_entrusted(self, task: Entrusting, answer: Entrusted, now: float) -> None:
        """Note whether a deputy has accepted the members handed to it."""
        if answer.reason is not None:
            self.handle_refusal(task, answer.reason, now)
            return
        group = self.groups.get(task.group)
        if group is not None:
            group.agreed(task.deputy)

    def handle_refusal(self, task: Entrusting, reason: Reason, now: float) -> None:
        """Relieve a deputy that refuses or does not answer, and do not ask it again for a while."""
        group = self.groups.get(task.group)
        if group is None:
            return
        group.relieve(task.deputy, now + self._station.config.refresh)
        self._station.out.record(
            Record(Kind.REJECTED, peer=task.deputy, topic=group.id, reason=reason, note="Entrust")
        )

    def renew(self, now: float) -> None:
        """Forget members that did not renew, and advertise again."""
        for group in self.groups.values():
            for peer in group.expired(now):
                group.remove(peer)
                self._station.out.record(
                    Record(Kind.EXPIRED, peer=peer, topic=group.id, reason=Reason.STALE, note="a member")
                )
            if group.listed:
                self._advertisements.advertise(group, now)

    def advertise_again(self, now: float) -> None:
        """Advertise again groups that are on no other node's board, as when no other node was known yet."""
        for group in self.groups.values():
            if group.listed and self._advertisements.is_alone(group.id):
                self._advertisements.advertise(group, now)

    @property
    def linked(self) -> dict[PeerId, None]:
        """Members that links are kept to."""
        return {peer: None for group in self.groups.values() for peer in group.linked}

    def status(self) -> tuple[GroupStatus, ...]:
        """Return the status of all groups."""
        return tuple(group.status(self._advertisements.boards(group.id)) for group in self.groups.values())
