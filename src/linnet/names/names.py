"""The names of a node: its zone, its petnames, what it keeps for others, and what it looks up.

Everything that it promises is written down first. Where the node takes part in a hash table over the network,
names ask for what is kept there (`SeekRecords`) and have their records kept there (`PlaceInNetwork`).
"""

from __future__ import annotations

from linnet.core.errors import Refused
from linnet.core.ids import PeerId
from linnet.core.inputs import LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_command, on_input, on_message, on_notice, on_timer
from linnet.names.address import Address, read_address
from linnet.names.asking import AskDue, Asking, Gathered
from linnet.names.block import Block
from linnet.names.commands import (
    ExportNames,
    Fault,
    ListNames,
    ListPetnames,
    NamesAre,
    NamesFile,
    NameStatus,
    NotResolved,
    PetnamesAre,
    Published,
    PublishName,
    RemoveName,
    RemovePetname,
    ResolveName,
    SetPetname,
    Step,
    TakeInNames,
    TakenIn,
    Via,
)
from linnet.names.config import NamesConfig
from linnet.names.messages import AskRecord, PutAnswer, PutRecord, RecordIs
from linnet.names.network_records import from_network, network_key, to_network
from linnet.names.petnames import Petnames
from linnet.names.placing import Placing, PutDue
from linnet.names.records import DelegationRecord, PlaceRecord, Records, RecordSet, ZoneRecord, place_of
from linnet.names.remembered import Remembered
from linnet.names.resolver import Answer, Secret, Walk
from linnet.names.serving import Serving
from linnet.names.store import Shelf, records_file
from linnet.names.zone import OwnName, Zone
from linnet.overlay.kademlia.outcomes import PlaceInNetwork, RecordsFound, SeekRecords
from linnet.trace.records import Kind, Record

PROTOCOL = "names"
PURPOSE = "names"
FILE_BYTES = 2 * 1024 * 1024
"""Bytes of a file that is taken in at once: each of its records costs two signature checks."""


class RepublishDue(Timer, frozen=True):
    """Our records are to be signed and handed out again."""


class _Pending:
    """A walk that waits for a record: at peers, and in the network if this node takes part in one."""

    def __init__(self, request: int, walk: Walk, waits: int) -> None:
        self.request = request
        self.walk = walk
        self.waits = waits
        self.blocks: dict[Block, None] = {}
        self.answered = 0


class Names(Part):
    """Everything about names at one node."""

    def __init__(self, context: Context, config: NamesConfig, out: Outbox, in_network: bool = False) -> None:
        """With `in_network` records are also placed in a hash table over the network, and sought there."""
        self._in_network = in_network
        cells = context.store.cells
        self._context = context
        self._config = config
        self._out = out
        self.zone = Zone(context.key, context.card, cells, context.entropy, config.own)
        self.petnames = Petnames(cells, config.petnames)
        self.shelf = Shelf(cells, config)
        self._remembered = Remembered(cells, config.remembered)
        self._serving = Serving(self.shelf, config, out)
        self._asking = Asking(config, out)
        self._placing = Placing(config.patience, out)
        self._stores = {contact.peer: contact for contact in config.stores}
        self._peers: dict[PeerId, bool] = {}
        """Peers with a link that speak of names, and whether each is a relay."""
        self._walks: dict[int, _Pending] = {}
        """By the number of the question that they wait for."""

    def start(self, now: float) -> None:
        """Keep links to our stores, and hand out our records from time to time."""
        for contact in self._stores.values():
            self._out.hold(contact.peer, contact.hints, PURPOSE)
        self._republish(now)

    # What happens.

    @on_message(PutRecord)
    def handle_put(self, peer: PeerId, message: PutRecord, now: float) -> None:
        """Keep a block that a peer gives."""
        self._serving.handle_put(peer, message, now)

    @on_message(AskRecord)
    def handle_question(self, peer: PeerId, message: AskRecord, now: float) -> None:
        """Tell a peer what is kept here."""
        self._serving.handle_question(peer, message, now)

    @on_message(PutAnswer)
    def handle_put_answer(self, peer: PeerId, message: PutAnswer, now: float) -> None:
        """Note whether a peer keeps a block of ours."""
        self._placing.handle_answer(peer, message)

    @on_message(RecordIs)
    def handle_record(self, peer: PeerId, message: RecordIs, now: float) -> None:
        """Take what a peer was asked for."""
        self._use_gathered(self._asking.handle_answer(peer, message), now)

    @on_timer(AskDue)
    def end_question(self, timer: AskDue, now: float) -> None:
        """Go on without those who have not answered."""
        self._use_gathered(self._asking.handle_timeout(timer), now)

    @on_timer(PutDue)
    def end_put(self, timer: PutDue, now: float) -> None:
        """Note who did not say whether it keeps a block of ours."""
        self._placing.handle_timeout(timer)

    @on_timer(RepublishDue)
    def republish(self, timer: RepublishDue, now: float) -> None:
        """Hand out our records again."""
        self._republish(now)

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Give a peer our records, if it is to keep them."""
        if PROTOCOL not in event.hello.protocols or event.peer == self._context.peer:
            return
        self._peers[event.peer] = "relay" in event.hello.roles
        if event.peer not in self._stores:
            return
        for own in self.zone.names():
            if own.block.expires > now:
                self._placing.hand_block(own.block, (event.peer,))

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Drop a peer, and go on without its answers."""
        self._peers.pop(event.peer, None)
        self._placing.handle_link_down(event.peer, event.reason)
        for gathered in self._asking.handle_link_down(event.peer):
            self._use_gathered(gathered, now)

    @on_notice(RecordsFound)
    def handle_records_found(self, notice: RecordsFound, now: float) -> None:
        """Take what the network keeps under the key that a walk wants."""
        blocks, others = from_network(notice.records, self._walks[notice.number].walk.wanted)
        self._use_gathered(Gathered(notice.number, blocks, notice.answered), now)
        if others:
            note = "records of the network that are none of names"
            self._out.record(Record(Kind.REJECTED, events=others, reason=Reason.MALFORMED, note=note))

    # Publishing.

    @on_command(PublishName)
    def publish_name(self, request: int, command: PublishName, now: float) -> None:
        """Sign what a label leads to, and hand it out."""
        lifetime = self._config.lifetime if command.lifetime is None else command.lifetime
        records = _records(command)
        if not records and lifetime > 0:
            raise Refused(Reason.NOT_ALLOWED, "a label leads to a place or to a zone: name one")
        own = self.zone.publish(command.label, records, lifetime, now, command.renew, command.stretched)
        self._say(request, own, now)

    @on_command(RemoveName)
    def remove_name(self, request: int, command: RemoveName, now: float) -> None:
        """Take a label back, and tell those who keep it."""
        self._say(request, self.zone.remove(command.label, now, command.stretched), now)

    @on_command(ListNames)
    def list_names(self, request: int, command: ListNames, now: float) -> None:
        """Tell which labels our zone has."""
        self._out.reply(request, NamesAre(self.zone.key, tuple(map(self._name_status, self.zone.names()))))

    @on_command(ExportNames)
    def export_names(self, request: int, command: ExportNames, now: float) -> None:
        """Write our records into a file."""
        good = [each.block for each in self.zone.names() if each.block.expires > now]
        self._out.reply(request, NamesFile(len(good), records_file(good, now)))

    @on_command(TakeInNames)
    def take_in_names(self, request: int, command: TakeInNames, now: float) -> None:
        """Keep the records of a file."""
        size = len(command.data)
        if size > FILE_BYTES:
            raise Refused(Reason.TOO_LARGE, f"{size} bytes, at most {FILE_BYTES} are taken in at once")
        outcomes = self.shelf.take_in(command.data, now)
        refused = tuple(reason for reason in outcomes if reason is not None)
        for reason in refused:
            self._out.record(Record(Kind.REJECTED, reason=reason, note="a record of a file"))
        self._out.committed.reply(request, TakenIn(len(outcomes) - len(refused), refused))

    def _say(self, request: int, own: OwnName, now: float) -> None:
        handed = self._nearest(self._config.copies)
        block = own.block
        self._hand(own, now)
        told = Published(own.label, block.version, block.expires, own.is_removed, handed)
        self._out.committed.reply(request, told)

    def _hand(self, own: OwnName, now: float) -> None:
        """Keep our own block as others do, and give it to peers."""
        refusal = self.shelf.put(own.block, None, now)
        if refusal is not None:
            note = "a record of ours, at ourselves"
            self._out.record(Record(Kind.REJECTED, reason=refusal, note=note))
        if self._in_network:
            self._out.notify(PlaceInNetwork(to_network(own.block, self._context.key)))
        self._placing.hand_block(own.block, self._nearest(self._config.copies))

    def _republish(self, now: float) -> None:
        """Sign again what is to go on, forget what is over, and hand out the rest."""
        self._out.set_timer(self._config.republish, RepublishDue())
        self.zone.renewals(now)
        for gone in self.zone.forget(now):
            self._placing.forget(gone.block.lookup)
            self._out.record(Record(Kind.EXPIRED, reason=Reason.RETENTION, note="a label of our zone"))
        if swept := self.shelf.sweep(now):
            note = "records of others"
            self._out.record(Record(Kind.EXPIRED, events=swept, reason=Reason.RETENTION, note=note))
        for own in self.zone.names():
            if own.block.expires > now:
                self._hand(own, now)

    def _name_status(self, own: OwnName) -> NameStatus:
        place = next((each for each in own.records if isinstance(each, PlaceRecord)), None)
        zone = next((each.zone for each in own.records if isinstance(each, DelegationRecord)), None)
        return NameStatus(
            own.label,
            own.protected,
            None if place is None else place.place,
            () if place is None else place.contacts,
            zone,
            own.block.version,
            own.block.expires,
            own.renew,
            own.is_removed,
            self._placing.told(own.block),
        )

    # Petnames.

    @on_command(SetPetname)
    def set_petname(self, request: int, command: SetPetname, now: float) -> None:
        """Give somebody a name of our own."""
        self.petnames.set(command.name, command.zone)
        self._out.committed.reply(request, PetnamesAre(self.petnames.known()))

    @on_command(RemovePetname)
    def remove_petname(self, request: int, command: RemovePetname, now: float) -> None:
        """Forget a name of our own for somebody."""
        self.petnames.remove(command.name)
        self._out.committed.reply(request, PetnamesAre(self.petnames.known()))

    @on_command(ListPetnames)
    def list_petnames(self, request: int, command: ListPetnames, now: float) -> None:
        """Tell our own names for others."""
        self._out.reply(request, PetnamesAre(self.petnames.known()))

    # Resolving.

    @on_command(ResolveName)
    def resolve_name(self, request: int, command: ResolveName, now: float) -> None:
        """Follow an address to a place; answered when the walk has ended."""
        if len(self._walks) >= self._config.resolving:
            raise Refused(
                Reason.QUEUE_FULL, f"{self._config.resolving} addresses are being looked up already"
            )
        address = read_address(command.address)
        start = self._start_of(address, command.protected)
        if start is None:
            detail = f"you know nobody by the name {address.name!r}: give it to somebody's key first"
            missing = NotResolved(str(address), Fault.UNKNOWN, address.name or "", None, (), detail)
            self._out.reply(request, missing)
            return
        secret = Secret(command.protected, command.stretched)
        walk = Walk(address, start, self._config.depth, secret, self._context.card_check, self._is_revoked)
        self._go_on(request, walk, now)

    def _start_of(self, address: Address, protected: bool) -> Step | None:
        """Whom the user means; what is no petname may be a label of our own zone."""
        if address.key is not None:
            return Step(Via.KEY, "", None, address.key, None)
        name = address.name or ""
        zone = self.petnames.find(name)
        if zone is not None:
            return Step(Via.PETNAME, name, None, zone, None)
        is_own = self.zone.says(name) or (protected and not address.labels and self.zone.says(name, True))
        return Step(Via.OWN, "", None, self.zone.key, None) if is_own else None

    def _go_on(self, request: int, walk: Walk, now: float) -> None:
        """Look for the record that a walk wants, or tell how it ended."""
        if walk.outcome is not None:
            self._out.committed.reply(request, walk.outcome)
            return
        number = self._asking.next_number()
        self._walks[number] = _Pending(request, walk, 1 + self._in_network)
        if self._in_network:
            self._out.notify(SeekRecords(number, network_key(walk.wanted)))
        peers = self._nearest(self._config.asks)
        self._use_gathered(self._asking.ask_peers(number, walk.wanted, peers), now)

    def _use_gathered(self, gathered: Gathered | None, now: float) -> None:
        """Give what was gathered to the walk that waits for it; None: others are still to answer."""
        if gathered is None:
            return
        pending = self._walks[gathered.number]
        pending.waits -= 1
        pending.blocks |= dict.fromkeys(gathered.blocks)
        pending.answered += gathered.answered
        if pending.waits:
            return
        del self._walks[gathered.number]
        request, walk = pending.request, pending.walk
        here = self.shelf.find(walk.wanted)
        remembered = self._remembered.find(walk.wanted)
        walk.answer(Answer((*here, *pending.blocks), remembered, pending.answered > 0), now)
        self._record_finds(walk)
        self._go_on(request, walk, now)

    def _record_finds(self, walk: Walk) -> None:
        """Record what was wrong with an answer, and remember what was right."""
        if walk.forged:
            note = "records under a name that its zone did not sign"
            forged = len(walk.forged)
            self._out.record(Record(Kind.REJECTED, events=forged, reason=Reason.BAD_SIGNATURE, note=note))
        if walk.older:
            note = "records of a zone that are older than what it said before"
            older = len(walk.older)
            self._out.record(Record(Kind.REJECTED, events=older, reason=Reason.STALE, note=note))
        if walk.learned is not None and (evicted := self._remembered.learn(walk.learned)):
            note = "resolved records"
            self._out.record(Record(Kind.EVICTED, events=evicted, reason=Reason.QUOTA, note=note))

    def _is_revoked(self, said: RecordSet) -> bool:
        return self._context.cards.revocation_of(said.zone, said.device) is not None

    def _nearest(self, most: int) -> tuple[PeerId, ...]:
        """Peers that can be told something now: first our stores, then relays, which are there for long."""
        stores = [peer for peer in self._stores if peer in self._peers]
        others = [peer for peer in self._peers if peer not in self._stores]
        others.sort(key=lambda peer: not self._peers[peer])
        return tuple((*stores, *others)[:most])


def _records(command: PublishName) -> Records:
    records: list[ZoneRecord] = []
    if command.place is not None:
        records.append(place_of(command.place, command.contacts))
    if command.zone is not None:
        records.append(DelegationRecord(command.zone))
    return tuple(records)
