"""Kademlia at one node: its routing table, the records that it keeps, its lookups and placements.

Other parts of the node ask it by `SeekNodes`, `SeekRecords` and `PlaceInNetwork`. Each lookup and each
placement ends in one `Outcome` of its number, whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
from linnet.overlay.kademlia.routing_table import NodeId, RoutingTable, SavedContacts, id_in_bucket
from linnet.overlay.kademlia.server import Server, ValueShelf
from linnet.overlay.kademlia.value_records import (
    NodesFound,
    Placed,
    PlaceInNetwork,
    RecordsFound,
    SeekNodes,
    SeekRecords,
    Stored,
    check_record,
)
from linnet.trace.records import Kind, Record

PROTOCOL = "kademlia"
PURPOSE = "kademlia"
WAITING = 1024
"""Lookups of other parts that wait until this node has met others, or until other lookups end."""
_LOOKUP, _PLACING, _PING = "lookup", "placing", "ping"
_KNOWN = 8
"""Contacts that are named when too many lookups wait."""

End = Callable[[int, Lookup, float], None]
"""Called with a lookup that is over, its number, and the time."""


class AnswerDue(Timer, frozen=True):
    """Fires when a question has waited long enough for its answer."""

    request: int


class RefreshDue(Timer, frozen=True):
    """Fires when buckets that no lookup went through are to be refreshed."""


class RepublishDue(Timer, frozen=True):
    """Fires when our own records are to be placed again."""


class JoinDue(Timer, frozen=True):
    """Fires when this node is to look for itself again."""


class LookupsDue(Notice, frozen=True):
    """Lets waiting lookups begin. Kademlia sends it to itself, so that others first hear how lookups
    ended."""


class About(NamedTuple):
    """The purpose of a question."""

    what: str
    number: int


class Placement:
    """One record on its way to the nodes that are to keep it."""

    def __init__(self, number: int, record: Stored, is_quiet: bool = False) -> None:
        self.number = number
        self.record = record
        self.is_quiet = is_quiet
        """Whether no other part is told of the outcome."""
        self._open: dict[PeerId, None] = {}
        self._kept: dict[PeerId, None] = {}
        self._refused: dict[PeerId, Reason] = {}

    def begin(self, contacts: Iterable[Contact]) -> None:
        """Wait for the answers of these nodes, which were sent the record."""
        self._open = {contact.peer: None for contact in contacts}

    def handle_answer(self, peer: PeerId, reason: Reason | None) -> None:
        """Note that a node keeps the record, or why it does not."""
        if peer not in self._open:
            return
        del self._open[peer]
        if reason is None:
            self._kept[peer] = None
        else:
            self._refused[peer] = reason

    @property
    def outcome(self) -> Placed | None:
        """The nodes that keep the record, once none is waited for."""
        if self._open:
            return None
        return Placed(self.number, tuple(self._kept), tuple(self._refused.items()))


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
        """The nodes to begin with, beside the saved ones."""
        self.table = RoutingTable(own.peer, config)
        self.shelf = ValueShelf(cells, config)
        self._saved = SavedContacts(cells)
        self._written = 1
        """The number of known contacts when they were last saved."""
        self._server = Server(self.table, self.shelf, config, out)
        self._requests: Requests[About] = Requests(PURPOSE, AnswerDue, out)
        self._once = Retry(config.patience)
        self._linked: dict[PeerId, Contact] = {}
        """Linked peers that take part, and the addresses that they state."""
        self._number = 0
        self._lookups: dict[int, tuple[Lookup, End | None]] = {}
        self._placements: dict[int, Placement] = {}
        self._pings: dict[PeerId, None] = {}
        self._apart = 0
        """How often we met other nodes but none of the bootstrap nodes."""
        self._waiting: dict[NodeId, None] = {}
        """Keys whose nearest nodes other parts seek, and for which no lookup has begun."""
        self._records: dict[tuple[NodeId, bytes], Stored] = {}
        """Our own records, to be placed again."""
        self.is_joining = False
        """Whether this node looks for itself for the first time, and does not know the nodes near it yet."""

    def start(self, now: float) -> None:
        """Find the nodes near us through the bootstrap nodes and the saved ones."""
        self._out.set_timer(self._config.refresh, RefreshDue())
        self._out.set_timer(self._config.republish, RepublishDue())
        self.is_joining = True
        self._join(now)

    # What can be asked.

    def place_record(self, record: Stored, now: float) -> int:
        """Have a record of ours kept, again and again until it expires; ends in `Placed`."""
        self._refuse_record(record, now)
        place = (record.key, record.owner)
        if place not in self._records and len(self._records) >= self._config.own:
            raise Refused(Reason.TOO_MANY, f"{self._config.own} records are placed already")
        self._records[place] = record
        return self._place_record(record, now)

    @property
    def placed_records(self) -> int:
        """The number of our own records that others keep, or are to keep."""
        return len(self._records)

    def withdraw_record(self, key: NodeId, owner: bytes) -> None:
        """Place this record no longer; nodes that have it keep it until it expires."""
        self._records.pop((key, owner), None)

    # What other parts of the node ask.

    @on_notice(SeekNodes)
    def handle_seek_nodes(self, notice: SeekNodes, now: float) -> None:
        """Queue a lookup for its turn."""
        if len(self._waiting) >= WAITING:
            # The known contacts are the best answer then; a claim corrects it if it is wrong.
            note = "a lookup for a rendezvous"
            self._out.record(Record(Kind.DROPPED, reason=Reason.QUEUE_FULL, note=note))
            known = self.table.find_nearest(notice.key, _KNOWN)
            self._out.notify(NodesFound(0, notice.key, known, 0, 0))
            return
        self._waiting[notice.key] = None
        self._out.notify(LookupsDue())

    @on_notice(LookupsDue)
    def begin_waiting_lookups(self, notice: LookupsDue, now: float) -> None:
        """Begin waiting lookups, as far as there is room and this node has met others."""
        while self._waiting and not self.is_joining and not self._is_full:
            key = next(iter(self._waiting))
            del self._waiting[key]
            self._begin_lookup(key, self._tell_nodes, now)

    @on_notice(SeekRecords)
    def handle_seek_records(self, notice: SeekRecords, now: float) -> None:
        """Look for records; when too many lookups are open, report that nothing was found."""
        if self._is_full:
            note = "a search for a record of a name"
            self._out.record(Record(Kind.DROPPED, reason=Reason.QUEUE_FULL, note=note))
            self._out.notify(RecordsFound(notice.number, (), 0, 0, 0))
            return
        self._find_records(notice.key, notice.number, now)

    @on_notice(PlaceInNetwork)
    def handle_place_in_network(self, notice: PlaceInNetwork, now: float) -> None:
        """Have a record kept, once."""
        try:
            self._refuse_record(notice.record, now)
        except Refused as error:
            note = "a record of a name, into the network"
            self._out.record(Record(Kind.DROPPED, reason=error.reason, note=note))
            return
        self._place_record(notice.record, now, is_quiet=True)

    # What happens.

    @on_message(PingNode)
    def handle_ping(self, peer: PeerId, message: PingNode, now: float) -> None:
        """Answer a peer that asks whether we are up."""
        self._answer_question(peer, message, now)

    @on_message(FindNode)
    def handle_find_node(self, peer: PeerId, message: FindNode, now: float) -> None:
        """Answer a peer that looks for nodes."""
        self._answer_question(peer, message, now)

    @on_message(FindRecord)
    def handle_find_record(self, peer: PeerId, message: FindRecord, now: float) -> None:
        """Answer a peer that looks for records."""
        self._answer_question(peer, message, now)

    @on_message(KeepRecord)
    def handle_keep_record(self, peer: PeerId, message: KeepRecord, now: float) -> None:
        """Keep a record that a peer gives."""
        self._answer_question(peer, message, now)

    @on_message(NodeIsHere)
    def handle_node_is_here(self, peer: PeerId, message: NodeIsHere, now: float) -> None:
        """Take in the answer to a ping."""
        self._handle_answer(peer, message, now)

    @on_message(NodesAre)
    def handle_nodes_are(self, peer: PeerId, message: NodesAre, now: float) -> None:
        """Take in the nodes that a peer names."""
        self._handle_answer(peer, message, now)

    @on_message(RecordsAre)
    def handle_records_are(self, peer: PeerId, message: RecordsAre, now: float) -> None:
        """Take in the records and nodes of a peer."""
        self._handle_answer(peer, message, now)

    @on_message(RecordKept)
    def handle_record_kept(self, peer: PeerId, message: RecordKept, now: float) -> None:
        """Note whether a peer keeps a record of ours."""
        self._handle_answer(peer, message, now)

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Ask a peer what waits for its link; a peer that does not speak Kademlia is asked nothing."""
        if PROTOCOL not in event.hello.protocols:
            self._fail_requests(event.peer, Reason.UNSUPPORTED, now)
            return
        self._linked[event.peer] = Contact(event.peer, event.hello.listens)
        self._ping_peer(self._note_seen(event.peer))
        self._requests.handle_link_up(event.peer)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Drop a peer whose link closed, and fail its questions."""
        self._linked.pop(event.peer, None)
        self._fail_requests(event.peer, event.reason, now)

    @on_input(DialFailed)
    def handle_dial_failed(self, event: DialFailed, now: float) -> None:
        """Fail the questions to a peer that cannot be reached."""
        self._linked.pop(event.peer, None)
        self._fail_requests(event.peer, event.reason, now)

    @on_timer(AnswerDue)
    def handle_timeout(self, timer: AnswerDue, now: float) -> None:
        """Give up a question that was not answered in time."""
        failed = self._requests.handle_timeout(timer.request)
        if failed is not None:
            # The time for the dial counts as well: whether there was a link makes no difference.
            self._give_up_request(failed, Reason.TIMEOUT, now)

    @on_timer(RefreshDue)
    def refresh(self, timer: RefreshDue, now: float) -> None:
        """Drop expired records, and refresh buckets that no lookup went through."""
        self._out.set_timer(self._config.refresh, timer)
        self._save_contacts()
        if swept := self.shelf.sweep(now):
            note = "kademlia: records of others"
            self._out.record(Record(Kind.EXPIRED, events=swept, reason=Reason.RETENTION, note=note))
        for index in self.table.find_idle_buckets(now - self._config.refresh):
            if self._is_full:
                break
            target = id_in_bucket(self.table.id, index, self._rng)
            self._begin_lookup(target, None, now)

    @on_timer(RepublishDue)
    def republish(self, timer: RepublishDue, now: float) -> None:
        """Place our own records again: nodes come and go."""
        self._out.set_timer(self._config.republish, timer)
        for place, record in list(self._records.items()):
            if record.expires <= now:
                del self._records[place]
            elif not self._is_full:
                self._place_record(record, now, is_quiet=True)
            else:
                note = "kademlia: a record is not placed again this time"
                self._out.record(Record(Kind.DROPPED, reason=Reason.QUEUE_FULL, note=note))

    @on_timer(JoinDue)
    def join_again(self, timer: JoinDue, now: float) -> None:
        """Look for ourselves again: other nodes may have come up."""
        self._join(now)

    # Lookups.

    def _begin_lookup(
        self,
        target: NodeId,
        end: End | None,
        now: float,
        wants_records: bool = False,
        seeds: Iterable[Contact] = (),
    ) -> int:
        self._number += 1
        self.table.note_lookup(target, now)
        if not len(self.table):
            # All contacts were lost, as when all other nodes were away at once: the saved ones may be up
            # again.
            seeds = (*seeds, *self.bootstrap, *self._saved.load())
        known = (*self.table.find_nearest(target, self._config.k), *seeds)
        lookup = Lookup(target, self._own.peer, known, self._config, wants_records)
        number = self._number
        self._lookups[number] = (lookup, end)
        self._advance_lookup(number, now)
        return number

    def _advance_lookup(self, number: int, now: float) -> None:
        """Ask the next nodes of a lookup, or end it if it is over."""
        lookup, end = self._lookups[number]
        question = FindRecord if lookup.wants_records else FindNode
        for contact in lookup.take_due():
            request = self._requests.next_number()
            self._ask_peer(contact, About(_LOOKUP, number), question(request, lookup.target))
        if lookup.is_over:
            del self._lookups[number]
            note = "kademlia: lookup"
            self._out.record(Record(Kind.CONTROL, hops=lookup.hops, events=lookup.asked, note=note))
            if end is not None:
                end(number, lookup, now)
            if self._waiting:
                self._out.notify(LookupsDue())

    def _tell_nodes(self, number: int, lookup: Lookup, now: float) -> None:
        found = NodesFound(number, lookup.target, lookup.nearest, lookup.hops, lookup.asked)
        self._out.notify(found)

    def _find_records(self, key: NodeId, told_as: int, now: float) -> None:
        """Look for records, and report them under the number of the part that asked."""

        def tell_records(number: int, lookup: Lookup, now: float) -> None:
            records = dict.fromkeys(self.shelf.find(lookup.target, now)) | lookup.records
            newest = tuple(sorted(records, key=lambda each: (-each.version, each.owner)))
            self._out.notify(RecordsFound(told_as, newest, lookup.hops, lookup.asked, lookup.answered))

        self._begin_lookup(key, tell_records, now, wants_records=True)

    # Placements.

    def _place_record(self, record: Stored, now: float, is_quiet: bool = False) -> int:
        """Hand a record to the nodes nearest to its key."""

        def hand_out(number: int, lookup: Lookup, now: float) -> None:
            placement = self._placements[number] = Placement(number, record, is_quiet)
            placement.begin(lookup.nearest)
            for contact in lookup.nearest:
                question = KeepRecord(self._requests.next_number(), record)
                self._ask_peer(contact, About(_PLACING, number), question)
            self._end_placement(placement)

        return self._begin_lookup(record.key, hand_out, now)

    def _note_placed(self, number: int, peer: PeerId, reason: Reason | None) -> None:
        placement = self._placements.get(number)
        if placement is not None:
            placement.handle_answer(peer, reason)
            self._end_placement(placement)

    def _end_placement(self, placement: Placement) -> None:
        """Report the nodes that keep a record, once none is waited for."""
        outcome = placement.outcome
        if outcome is None:
            return
        del self._placements[placement.number]
        for peer, reason in outcome.refused:
            note = "kademlia: a record of ours"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=reason, note=note))
        if not placement.is_quiet:
            self._out.notify(outcome)

    # Questions and answers, and their absence.

    def _ask_peer(self, contact: Contact, about: About, question: KademliaQuestion) -> None:
        is_linked = contact.peer in self._linked
        self._requests.ask(question.request, contact, question, about, self._once, is_linked)

    def _answer_question(self, peer: PeerId, message: KademliaQuestion, now: float) -> None:
        oldest = self._note_seen(peer)
        self._server.answer_question(peer, message, now)
        self._ping_peer(oldest)

    def _handle_answer(self, peer: PeerId, message: KademliaAnswer, now: float) -> None:
        self._ping_peer(self._note_seen(peer))
        about = self._requests.handle_answer(peer, message.request)
        if about is None:
            note = "an answer nobody waits for"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note=note))
        elif about.what == _PING:
            self._pings.pop(peer, None)
        elif about.what == _PLACING:
            reason = message.reason if isinstance(message, RecordKept) else Reason.PROTOCOL_ERROR
            self._note_placed(about.number, peer, reason)
        elif about.number in self._lookups:
            self._handle_lookup_answer(peer, message, self._lookups[about.number][0], now)
            self._advance_lookup(about.number, now)

    def _handle_lookup_answer(
        self, peer: PeerId, message: KademliaAnswer, lookup: Lookup, now: float
    ) -> None:
        if not isinstance(message, NodesAre | RecordsAre) or message.reason is not None:
            reason = Reason.PROTOCOL_ERROR
            if isinstance(message, NodesAre | RecordsAre | RecordKept) and message.reason is not None:
                reason = message.reason
            lookup.handle_timeout(peer)
            note = "kademlia: a question"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=reason, note=note))
            return
        records = message.records if isinstance(message, RecordsAre) else ()
        lookup.handle_answer(peer, message.contacts, self._check_records(peer, records, lookup, now))

    def _check_records(
        self, peer: PeerId, records: Iterable[Stored], lookup: Lookup, now: float
    ) -> list[Stored]:
        """Return the records of an answer that are signed, valid, and of this key; blame the peer for
        others."""
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
            self._give_up_request(failed, reason, now)

    def _give_up_request(self, failed: Failed[About], reason: Reason, now: float) -> None:
        """Continue without the answer to a question."""
        peer, about = failed.peer, failed.context
        self.table.note_failure(peer)
        self._out.record(Record(Kind.DROPPED, peer=peer, reason=reason, note=f"kademlia: {about.what}"))
        if about.what == _PING:
            self._pings.pop(peer, None)
        elif about.what == _PLACING:
            self._note_placed(about.number, peer, reason)
        elif about.number in self._lookups:
            self._lookups[about.number][0].handle_timeout(peer)
            self._advance_lookup(about.number, now)

    # The table, kept up.

    def _join(self, now: float) -> None:
        """Look for ourselves through the bootstrap nodes and the saved ones."""
        seeds = (*self.bootstrap, *self._saved.load())
        self._begin_lookup(self.table.id, self._end_join, now, seeds=seeds)

    def _end_join(self, number: int, lookup: Lookup, now: float) -> None:
        """Look for ourselves again later if no other node was up: others may come up.

        The same happens, less and less often, if some were up but no bootstrap node: they and we may be cut
        off from all others.
        """
        self.is_joining = False
        met = dict.fromkeys(each.peer for each in self.table.contacts())
        if met and (not self.bootstrap or any(each.peer in met for each in self.bootstrap)):
            return
        wait = min(self._config.refresh, self._config.rejoin * 2 ** min(16, self._apart))
        self._apart = self._apart + 1 if met else 0
        self._out.set_timer(wait, JoinDue())

    def _note_seen(self, peer: PeerId) -> Contact | None:
        """Enter a peer that is up in the table; return the contact to ping before the peer may take its
        place."""
        contact = self._linked.get(peer)
        if contact is None:
            return None
        seen = self.table.note_seen(contact)
        if len(self.table) >= 2 * self._written:
            self._save_contacts()
        if seen.ping is None or seen.ping.peer in self._pings or seen.ping.peer == peer:
            return None
        return seen.ping

    def _ping_peer(self, contact: Contact | None) -> None:
        if contact is not None:
            self._pings[contact.peer] = None
            self._ask_peer(contact, About(_PING, 0), PingNode(self._requests.next_number()))

    def _save_contacts(self) -> None:
        """Save the contacts; while the table grows, each time that it has doubled."""
        if len(self.table):
            self._saved.save(self.table.contacts())
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
