"""Events of ours on their way to the members of a group, and what became of them.

Each goes to all deputies and to all whom the publisher serves itself, at once. A deputy answers with the
receipts of those whom it serves. Whoever is left without one, because the deputy is gone, did not reach
it or does not say the truth, is sent the event by the publisher itself, within the same publication.
"""

from __future__ import annotations

from linnet.content.fast.commands import GroupOutcome, Relieved
from linnet.content.fast.config import FastConfig
from linnet.content.fast.group_requests import GroupRequests, Publishing
from linnet.content.fast.messages import Convey, Conveyed
from linnet.content.fast.publisher_groups import Group
from linnet.content.passing import Passing
from linnet.content.reach import Promise
from linnet.core.counts import counted
from linnet.core.ids import EventId, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

CONVEY = "convey"
_ANSWERING = 2.0
"""How many times a deputy's patience the publisher waits for its receipts."""
_AT_FAULT = (Reason.LOST, Reason.FORGING)
_NOT_THERE = (Reason.NOT_A_MEMBER, Reason.UNSUPPORTED)


class GroupConfirmDue(Timer, frozen=True, gc=False):
    """A publisher has waited as long as it said for members who say nothing of an event."""

    event: EventId


class _Publication:
    """One event."""

    __slots__ = (
        "confirms",
        "deputies",
        "group",
        "missed",
        "open",
        "passing",
        "reached",
        "relieved",
        "request",
        "taken_back",
    )

    def __init__(
        self, request: int, group: Group, passing: Passing, wanted: list[PeerId], confirms: bool
    ) -> None:
        self.request: int | None = request
        """Who waits for an answer; None when it was given."""
        self.confirms = confirms
        """Whether those who say nothing are waited for."""
        self.group = group
        self.passing = passing
        self.open: dict[PeerId, PeerId | None] = dict.fromkeys(wanted)
        """Members without a receipt, each with the deputy that failed it, if one did."""
        self.deputies: dict[PeerId, dict[PeerId, None]] = {}
        """Whose receipts each deputy owes."""
        self.reached = 0
        self.missed: list[PeerId] = []
        self.taken_back = 0
        self.relieved: list[Relieved] = []


class Publications:
    """Everything that was said in groups of this node and is not settled."""

    def __init__(self, config: FastConfig, requests: GroupRequests, out: Outbox, promise: Promise) -> None:
        self._out = out
        self._promise = promise
        self._config = config
        self._requests = requests
        self._open: dict[EventId, _Publication] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, request: int, group: Group, passing: Passing, confirm: float) -> None:
        """Send an event to all who want it; those who say nothing are waited for so many seconds."""
        matching = group.matching(passing.attributes)
        publication = _Publication(request, group, passing, list(matching), confirm > 0)
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
        number = self._requests.next_number()
        patience = int(1000 * self._config.patience)
        serves = peer in publication.deputies
        message = Convey(number, passing.unit, passing.card, serves, patience)
        contact = publication.group.contact(peer)
        self._requests.ask(number, contact, message, Publishing(passing.id, peer), hasty=serves)

    def handle_waiting(self, task: Publishing, answer: Conveyed) -> None:
        """Give a deputy time that has an event and gathers receipts."""
        publication = self._open.get(task.event)
        if publication is None:
            return
        self._own_receipt(publication, task.member, answer)
        self._requests.extend(answer.number, _ANSWERING * self._config.patience)

    def handle_answer(self, task: Publishing, answer: Conveyed, now: float) -> None:
        """Count the receipt of a member, or those that a deputy could get."""
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
        """The receipt of who answers, for itself."""
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
        """What a deputy shows for those whom it serves."""
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
        """Serve members directly after all."""
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
        """Go on without a member from which nothing came back."""
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
                # It may be there for itself: once more, with more patience.
                self._send(publication, peer)
                return
        if peer in publication.open:
            self._miss(publication, peer)

    def _miss(self, publication: _Publication, peer: PeerId) -> None:
        del publication.open[peer]
        if peer not in publication.group:
            # It left in the meantime, and wants it no longer.
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
        """Answer a publisher, though some say nothing of its event."""
        publication = self._open.get(timer.event)
        if publication is not None:
            self._answer(publication)

    def handle_silence(self, task: Publishing) -> None:
        """Answer who published if all have answered but those who say nothing."""
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
        """Whether all have answered but those who say nothing, and whom these are to serve."""
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
    """What became of an event in the end, for the trace, since who said it did not wait for that."""
    topic, event, missed = publication.group.id, publication.passing.id, len(publication.missed)
    told = f"{counted(publication.reached, 'member')} gave a receipt, {missed} did not"
    note = f"{CONVEY}, after its publisher was answered: {told}"
    if not missed:
        return Record(Kind.ACKED, topic=topic, event=event, note=note)
    return Record(Kind.DROPPED, topic=topic, event=event, reason=Reason.TIMEOUT, note=note)
