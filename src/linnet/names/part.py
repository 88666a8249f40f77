"""Names at one node: its zone, its petnames, the blocks that it keeps for others, and the addresses it
resolves.

Everything that it promises is stored first. If the node takes part in a distributed hash table, names also
look up records there (`SeekRecords`) and store their own there (`PlaceInNetwork`).
"""

from __future__ import annotations

from linnet.core.errors import Refused, StoreError
from linnet.core.ids import AuthorId, PeerId
from linnet.core.inputs import LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_command, on_input, on_message, on_notice, on_timer
from linnet.names.address import Address, read_address, read_name
from linnet.names.block_store import (
    BlockShelf,
    ResolvedCache,
    from_network,
    make_file,
    network_key,
    to_network,
)
from linnet.names.commands import (
    ExportNames,
    Fault,
    ListNames,
    ListPetnames,
    NamesAre,
    NamesFile,
    NameStatus,
    NotResolved,
    Petname,
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
from linnet.names.record_exchange import AskDue, BlockPlacements, BlockServer, Gathered, PutDue, RecordQueries
from linnet.names.records import (
    Block,
    DelegationRecord,
    PlaceRecord,
    Records,
    RecordSet,
    ZoneRecord,
    make_place,
)
from linnet.names.resolver import Answer, Secret, Walk
from linnet.names.zone import OwnName, Zone
from linnet.overlay.kademlia.value_records import PlaceInNetwork, RecordsFound, SeekRecords
from linnet.trace.records import Kind, Record

SPACE = "names petname"
_KEY_BYTES = 32


class Petnames:
    """The stored zone of each petname. To trust a petname is to trust the user, who typed the key."""

    def __init__(self, cells: Cells, most: int) -> None:
        self._cells = cells
        self._most = most
        self._zones: dict[str, AuthorId] = {}
        for key, value in cells.scan(SPACE):
            if len(value) != _KEY_BYTES:
                raise StoreError("a petname in the store has no key")
            self._zones[key.decode()] = AuthorId(value)

    def set_name(self, text: str, zone: AuthorId) -> str:
        """Give a zone a petname; `BadText` if it is no name, `Refused` if it is taken or one too many."""
        name = read_name(text)
        known = self._zones.get(name)
        if known is not None and known != zone:
            raise Refused(Reason.IN_USE, f"{name!r} is somebody else already; remove that name first")
        if known is None and len(self._zones) >= self._most:
            raise Refused(Reason.TOO_MANY, f"{self._most} people have a name here already")
        self._zones[name] = zone
        self._cells.put(SPACE, name.encode(), zone)
        return name

    def remove_name(self, text: str) -> None:
        """Remove a petname; `Refused` if there is none."""
        name = read_name(text)
        if self._zones.pop(name, None) is None:
            raise Refused(Reason.UNKNOWN, f"nobody is known by the name {name!r}")
        self._cells.delete(SPACE, name.encode())

    def find_zone(self, name: str) -> AuthorId | None:
        """Return the zone with this petname; None if there is none."""
        return self._zones.get(name)

    @property
    def names(self) -> tuple[Petname, ...]:
        """All petnames with their people, in alphabetical order."""
        return tuple(Petname(name, person) for name, person in sorted(self._zones.items()))


PROTOCOL = "names"
PURPOSE = "names"
FILE_BYTES = 2 * 1024 * 1024
"""The most bytes of a file that is taken in at once: each of its records costs two signature checks."""


class RepublishDue(Timer, frozen=True):
    """Timer: sign our records and hand them out again."""


class _Pending:
    """A walk that waits for a record: at peers, and in the network if this node takes part in one."""

    def __init__(self, request: int, walk: Walk, waits: int) -> None:
        self.request = request
        self.walk = walk
        self.waits = waits
        self.blocks: dict[Block, None] = {}
        self.answered = 0


class Names(Part):
    """Names at one node: handles their commands and messages."""

    def __init__(self, context: Context, config: NamesConfig, out: Outbox, in_network: bool = False) -> None:
        """With `in_network`, records are also stored in a distributed hash table, and sought there."""
        self._in_network = in_network
        cells = context.store.cells
        self._context = context
        self._config = config
        self._out = out
        self.zone = Zone(context.key, context.card, cells, context.entropy, config.own)
        self.petnames = Petnames(cells, config.petnames)
        self.shelf = BlockShelf(cells, config)
        self._cache = ResolvedCache(cells, config.remembered)
        self._server = BlockServer(self.shelf, config, out)
        self._queries = RecordQueries(config, out)
        self._placements = BlockPlacements(config.patience, out)
        self._stores = {contact.peer: contact for contact in config.stores}
        self._peers: dict[PeerId, bool] = {}
        """The linked peers that support names, and whether each is a relay."""
        self._walks: dict[int, _Pending] = {}
        """The open walks, by the number of the query that they wait for."""

    def start(self, now: float) -> None:
        """Keep links to our stores, and hand out our records from time to time."""
        for contact in self._stores.values():
            self._out.hold(contact.peer, contact.hints, PURPOSE)
        self._republish(now)

    # Messages, timers and links.

    @on_message(PutRecord)
    def handle_put(self, peer: PeerId, message: PutRecord, now: float) -> None:
        """Store a block that a peer hands us, or refuse it."""
        self._server.handle_put(peer, message, now)

    @on_message(AskRecord)
    def handle_question(self, peer: PeerId, message: AskRecord, now: float) -> None:
        """Send a peer the blocks that are stored here under its key."""
        self._server.handle_question(peer, message, now)

    @on_message(PutAnswer)
    def handle_put_answer(self, peer: PeerId, message: PutAnswer, now: float) -> None:
        """Note whether a peer keeps a block of ours."""
        self._placements.handle_answer(peer, message)

    @on_message(RecordIs)
    def handle_record(self, peer: PeerId, message: RecordIs, now: float) -> None:
        """Take in a peer's answer to a query."""
        self._use_gathered(self._queries.handle_answer(peer, message), now)

    @on_timer(AskDue)
    def end_question(self, timer: AskDue, now: float) -> None:
        """Go on without the peers that have not answered."""
        self._use_gathered(self._queries.handle_timeout(timer), now)

    @on_timer(PutDue)
    def end_put(self, timer: PutDue, now: float) -> None:
        """Note that a peer did not say in time whether it keeps a block of ours."""
        self._placements.handle_timeout(timer)

    @on_timer(RepublishDue)
    def republish(self, timer: RepublishDue, now: float) -> None:
        """Hand out our records again."""
        self._republish(now)

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Hand our records to a newly linked peer, if it is one of our stores."""
        if PROTOCOL not in event.hello.protocols or event.peer == self._context.peer:
            return
        self._peers[event.peer] = "relay" in event.hello.roles
        if event.peer not in self._stores:
            return
        for own in self.zone.names():
            if own.block.expires > now:
                self._placements.hand_block(own.block, (event.peer,))

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Drop a peer, and go on without its answers."""
        self._peers.pop(event.peer, None)
        self._placements.handle_link_down(event.peer, event.reason)
        for gathered in self._queries.handle_link_down(event.peer):
            self._use_gathered(gathered, now)

    @on_notice(RecordsFound)
    def handle_records_found(self, notice: RecordsFound, now: float) -> None:
        """Take in the records that the network stores under the key that a walk wants."""
        blocks, others = from_network(notice.records, self._walks[notice.number].walk.lookup)
        self._use_gathered(Gathered(notice.number, blocks, notice.answered), now)
        if others:
            note = "records of the network that are none of names"
            self._out.record(Record(Kind.REJECTED, events=others, reason=Reason.MALFORMED, note=note))

    # Publishing.

    @on_command(PublishName)
    def publish_name(self, request: int, command: PublishName, now: float) -> None:
        """Sign the records of a label, and hand them out."""
        lifetime = self._config.lifetime if command.lifetime is None else command.lifetime
        records = _records_of(command)
        if not records and lifetime > 0:
            raise Refused(Reason.NOT_ALLOWED, "a label leads to a place or to a zone: name one")
        own = self.zone.publish(command.label, records, lifetime, now, command.renew, command.stretched)
        self._publish_block(request, own, now)

    @on_command(RemoveName)
    def remove_name(self, request: int, command: RemoveName, now: float) -> None:
        """Remove a label, and hand the removal to peers."""
        self._publish_block(request, self.zone.remove(command.label, now, command.stretched), now)

    @on_command(ListNames)
    def list_names(self, request: int, command: ListNames, now: float) -> None:
        """Reply with the labels of our zone."""
        self._out.reply(request, NamesAre(self.zone.key, tuple(map(self._name_status, self.zone.names()))))

    @on_command(ExportNames)
    def export_names(self, request: int, command: ExportNames, now: float) -> None:
        """Reply with our records as a file."""
        good = [each.block for each in self.zone.names() if each.block.expires > now]
        self._out.reply(request, NamesFile(len(good), make_file(good, now)))

    @on_command(TakeInNames)
    def take_in_names(self, request: int, command: TakeInNames, now: float) -> None:
        """Store the records of a file."""
        size = len(command.data)
        if size > FILE_BYTES:
            raise Refused(Reason.TOO_LARGE, f"{size} bytes, at most {FILE_BYTES} are taken in at once")
        outcomes = self.shelf.take_file(command.data, now)
        refused = tuple(reason for reason in outcomes if reason is not None)
        for reason in refused:
            self._out.record(Record(Kind.REJECTED, reason=reason, note="a record of a file"))
        self._out.committed.reply(request, TakenIn(len(outcomes) - len(refused), refused))

    def _publish_block(self, request: int, own: OwnName, now: float) -> None:
        handed = self._hand_out(own, now)
        block = own.block
        published = Published(own.label, block.version, block.expires, own.is_removed, handed)
        self._out.committed.reply(request, published)

    def _hand_out(self, own: OwnName, now: float) -> tuple[PeerId, ...]:
        """Store our own block as others do, and hand it to peers; return these peers."""
        refusal = self.shelf.put(own.block, None, now)
        if refusal is not None:
            note = "a record of ours, at ourselves"
            self._out.record(Record(Kind.REJECTED, reason=refusal, note=note))
        if self._in_network:
            self._out.notify(PlaceInNetwork(to_network(own.block, self._context.key)))
        peers = self._choose_peers(self._config.copies)
        self._placements.hand_block(own.block, peers)
        return peers

    def _republish(self, now: float) -> None:
        """Sign due records again, forget ended ones, and hand out all that are valid."""
        self._out.set_timer(self._config.republish, RepublishDue())
        self.zone.renew_due(now)
        for gone in self.zone.forget_ended(now):
            self._placements.forget_lookup(gone.block.lookup)
            self._out.record(Record(Kind.EXPIRED, reason=Reason.RETENTION, note="a label of our zone"))
        if swept := self.shelf.sweep(now):
            note = "records of others"
            self._out.record(Record(Kind.EXPIRED, events=swept, reason=Reason.RETENTION, note=note))
        for own in self.zone.names():
            if own.block.expires > now:
                self._hand_out(own, now)

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
            self._placements.answers(own.block),
        )

    # Petnames.

    @on_command(SetPetname)
    def set_petname(self, request: int, command: SetPetname, now: float) -> None:
        """Give a person a petname."""
        self.petnames.set_name(command.name, command.person)
        self._out.committed.reply(request, PetnamesAre(self.petnames.names))

    @on_command(RemovePetname)
    def remove_petname(self, request: int, command: RemovePetname, now: float) -> None:
        """Remove a petname."""
        self.petnames.remove_name(command.name)
        self._out.committed.reply(request, PetnamesAre(self.petnames.names))

    @on_command(ListPetnames)
    def list_petnames(self, request: int, command: ListPetnames, now: float) -> None:
        """Reply with all petnames."""
        self._out.reply(request, PetnamesAre(self.petnames.names))

    # Resolving.

    @on_command(ResolveName)
    def resolve_name(self, request: int, command: ResolveName, now: float) -> None:
        """Follow an address to a place; reply when the walk has ended."""
        if len(self._walks) >= self._config.resolving:
            raise Refused(
                Reason.QUEUE_FULL, f"{self._config.resolving} addresses are being looked up already"
            )
        address = read_address(command.address)
        start = self._find_start(address, command.protected)
        if start is None:
            detail = f"you know nobody by the name {address.name!r}: give it to somebody's key first"
            missing = NotResolved(str(address), Fault.UNKNOWN, address.name or "", None, (), detail)
            self._out.reply(request, missing)
            return
        secret = Secret(command.protected, command.stretched)
        walk = Walk(address, start, self._config.depth, secret, self._context.card_check, self._is_revoked)
        self._advance_walk(request, walk, now)

    def _find_start(self, address: Address, protected: bool) -> Step | None:
        """Return the zone to begin at, or None; a name that is no petname may be a label of our own zone."""
        if address.key is not None:
            return Step(Via.KEY, "", None, address.key, None)
        name = address.name or ""
        zone = self.petnames.find_zone(name)
        if zone is not None:
            return Step(Via.PETNAME, name, None, zone, None)
        has_label = self.zone.has_label
        is_own = has_label(name) or (protected and not address.labels and has_label(name, True))
        return Step(Via.OWN, "", None, self.zone.key, None) if is_own else None

    def _advance_walk(self, request: int, walk: Walk, now: float) -> None:
        """Look for the record that a walk wants, or reply with its outcome."""
        if walk.outcome is not None:
            self._out.committed.reply(request, walk.outcome)
            return
        number = self._queries.next_number()
        self._walks[number] = _Pending(request, walk, 1 + self._in_network)
        if self._in_network:
            self._out.notify(SeekRecords(number, network_key(walk.lookup)))
        peers = self._choose_peers(self._config.asks)
        self._use_gathered(self._queries.ask_peers(number, walk.lookup, peers), now)

    def _use_gathered(self, gathered: Gathered | None, now: float) -> None:
        """Give gathered blocks to the walk that waits for them; None: other answers are still due."""
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
        here = self.shelf.find(walk.lookup)
        answer = Answer((*here, *pending.blocks), self._cache.find(walk.lookup), pending.answered > 0)
        walk.handle_answer(answer, now)
        self._record_finds(walk)
        self._advance_walk(request, walk, now)

    def _record_finds(self, walk: Walk) -> None:
        """Record the wrong blocks of an answer, and remember the right one."""
        if walk.forged:
            note = "records under a name that its zone did not sign"
            forged = len(walk.forged)
            self._out.record(Record(Kind.REJECTED, events=forged, reason=Reason.BAD_SIGNATURE, note=note))
        if walk.older:
            note = "records of a zone that are older than what it said before"
            older = len(walk.older)
            self._out.record(Record(Kind.REJECTED, events=older, reason=Reason.STALE, note=note))
        if walk.learned is not None and (evicted := self._cache.put(walk.learned)):
            note = "resolved records"
            self._out.record(Record(Kind.EVICTED, events=evicted, reason=Reason.QUOTA, note=note))

    def _is_revoked(self, said: RecordSet) -> bool:
        return self._context.cards.revocation_of(said.zone, said.device) is not None

    def _choose_peers(self, most: int) -> tuple[PeerId, ...]:
        """Choose linked peers: first our stores, then relays, which stay online for long, then others."""
        stores = [peer for peer in self._stores if peer in self._peers]
        others = [peer for peer in self._peers if peer not in self._stores]
        others.sort(key=lambda peer: not self._peers[peer])
        return tuple((*stores, *others)[:most])


def _records_of(command: PublishName) -> Records:
    records: list[ZoneRecord] = []
    if command.place is not None:
        records.append(make_place(command.place, command.contacts))
    if command.zone is not None:
        records.append(DelegationRecord(command.zone))
    return tuple(records)
