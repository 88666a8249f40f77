"""Kademlia at one node: its table, what it keeps, what it looks for, what it places.

The node machine gives it links, messages and timers, and gets effects back. What was begun ends in one
`Outcome` of its number, whatever happens.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from random import Random
from typing import TypeAlias

from linnet.core.effects import AfterCommit, Blame, CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Tick
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.ids import NodeId, id_in_bucket
from linnet.overlay.kademlia.known import Known
from linnet.overlay.kademlia.lookup import Lookup
from linnet.overlay.kademlia.messages import (
    FindNode,
    FindRecord,
    KademliaAnswer,
    KademliaMessage,
    KademliaQuestion,
    KeepRecord,
    NodesAre,
    PingNode,
    RecordKept,
    RecordsAre,
)
from linnet.overlay.kademlia.outcomes import NodesFound, Outcome, RecordsFound
from linnet.overlay.kademlia.placing import Placing
from linnet.overlay.kademlia.questions import ASKED, OWNER, About, Lost, Phrase, Questions
from linnet.overlay.kademlia.records import Stored, check_record
from linnet.overlay.kademlia.serving import Serving
from linnet.overlay.kademlia.shelf import Shelf
from linnet.overlay.kademlia.table import RoutingTable
from linnet.trace.records import Kind, Record

PROTOCOL = "kademlia"
REFRESH, REPUBLISH, JOIN = "refresh", "republish", "join"
_LOOKUP, _PLACING, _PING = "lookup", "placing", "ping"

KademliaEffect: TypeAlias = (
    Send[KademliaMessage]
    | AfterCommit[Send[RecordKept]]
    | Hold
    | Release
    | Blame
    | SetTimer[Tick]
    | CancelTimer[Tick]
    | Record
    | Outcome
)


class Kademlia:
    """One node of the hash table over the network."""

    def __init__(self, own: Contact, config: KademliaConfig, cells: Cells, rng: Random) -> None:
        self._own = own
        self._config = config
        self._rng = rng
        self.table = RoutingTable(own.peer, config)
        self.shelf = Shelf(cells, config)
        self._known = Known(cells)
        self._written = 1
        """How many we knew when that was last written down."""
        self._serving = Serving(self.table, self.shelf, config)
        self._questions = Questions(config.patience)
        self._linked: dict[PeerId, Contact] = {}
        """Peers with a link that take part, and where they say that they can be dialled."""
        self._number = 0
        self._lookups: dict[int, Lookup] = {}
        self._placings: dict[int, Placing] = {}
        self._pings: dict[PeerId, None] = {}
        self._bootstrap: tuple[Contact, ...] = ()
        self._apart = 0
        """How often we met others and none of these."""
        self._quiet: dict[int, None] = {}
        """Lookups and placings of our own, of which nobody is told."""
        self._records: dict[tuple[NodeId, bytes], Stored] = {}
        """What we placed, to be placed again."""
        self.is_joining = False
        """Whether this node looks for itself for the first time, and does not know yet who is near."""

    # What can be asked.

    def start(self, bootstrap: Iterable[Contact], now: float) -> list[KademliaEffect]:
        """Come to know those who are near us, by way of these and of those whom we knew before."""
        effects: list[KademliaEffect] = [
            SetTimer(self._config.refresh, Tick(OWNER, REFRESH)),
            SetTimer(self._config.republish, Tick(OWNER, REPUBLISH)),
        ]
        self._bootstrap = tuple(bootstrap)
        self.is_joining = True
        return [*effects, *self._join(now)]

    def find(self, target: NodeId, now: float) -> tuple[int, list[KademliaEffect]]:
        """Who is nearest to this? Ends in `NodesFound` of the number; `Refused` if too much is under way."""
        self._refuse_too_many()
        number = self._begin(target, now)
        return number, self._go_on(number, now)

    def gather(self, key: NodeId, now: float) -> tuple[int, list[KademliaEffect]]:
        """What is kept under this key? Ends in `RecordsFound` of the number."""
        self._refuse_too_many()
        number = self._begin(key, now, wants_records=True)
        return number, self._go_on(number, now)

    def place(self, record: Stored, now: float, again: bool = True) -> tuple[int, list[KademliaEffect]]:
        """Have a record of ours kept, and `again` from time to time until it ends; ends in `Placed`."""
        self._refuse_too_many()
        try:
            check_record(record, now)
        except RemoteError as error:
            raise Refused(error.reason, error.detail) from error
        if not again:
            return self._place(record, now)
        place = (record.key, record.owner)
        if place not in self._records and len(self._records) >= self._config.own:
            raise Refused(Reason.TOO_MANY, f"{self._config.own} records are placed already")
        self._records[place] = record
        return self._place(record, now)

    @property
    def placed(self) -> int:
        """Records of our own that others keep, or are to keep."""
        return len(self._records)

    def withdraw(self, key: NodeId, owner: bytes) -> None:
        """Place this record no more; where it is kept it stays until it ends."""
        self._records.pop((key, owner), None)

    # What happens.

    def on_message(self, peer: PeerId, message: KademliaMessage, now: float) -> list[KademliaEffect]:
        """A peer asks, gives or answers; either way it is there."""
        seen = self._seen(peer)
        if isinstance(message, KademliaQuestion):
            return [*self._serving.on_question(peer, message, now), *seen]
        return [*self._on_answer(peer, message, now), *seen]

    def link_up(self, event: LinkUp, now: float) -> list[KademliaEffect]:
        """A peer is there."""
        if PROTOCOL not in event.hello.protocols:
            return self._lost(event.peer, Reason.UNSUPPORTED, now)
        self._linked[event.peer] = Contact(event.peer, event.hello.listens)
        return [*self._seen(event.peer), *self._questions.link_up(event.peer)]

    def link_gone(self, event: LinkDown | DialFailed, now: float) -> list[KademliaEffect]:
        """A peer is gone, or could not be reached."""
        self._linked.pop(event.peer, None)
        return self._lost(event.peer, event.reason, now)

    def fired(self, tick: Tick, now: float) -> list[KademliaEffect]:
        """A timer of ours has run out."""
        if tick.what == ASKED:
            lost, effects = self._questions.fired(tick)
            return [*effects, *([] if lost is None else self._unanswered(lost, Reason.TIMEOUT, now))]
        if tick.what == REFRESH:
            return self._refresh(now)
        if tick.what == JOIN:
            return self._join(now)
        return self._republish(now)

    # Lookups.

    def _begin(
        self, target: NodeId, now: float, wants_records: bool = False, seeds: Iterable[Contact] = ()
    ) -> int:
        self._number += 1
        self.table.touch(target, now)
        if not len(self.table):
            # All were lost, as where the others were away at once: those of before may be there again.
            seeds = (*seeds, *self._bootstrap, *self._known.load())
        known = (*self.table.nearest(target, self._config.k), *seeds)
        self._lookups[self._number] = Lookup(target, self._own.peer, known, self._config, wants_records)
        return self._number

    def _go_on(self, number: int, now: float) -> list[KademliaEffect]:
        """Ask whoever is next; or tell how it ended."""
        lookup = self._lookups[number]
        effects: list[KademliaEffect] = []
        question = FindRecord if lookup.wants_records else FindNode
        for contact in lookup.due():
            phrase = partial(_about, question, lookup.target)
            effects += self._ask(contact, About(_LOOKUP, number), phrase)
        if lookup.is_over:
            del self._lookups[number]
            effects += self._ended(number, lookup, now)
        return effects

    def _ended(self, number: int, lookup: Lookup, now: float) -> list[KademliaEffect]:
        record = Record(Kind.CONTROL, hops=lookup.hops, events=lookup.asked, note="kademlia: lookup")
        placing = self._placings.get(number)
        if placing is not None:
            return [record, *self._hand_out(placing, lookup.found, now)]
        if number in self._quiet:
            del self._quiet[number]
            return [record, *self._joined(lookup)]
        if not lookup.wants_records:
            return [record, NodesFound(number, lookup.found, lookup.hops, lookup.asked)]
        found = dict.fromkeys(self.shelf.find(lookup.target, now)) | lookup.records
        newest = tuple(sorted(found, key=lambda each: (-each.version, each.owner)))
        return [record, RecordsFound(number, newest, lookup.hops, lookup.asked, lookup.answered)]

    # Placing.

    def _place(self, record: Stored, now: float, quiet: bool = False) -> tuple[int, list[KademliaEffect]]:
        number = self._begin(record.key, now)
        self._placings[number] = Placing(number, record)
        if quiet:
            self._quiet[number] = None
        return number, self._go_on(number, now)

    def _hand_out(self, placing: Placing, nearest: tuple[Contact, ...], now: float) -> list[KademliaEffect]:
        effects: list[KademliaEffect] = []
        about, record = About(_PLACING, placing.number), placing.record
        for contact in placing.hand_to(nearest):
            effects += self._ask(contact, about, lambda n: KeepRecord(n, record))
        return [*effects, *self._settled(placing)]

    def _settled(self, placing: Placing) -> list[KademliaEffect]:
        outcome = placing.outcome
        if outcome is None:
            return []
        del self._placings[placing.number]
        refused: list[KademliaEffect] = [
            Record(Kind.REJECTED, peer=peer, reason=reason, note="kademlia: a record of ours")
            for peer, reason in outcome.refused
        ]
        if placing.number in self._quiet:
            del self._quiet[placing.number]
            return refused
        return [*refused, outcome]

    # Answers, and their absence.

    def _ask(self, contact: Contact, about: About, phrase: Phrase) -> list[KademliaEffect]:
        return [*self._questions.ask(contact, about, phrase, contact.peer in self._linked)]

    def _on_answer(self, peer: PeerId, message: KademliaAnswer, now: float) -> list[KademliaEffect]:
        about, closing = self._questions.answered(peer, message.request)
        if about is None:
            return [Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note="an answer nobody waits for")]
        effects: list[KademliaEffect] = [*closing]
        if about.what == _PING:
            self._pings.pop(peer, None)
            return effects
        if about.what == _PLACING:
            reason = message.reason if isinstance(message, RecordKept) else Reason.PROTOCOL_ERROR
            return [*effects, *self._settle(about.number, peer, reason)]
        lookup = self._lookups.get(about.number)
        if lookup is None:
            return effects
        if not isinstance(message, NodesAre | RecordsAre) or message.reason is not None:
            reason = Reason.PROTOCOL_ERROR
            if isinstance(message, NodesAre | RecordsAre | RecordKept) and message.reason is not None:
                reason = message.reason
            lookup.silent(peer)
            effects.append(Record(Kind.REJECTED, peer=peer, reason=reason, note="kademlia: a question"))
            return [*effects, *self._go_on(about.number, now)]
        records, faults = self._sound(peer, message, lookup, now)
        lookup.heard(peer, message.contacts, records)
        return [*effects, *faults, *self._go_on(about.number, now)]

    def _sound(
        self, peer: PeerId, message: NodesAre | RecordsAre, lookup: Lookup, now: float
    ) -> tuple[list[Stored], list[KademliaEffect]]:
        """The records of an answer that are signed, good, and of this key; and what is wrong with others."""
        sound: list[Stored] = []
        faults: list[KademliaEffect] = []
        for record in message.records if isinstance(message, RecordsAre) else ():
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
            faults.append(Record(Kind.REJECTED, peer=peer, reason=reason, note="kademlia: a record"))
            if reason is not Reason.STALE:
                faults.append(Blame(peer, reason))
        return sound, faults

    def _lost(self, peer: PeerId, reason: Reason, now: float) -> list[KademliaEffect]:
        lost, closing = self._questions.lost(peer)
        effects: list[KademliaEffect] = [*closing]
        for each in lost:
            effects += self._unanswered(each, reason, now)
        return effects

    def _unanswered(self, lost: Lost, reason: Reason, now: float) -> list[KademliaEffect]:
        peer, about = lost
        self.table.failed(peer)
        note = f"kademlia: {about.what}"
        effects: list[KademliaEffect] = [Record(Kind.DROPPED, peer=peer, reason=reason, note=note)]
        if about.what == _PING:
            self._pings.pop(peer, None)
        elif about.what == _PLACING:
            effects += self._settle(about.number, peer, reason)
        elif (lookup := self._lookups.get(about.number)) is not None:
            lookup.silent(peer)
            effects += self._go_on(about.number, now)
        return effects

    def _settle(self, number: int, peer: PeerId, reason: Reason | None) -> list[KademliaEffect]:
        placing = self._placings.get(number)
        if placing is None:
            return []
        placing.settle(peer, reason)
        return self._settled(placing)

    # The table, kept up.

    def _join(self, now: float) -> list[KademliaEffect]:
        seeds = (*self._bootstrap, *self._known.load())
        number = self._begin(self.table.id, now, seeds=seeds)
        self._quiet[number] = None
        return self._go_on(number, now)

    def _joined(self, lookup: Lookup) -> list[KademliaEffect]:
        """We looked for ourselves: if nobody was there, we try again, since the others may come up later.

        So we do, less and less often, if some were there and none of our configuration: they and we may be
        cut off from all others.
        """
        if lookup.target != self.table.id:
            return []
        self.is_joining = False
        met = dict.fromkeys(each.peer for each in self.table.contacts())
        if met and (not self._bootstrap or any(each.peer in met for each in self._bootstrap)):
            return []
        wait = min(self._config.refresh, self._config.rejoin * 2 ** min(16, self._apart))
        self._apart = self._apart + 1 if met else 0
        return [SetTimer(wait, Tick(OWNER, JOIN))]

    def _seen(self, peer: PeerId) -> list[KademliaEffect]:
        contact = self._linked.get(peer)
        if contact is None:
            return []
        seen = self.table.seen(contact)
        if len(self.table) >= 2 * self._written:
            self._write_down()
        if seen.ping is None or seen.ping.peer in self._pings or seen.ping.peer == peer:
            return []
        self._pings[seen.ping.peer] = None
        return self._ask(seen.ping, About(_PING, 0), PingNode)

    def _write_down(self) -> None:
        """Whom we know; while the table grows, each time that it has doubled."""
        if len(self.table):
            self._known.save(self.table.contacts())
        self._written = max(1, len(self.table))

    def _refresh(self, now: float) -> list[KademliaEffect]:
        effects: list[KademliaEffect] = [SetTimer(self._config.refresh, Tick(OWNER, REFRESH))]
        self._write_down()
        if swept := self.shelf.sweep(now):
            note = "kademlia: records of others"
            effects.append(Record(Kind.EXPIRED, events=swept, reason=Reason.RETENTION, note=note))
        for index in self.table.idle(now - self._config.refresh):
            if len(self._lookups) >= self._config.lookups:
                break
            number = self._begin(id_in_bucket(self.table.id, index, self._rng), now)
            self._quiet[number] = None
            effects += self._go_on(number, now)
        return effects

    def _republish(self, now: float) -> list[KademliaEffect]:
        effects: list[KademliaEffect] = [SetTimer(self._config.republish, Tick(OWNER, REPUBLISH))]
        for place, record in list(self._records.items()):
            if record.expires <= now:
                del self._records[place]
            elif len(self._lookups) < self._config.lookups:
                effects += self._place(record, now, quiet=True)[1]
            else:
                note = "kademlia: a record is not placed again this time"
                effects.append(Record(Kind.DROPPED, reason=Reason.QUEUE_FULL, note=note))
        return effects

    def _refuse_too_many(self) -> None:
        if len(self._lookups) >= self._config.lookups:
            raise Refused(Reason.QUEUE_FULL, f"{self._config.lookups} lookups are under way already")


def _about(question: type[FindNode] | type[FindRecord], target: NodeId, number: int) -> KademliaQuestion:
    return question(number, target)
