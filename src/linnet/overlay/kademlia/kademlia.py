"""Kademlia at one node: its table, what it keeps, what it looks for, what it places.

Other parts of the node ask it by `SeekNodes`, `SeekRecords` and `PlaceInNetwork`. A lookup or placing that
was begun ends in one `Outcome` of its number, whatever happens.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Timer
from linnet.machine.outbox import Notice, Outbox
from linnet.machine.part import Part, on_input, on_message, on_notice, on_timer
from linnet.machine.requests import Failed, Requests, Retry
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.ids import NodeId, id_in_bucket
from linnet.overlay.kademlia.known import Known
from linnet.overlay.kademlia.lookup import Lookup
from linnet.overlay.kademlia.messages import (
    FindNode,
    FindRecord,
    KademliaAnswer,
    KademliaQuestion,
    KeepRecord,
    NodeIsHere,
    NodesAre,
    PingNode,
    RecordKept,
    RecordsAre,
)
from linnet.overlay.kademlia.outcomes import NodesFound, PlaceInNetwork, RecordsFound, SeekNodes, SeekRecords
from linnet.overlay.kademlia.placing import Placing
from linnet.overlay.kademlia.records import Stored, check_record
from linnet.overlay.kademlia.serving import Serving
from linnet.overlay.kademlia.shelf import Shelf
from linnet.overlay.kademlia.table import RoutingTable
from linnet.trace.records import Kind, Record

PROTOCOL = "kademlia"
PURPOSE = "kademlia"
WAITING = 1024
"""Lookups of other parts that wait until this node has met others, or for others to end."""
_LOOKUP, _PLACING, _PING = "lookup", "placing", "ping"
_KNOWN = 8
"""Contacts that are told where too many lookups wait."""


class AnswerDue(Timer, frozen=True):
    """A question has waited long enough for its answer."""

    request: int


class RefreshDue(Timer, frozen=True):
    """Buckets that no lookup went through are to be looked into."""


class RepublishDue(Timer, frozen=True):
    """Our own records are to be placed again."""


class JoinDue(Timer, frozen=True):
    """We are to look for ourselves again."""


class LookupsDue(Notice, frozen=True):
    """Lookups that wait may begin. Kademlia says it to itself: others are told first how lookups ended."""


class About(NamedTuple):
    """What a question is for."""

    what: str
    number: int


class Kademlia(Part):
    """One node of the hash table over the network."""

    def __init__(
        self,
        own: Contact,
        config: KademliaConfig,
        cells: Cells,
        rng: Random,
        out: Outbox,
        bootstrap: tuple[Contact, ...] = (),
    ) -> None:
        self._own = own
        self._config = config
        self._rng = rng
        self._out = out
        self.bootstrap = bootstrap
        """Whom to begin with, beside those whom we knew before."""
        self.table = RoutingTable(own.peer, config)
        self.shelf = Shelf(cells, config)
        self._known = Known(cells)
        self._written = 1
        """How many we knew when that was last written down."""
        self._serving = Serving(self.table, self.shelf, config, out)
        self._requests: Requests[About] = Requests(PURPOSE, AnswerDue, out)
        self._once = Retry(config.patience)
        self._linked: dict[PeerId, Contact] = {}
        """Peers with a link that take part, and where they say that they can be dialled."""
        self._number = 0
        self._lookups: dict[int, Lookup] = {}
        self._placings: dict[int, Placing] = {}
        self._pings: dict[PeerId, None] = {}
        self._apart = 0
        """How often we met others and none of these."""
        self._quiet: dict[int, None] = {}
        """Lookups and placings of our own, of which nobody is told."""
        self._sought: dict[int, int] = {}
        """Searches that another part asked for: by our number, that of its notice."""
        self._waiting: dict[NodeId, None] = {}
        """Keys to which other parts seek the nearest nodes, and no lookup has begun."""
        self._records: dict[tuple[NodeId, bytes], Stored] = {}
        """What we placed, to be placed again."""
        self.is_joining = False
        """Whether this node looks for itself for the first time, and does not know yet who is near."""

    def start(self, now: float) -> None:
        """Come to know those who are near us, by way of the bootstrap and of those whom we knew before."""
        self._out.set_timer(self._config.refresh, RefreshDue())
        self._out.set_timer(self._config.republish, RepublishDue())
        self.is_joining = True
        self._join(now)

    # What can be asked.

    def find_nodes(self, target: NodeId, now: float) -> int:
        """Look for the nodes nearest to this; ends in `NodesFound` of the number that is returned.

        `Refused` if too much is under way.
        """
        self._refuse_too_many()
        return self._find_nodes(target, now)

    def find_records(self, key: NodeId, now: float) -> int:
        """Look for what is kept under this key; ends in `RecordsFound` of the number that is returned."""
        self._refuse_too_many()
        number = self._begin(key, now, wants_records=True)
        self._go_on(number, now)
        return number

    def place_record(self, record: Stored, now: float) -> int:
        """Have a record of ours kept, again from time to time until it ends; ends in `Placed`."""
        self._refuse_record(record, now)
        place = (record.key, record.owner)
        if place not in self._records and len(self._records) >= self._config.own:
            raise Refused(Reason.TOO_MANY, f"{self._config.own} records are placed already")
        self._records[place] = record
        return self._place(record, now)

    @property
    def placed(self) -> int:
        """Records of our own that others keep, or are to keep."""
        return len(self._records)

    def withdraw_record(self, key: NodeId, owner: bytes) -> None:
        """Place this record no more; where it is kept it stays until it ends."""
        self._records.pop((key, owner), None)

    # What other parts of the node ask.

    @on_notice(SeekNodes)
    def handle_seek_nodes(self, notice: SeekNodes, now: float) -> None:
        """Have a lookup wait for its turn."""
        if len(self._waiting) >= WAITING:
            # What is known without asking is the best answer then; a claim mends it if it is wrong.
            note = "a lookup for a rendezvous"
            self._out.record(Record(Kind.DROPPED, reason=Reason.QUEUE_FULL, note=note))
            known = self.table.nearest(notice.key, _KNOWN)
            self._out.notify(NodesFound(0, notice.key, known, 0, 0))
            return
        self._waiting[notice.key] = None
        self._out.notify(LookupsDue())

    @on_notice(LookupsDue)
    def begin_waiting(self, notice: LookupsDue, now: float) -> None:
        """Begin the lookups that wait, as far as there is room and this node has met others."""
        while self._waiting and not self.is_joining and not self._is_full:
            key = next(iter(self._waiting))
            del self._waiting[key]
            self._find_nodes(key, now)

    @on_notice(SeekRecords)
    def handle_seek_records(self, notice: SeekRecords, now: float) -> None:
        """Look for records; where too much is under way, nothing is found."""
        if self._is_full:
            note = "a search for a record of a name"
            self._out.record(Record(Kind.DROPPED, reason=Reason.QUEUE_FULL, note=note))
            self._out.notify(RecordsFound(notice.number, (), 0, 0, 0))
            return
        number = self._begin(notice.key, now, wants_records=True)
        self._sought[number] = notice.number
        self._go_on(number, now)

    @on_notice(PlaceInNetwork)
    def handle_place_in_network(self, notice: PlaceInNetwork, now: float) -> None:
        """Have a record kept, once."""
        try:
            self._refuse_record(notice.record, now)
        except Refused as error:
            note = "a record of a name, into the network"
            self._out.record(Record(Kind.DROPPED, reason=error.reason, note=note))
            return
        self._place(notice.record, now, quiet=True)

    # What happens.

    @on_message(PingNode)
    def handle_ping(self, peer: PeerId, message: PingNode, now: float) -> None:
        """Answer a peer that asks whether we are there."""
        self._answer(peer, message, now)

    @on_message(FindNode)
    def handle_find_node(self, peer: PeerId, message: FindNode, now: float) -> None:
        """Answer a peer that looks for nodes."""
        self._answer(peer, message, now)

    @on_message(FindRecord)
    def handle_find_record(self, peer: PeerId, message: FindRecord, now: float) -> None:
        """Answer a peer that looks for records."""
        self._answer(peer, message, now)

    @on_message(KeepRecord)
    def handle_keep_record(self, peer: PeerId, message: KeepRecord, now: float) -> None:
        """Keep a record that a peer gives."""
        self._answer(peer, message, now)

    @on_message(NodeIsHere)
    def handle_node_is_here(self, peer: PeerId, message: NodeIsHere, now: float) -> None:
        """A peer answers a ping."""
        self._handle_answer(peer, message, now)

    @on_message(NodesAre)
    def handle_nodes_are(self, peer: PeerId, message: NodesAre, now: float) -> None:
        """A peer names nodes."""
        self._handle_answer(peer, message, now)

    @on_message(RecordsAre)
    def handle_records_are(self, peer: PeerId, message: RecordsAre, now: float) -> None:
        """A peer gives records, and names nodes."""
        self._handle_answer(peer, message, now)

    @on_message(RecordKept)
    def handle_record_kept(self, peer: PeerId, message: RecordKept, now: float) -> None:
        """A peer keeps a record of ours, or does not."""
        self._handle_answer(peer, message, now)

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Ask a peer what waits for its link; who takes no part is asked nothing."""
        if PROTOCOL not in event.hello.protocols:
            self._fail_requests(event.peer, Reason.UNSUPPORTED, now)
            return
        self._linked[event.peer] = Contact(event.peer, event.hello.listens)
        self._ping(self._note_seen(event.peer))
        self._requests.handle_link_up(event.peer)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Drop a peer that is gone, and fail what it was asked."""
        self._linked.pop(event.peer, None)
        self._fail_requests(event.peer, event.reason, now)

    @on_input(DialFailed)
    def handle_dial_failed(self, event: DialFailed, now: float) -> None:
        """Fail what a peer was to be asked that cannot be reached."""
        self._linked.pop(event.peer, None)
        self._fail_requests(event.peer, event.reason, now)

    @on_timer(AnswerDue)
    def handle_timeout(self, timer: AnswerDue, now: float) -> None:
        """Give up a question that was not answered in time."""
        failed = self._requests.handle_timeout(timer.request)
        if failed is not None:
            # The time for the dial counts as well: whether there was a link makes no difference.
            self._give_up(failed, Reason.TIMEOUT, now)

    @on_timer(RefreshDue)
    def refresh(self, timer: RefreshDue, now: float) -> None:
        """Forget records that are over, and look into buckets that no lookup went through."""
        self._out.set_timer(self._config.refresh, timer)
        self._write_down()
        if swept := self.shelf.sweep(now):
            note = "kademlia: records of others"
            self._out.record(Record(Kind.EXPIRED, events=swept, reason=Reason.RETENTION, note=note))
        for index in self.table.idle(now - self._config.refresh):
            if self._is_full:
                break
            number = self._begin(id_in_bucket(self.table.id, index, self._rng), now)
            self._quiet[number] = None
            self._go_on(number, now)

    @on_timer(RepublishDue)
    def republish(self, timer: RepublishDue, now: float) -> None:
        """Place our own records again: nodes come and go."""
        self._out.set_timer(self._config.republish, timer)
        for place, record in list(self._records.items()):
            if record.expires <= now:
                del self._records[place]
            elif not self._is_full:
                self._place(record, now, quiet=True)
            else:
                note = "kademlia: a record is not placed again this time"
                self._out.record(Record(Kind.DROPPED, reason=Reason.QUEUE_FULL, note=note))

    @on_timer(JoinDue)
    def join_again(self, timer: JoinDue, now: float) -> None:
        """Look for ourselves again, since the others may have come up."""
        self._join(now)

    # Lookups.

    def _find_nodes(self, target: NodeId, now: float) -> int:
        number = self._begin(target, now)
        self._go_on(number, now)
        return number

    def _begin(
        self, target: NodeId, now: float, wants_records: bool = False, seeds: Iterable[Contact] = ()
    ) -> int:
        self._number += 1
        self.table.touch(target, now)
        if not len(self.table):
            # All were lost, as where the others were away at once: those of before may be there again.
            seeds = (*seeds, *self.bootstrap, *self._known.load())
        known = (*self.table.nearest(target, self._config.k), *seeds)
        self._lookups[self._number] = Lookup(target, self._own.peer, known, self._config, wants_records)
        return self._number

    def _go_on(self, number: int, now: float) -> None:
        """Ask whoever is next; or tell how it ended."""
        lookup = self._lookups[number]
        question = FindRecord if lookup.wants_records else FindNode
        for contact in lookup.due():
            request = self._requests.next_number()
            self._ask(contact, About(_LOOKUP, number), question(request, lookup.target))
        if lookup.is_over:
            del self._lookups[number]
            self._end(number, lookup, now)
            if self._waiting:
                self._out.notify(LookupsDue())

    def _end(self, number: int, lookup: Lookup, now: float) -> None:
        note = "kademlia: lookup"
        self._out.record(Record(Kind.CONTROL, hops=lookup.hops, events=lookup.asked, note=note))
        placing = self._placings.get(number)
        if placing is not None:
            self._hand_out(placing, lookup.found)
        elif number in self._quiet:
            del self._quiet[number]
            self._end_join(lookup)
        elif not lookup.wants_records:
            found = lookup.found
            self._out.notify(NodesFound(number, lookup.target, found, lookup.hops, lookup.asked))
        else:
            records = dict.fromkeys(self.shelf.find(lookup.target, now)) | lookup.records
            newest = tuple(sorted(records, key=lambda each: (-each.version, each.owner)))
            told = self._sought.pop(number, number)
            self._out.notify(RecordsFound(told, newest, lookup.hops, lookup.asked, lookup.answered))

    # Placing.

    def _place(self, record: Stored, now: float, quiet: bool = False) -> int:
        number = self._begin(record.key, now)
        self._placings[number] = Placing(number, record)
        if quiet:
            self._quiet[number] = None
        self._go_on(number, now)
        return number

    def _hand_out(self, placing: Placing, nearest: tuple[Contact, ...]) -> None:
        about = About(_PLACING, placing.number)
        for contact in placing.hand_to(nearest):
            self._ask(contact, about, KeepRecord(self._requests.next_number(), placing.record))
        self._end_placing(placing)

    def _settle(self, number: int, peer: PeerId, reason: Reason | None) -> None:
        placing = self._placings.get(number)
        if placing is not None:
            placing.settle(peer, reason)
            self._end_placing(placing)

    def _end_placing(self, placing: Placing) -> None:
        """Tell who keeps a record, once all have answered or are not waited for."""
        outcome = placing.outcome
        if outcome is None:
            return
        del self._placings[placing.number]
        for peer, reason in outcome.refused:
            note = "kademlia: a record of ours"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=reason, note=note))
        if placing.number in self._quiet:
            del self._quiet[placing.number]
        else:
            self._out.notify(outcome)

    # Questions and answers, and their absence.

    def _ask(self, contact: Contact, about: About, question: KademliaQuestion) -> None:
        is_linked = contact.peer in self._linked
        self._requests.ask(question.request, contact, question, about, self._once, is_linked)

    def _answer(self, peer: PeerId, message: KademliaQuestion, now: float) -> None:
        oldest = self._note_seen(peer)
        self._serving.answer_question(peer, message, now)
        self._ping(oldest)

    def _handle_answer(self, peer: PeerId, message: KademliaAnswer, now: float) -> None:
        self._ping(self._note_seen(peer))
        about = self._requests.handle_answer(peer, message.request)
        if about is None:
            note = "an answer nobody waits for"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note=note))
        elif about.what == _PING:
            self._pings.pop(peer, None)
        elif about.what == _PLACING:
            reason = message.reason if isinstance(message, RecordKept) else Reason.PROTOCOL_ERROR
            self._settle(about.number, peer, reason)
        elif (lookup := self._lookups.get(about.number)) is not None:
            self._handle_lookup_answer(peer, message, lookup, now)
            self._go_on(about.number, now)

    def _handle_lookup_answer(
        self, peer: PeerId, message: KademliaAnswer, lookup: Lookup, now: float
    ) -> None:
        if not isinstance(message, NodesAre | RecordsAre) or message.reason is not None:
            reason = Reason.PROTOCOL_ERROR
            if isinstance(message, NodesAre | RecordsAre | RecordKept) and message.reason is not None:
                reason = message.reason
            lookup.silent(peer)
            note = "kademlia: a question"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=reason, note=note))
            return
        records = message.records if isinstance(message, RecordsAre) else ()
        lookup.heard(peer, message.contacts, self._check_records(peer, records, lookup, now))

    def _check_records(
        self, peer: PeerId, records: Iterable[Stored], lookup: Lookup, now: float
    ) -> list[Stored]:
        """The records of an answer that are signed, good, and of this key; others are recorded and blamed."""
        sound: list[Stored] = []
        for record in records:
            reason = Reason.PROTOCOL_ERROR if record.key != lookup.target else None
            if record in lookup.records and reason is None:
                sound.append(record)
                continue
            try:
                check_record(record, now)
            except RemoteError as error:
                reason = error.reason
            if reason is None:
                sound.append(record)
                continue
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=reason, note="kademlia: a record"))
            if reason is not Reason.STALE:
                self._out.blame(peer, reason)
        return sound

    def _fail_requests(self, peer: PeerId, reason: Reason, now: float) -> None:
        for failed in self._requests.handle_link_down(peer, reason):
            self._give_up(failed, reason, now)

    def _give_up(self, failed: Failed[About], reason: Reason, now: float) -> None:
        """Go on without the answer to a question."""
        peer, about = failed.peer, failed.context
        self.table.failed(peer)
        self._out.record(Record(Kind.DROPPED, peer=peer, reason=reason, note=f"kademlia: {about.what}"))
        if about.what == _PING:
            self._pings.pop(peer, None)
        elif about.what == _PLACING:
            self._settle(about.number, peer, reason)
        elif (lookup := self._lookups.get(about.number)) is not None:
            lookup.silent(peer)
            self._go_on(about.number, now)

    # The table, kept up.

    def _join(self, now: float) -> None:
        seeds = (*self.bootstrap, *self._known.load())
        number = self._begin(self.table.id, now, seeds=seeds)
        self._quiet[number] = None
        self._go_on(number, now)

    def _end_join(self, lookup: Lookup) -> None:
        """We looked for ourselves: if nobody was there, we try again, since the others may come up later.

        So we do, less and less often, if some were there and none of our configuration: they and we may be
        cut off from all others.
        """
        if lookup.target != self.table.id:
            return
        self.is_joining = False
        met = dict.fromkeys(each.peer for each in self.table.contacts())
        if met and (not self.bootstrap or any(each.peer in met for each in self.bootstrap)):
            return
        wait = min(self._config.refresh, self._config.rejoin * 2 ** min(16, self._apart))
        self._apart = self._apart + 1 if met else 0
        self._out.set_timer(wait, JoinDue())

    def _note_seen(self, peer: PeerId) -> Contact | None:
        """Note in the table that a peer is there; returns whom to ping before it may take their place."""
        contact = self._linked.get(peer)
        if contact is None:
            return None
        seen = self.table.seen(contact)
        if len(self.table) >= 2 * self._written:
            self._write_down()
        if seen.ping is None or seen.ping.peer in self._pings or seen.ping.peer == peer:
            return None
        return seen.ping

    def _ping(self, contact: Contact | None) -> None:
        if contact is not None:
            self._pings[contact.peer] = None
            self._ask(contact, About(_PING, 0), PingNode(self._requests.next_number()))

    def _write_down(self) -> None:
        """Whom we know; while the table grows, each time that it has doubled."""
        if len(self.table):
            self._known.save(self.table.contacts())
        self._written = max(1, len(self.table))

    # Limits.

    @property
    def _is_full(self) -> bool:
        return len(self._lookups) >= self._config.lookups

    def _refuse_too_many(self) -> None:
        if self._is_full:
            raise Refused(Reason.QUEUE_FULL, f"{self._config.lookups} lookups are under way already")

    def _refuse_record(self, record: Stored, now: float) -> None:
        self._refuse_too_many()
        try:
            check_record(record, now)
        except RemoteError as error:
            raise Refused(error.reason, error.detail) from error
