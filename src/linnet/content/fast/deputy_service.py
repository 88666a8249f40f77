"""Members of other publishers' groups that this node serves, since it said that it could.

It sends them what the publisher sends, and nothing else; never further than to them, so an event crosses two
links at most. It answers with their receipts.
"""

from __future__ import annotations

from linnet.content.fast.group_requests import Forwarding, GroupRequests
from linnet.content.fast.messages import Convey, Conveyed, Enrolment, Entrust
from linnet.content.matching_index import Index
from linnet.content.passing import Passing
from linnet.content.predicate import Predicate
from linnet.core.errors import RemoteError
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record


class ReceiptsDue(Timer, frozen=True, gc=False):
    """The time is up in which receipts for an event are gathered for its publisher."""

    event: EventId


class _Charge:
    """Those whom we serve for one group."""

    __slots__ = ("index", "members")

    def __init__(self) -> None:
        self.members: dict[PeerId, tuple[Enrolment, int]] = {}
        """With how many predicates each has."""
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


class _Gathering:
    """An event, and whose receipts are awaited."""

    __slots__ = ("answer", "open", "publisher", "receipts")

    def __init__(self, publisher: PeerId, answer: Conveyed, members: list[PeerId]) -> None:
        self.publisher = publisher
        self.answer = answer
        self.open: dict[PeerId, None] = dict.fromkeys(members)
        self.receipts: list[tuple[PeerId, bytes]] = []


class DeputyService:
    """Whom this node serves."""

    def __init__(self, requests: GroupRequests, remembered: int, out: Outbox) -> None:
        self._out = out
        self._requests = requests
        self._remembered = remembered
        self._charges: dict[TopicId, _Charge] = {}
        self._gathering: dict[EventId, _Gathering] = {}

    def entrust(
        self, message: Entrust, predicates: list[tuple[Predicate, ...]], promised: int, now: float
    ) -> None:
        """Serve some members, and others no longer; `RemoteError` if that is more than was promised."""
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
        """This node is no member any more, and serves nobody there."""
        self._charges.pop(group, None)

    def forward(
        self, publisher: PeerId, message: Convey, passing: Passing, answer: Conveyed, now: float
    ) -> None:
        """Bring an event to those who want it; the publisher hears when all have answered or time is up."""
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
        gathering = self._gathering[event] = _Gathering(publisher, answer, list(wanted))
        self._forget()
        for peer in wanted:
            number = self._requests.next_number()
            onwards = Convey(number, message.unit, message.card, False, 0)
            contact = charge.members[peer][0].member
            self._requests.ask(number, contact, onwards, Forwarding(event, peer))
        if not wanted:
            self._requests.answer(publisher, answer)
            return
        waiting = Conveyed(answer.number, event, answer.receipt, answer.fresh, True, (), None)
        gathering.answer = answer
        self._requests.answer(publisher, waiting)
        self._out.set_timer(message.patience / 1000, ReceiptsDue(event))

    def _repeat_answer(self, event: EventId, number: int) -> None:
        """The publisher asks once more: what is known is said again."""
        gathering = self._gathering[event]
        answer = gathering.answer
        gathering.answer = Conveyed(number, event, answer.receipt, answer.fresh, False, answer.receipts, None)
        if gathering.open:
            waiting = Conveyed(number, event, answer.receipt, answer.fresh, True, (), None)
            self._requests.answer(gathering.publisher, waiting)
            return
        self._tell(event, gathering)

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
        """Leave it to the publisher to see to those who have not answered."""
        event = timer.event
        gathering = self._gathering.get(event)
        if gathering is None or not gathering.open:
            return
        for peer in gathering.open:
            self._out.record(
                Record(Kind.DROPPED, event=event, peer=peer, reason=Reason.TIMEOUT, note="Convey")
            )
            self._requests.withdraw(peer, Forwarding(event, peer))
        gathering.open = {}
        self._tell(event, gathering)

    def _tell_if_all(self, event: EventId, gathering: _Gathering) -> None:
        if gathering.open:
            return
        self._out.cancel_timer(ReceiptsDue(event))
        self._tell(event, gathering)

    def _tell(self, event: EventId, gathering: _Gathering) -> None:
        own = gathering.answer
        receipts = tuple(gathering.receipts)
        told = Conveyed(own.number, event, own.receipt, own.fresh, False, receipts, None)
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
        """Members to which links are kept."""
        return {peer: None for charge in self._charges.values() for peer in charge.members}

    @property
    def counts(self) -> dict[TopicId, int]:
        """How many are served for each group."""
        return {group: len(charge.members) for group, charge in self._charges.items()}
