"""The exchange of records with peers: queries for records, placements of our blocks, and the serving side."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from linnet.core.allowances import Allowances
from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.names.block_store import BlockShelf
from linnet.names.commands import Told
from linnet.names.config import NamesConfig
from linnet.names.messages import CANDIDATES, AskRecord, PutAnswer, PutRecord, RecordIs
from linnet.names.records import Block, check_block
from linnet.trace.records import Kind, Record


class AskDue(Timer, frozen=True):
    """Timer: peers have had long enough to answer a query."""

    number: int


class Gathered(Struct, frozen=True, gc=False):
    """The result of a query: all blocks that were found, right or not, and the number of answers."""

    number: int
    blocks: tuple[Block, ...]
    answered: int


class _Query:
    __slots__ = ("answered", "blocks", "lookup", "open")

    def __init__(self, lookup: bytes, peers: Sequence[PeerId]) -> None:
        self.lookup = lookup
        self.open: dict[PeerId, None] = dict.fromkeys(peers)
        self.blocks: dict[Block, None] = {}
        self.answered = 0


class RecordQueries:
    """Queries for records, each to several linked peers. Each ends in one `Gathered` with its number.

    Only a reader who knows the name can tell whether a block that was found is right.
    """

    def __init__(self, config: NamesConfig, out: Outbox) -> None:
        self._config = config
        self._out = out
        self._number = 0
        self._queries: dict[int, _Query] = {}

    def next_number(self) -> int:
        """Return a new number for a query."""
        self._number += 1
        return self._number

    def ask_peers(self, number: int, lookup: bytes, peers: Sequence[PeerId]) -> Gathered | None:
        """Ask peers for the blocks under a key; return the result at once if there are no peers."""
        asked = peers[: self._config.asks]
        if not asked:
            return Gathered(number, (), 0)
        self._queries[number] = _Query(lookup, asked)
        for peer in asked:
            self._out.send(peer, AskRecord(number, lookup))
        self._out.set_timer(self._config.patience, AskDue(number))
        return None

    def handle_answer(self, peer: PeerId, message: RecordIs) -> Gathered | None:
        """Take in a peer's answer; return the result if it was the last one."""
        query = self._queries.get(message.request)
        if query is None or peer not in query.open or message.lookup != query.lookup:
            note = "an answer nobody waits for"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note=note))
            return None
        del query.open[peer]
        if message.reason is not None:
            note = "a question for a record was refused"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=message.reason, note=note))
        else:
            query.answered += 1
        for block in message.blocks:
            if _is_sound(block, query.lookup):
                query.blocks[block] = None
            else:
                reason = Reason.BAD_SIGNATURE
                self._out.record(Record(Kind.REJECTED, peer=peer, reason=reason, note="a record"))
                self._out.blame(peer, reason)
        return self._close_if_done(message.request)

    def handle_timeout(self, timer: AskDue) -> Gathered | None:
        """End a query without the peers that have not answered, and return its result."""
        query = self._queries.get(timer.number)
        if query is None:
            return None
        for peer in query.open:
            note = "a question for a record"
            self._out.record(Record(Kind.DROPPED, peer=peer, reason=Reason.TIMEOUT, note=note))
        query.open = {}
        return self._close_if_done(timer.number)

    def handle_link_down(self, peer: PeerId) -> list[Gathered]:
        """Stop waiting for a peer whose link is gone; return the results of queries that end by that."""
        waiting = [number for number, query in self._queries.items() if peer in query.open]
        for number in waiting:
            del self._queries[number].open[peer]
        ended = [self._close_if_done(number) for number in waiting]
        return [gathered for gathered in ended if gathered is not None]

    def _close_if_done(self, number: int) -> Gathered | None:
        query = self._queries[number]
        if query.open:
            return None
        del self._queries[number]
        self._out.cancel_timer(AskDue(number))
        return Gathered(number, tuple(query.blocks), query.answered)


def _is_sound(block: Block, lookup: bytes) -> bool:
    try:
        check_block(block)
    except RemoteError:
        return False
    return block.lookup == lookup


ANSWERS = 64
"""The most answers of peers that are kept for one label; the oldest are dropped."""


class PutDue(Timer, frozen=True):
    """Timer: a peer has had long enough to say whether it keeps a block."""

    request: int


class BlockPlacements:
    """Hands our own blocks to peers, and notes which of them keep which version."""

    def __init__(self, patience: float, out: Outbox) -> None:
        self._patience = patience
        self._out = out
        self._number = 0
        self._open: dict[int, tuple[PeerId, bytes, int]] = {}
        self._answers: dict[bytes, dict[PeerId, tuple[int, Reason | None]]] = {}

    def hand_block(self, block: Block, peers: Sequence[PeerId]) -> None:
        """Hand a block to peers; one that does not answer gets it again when it is next handed out."""
        self._answers.setdefault(block.lookup, {})
        for peer in peers:
            self._number += 1
            self._open[self._number] = (peer, block.lookup, block.version)
            self._out.send(peer, PutRecord(self._number, block))
            self._out.set_timer(self._patience, PutDue(self._number))

    def handle_answer(self, peer: PeerId, message: PutAnswer) -> None:
        """Note that a peer keeps a block, or why it does not."""
        waiting = self._open.get(message.request)
        if waiting is None or waiting[0] != peer:
            note = "an answer nobody waits for"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note=note))
            return
        self._note_answer(message.request, message.reason, Kind.REJECTED)

    def handle_timeout(self, timer: PutDue) -> None:
        """Note that a peer did not answer in time."""
        if timer.request in self._open:
            self._note_answer(timer.request, Reason.TIMEOUT, Kind.DROPPED)

    def handle_link_down(self, peer: PeerId, reason: Reason) -> None:
        """Note that a peer's link is gone, and its open answers with it."""
        for number in [number for number, waiting in self._open.items() if waiting[0] == peer]:
            self._note_answer(number, reason, Kind.DROPPED)

    def answers(self, block: Block) -> tuple[Told, ...]:
        """Return the answers of the peers to which this version of a block was handed."""
        under = self._answers.get(block.lookup, {})
        return tuple(Told(peer, why) for peer, (version, why) in under.items() if version == block.version)

    def forget_lookup(self, lookup: bytes) -> None:
        """Forget the answers of peers under a key: nothing more is handed out under it."""
        self._answers.pop(lookup, None)

    def _note_answer(self, number: int, reason: Reason | None, kind: Kind) -> None:
        peer, lookup, version = self._open.pop(number)
        answers = self._answers.get(lookup)
        if answers is not None:
            answers.pop(peer, None)
            answers[peer] = (version, reason)
            if len(answers) > ANSWERS:
                del answers[next(iter(answers))]
        if reason is not None:
            self._out.record(Record(kind, peer=peer, reason=reason, note="a record of ours"))


class BlockServer:
    """Stores blocks of peers and hands them out, within limits. It cannot read them.

    Every refusal is sent to the peer, and recorded.
    """

    def __init__(self, shelf: BlockShelf, config: NamesConfig, out: Outbox) -> None:
        self._shelf = shelf
        self._serve = config.serve
        self._asks = Allowances(config.burst, config.rate)
        self._puts = Allowances(config.burst, config.rate)
        self._out = out

    def handle_put(self, peer: PeerId, message: PutRecord, now: float) -> None:
        """Store a block that a peer hands us, or tell it why not."""
        reason = self._find_objection(self._puts, peer, now)
        if reason is None:
            reason = self._shelf.put(message.block, peer, now)
        answer = PutAnswer(message.request, reason)
        if reason is None:
            self._out.committed.send(peer, answer)
            return
        size = len(message.block.sealed)
        note = "a record to keep"
        self._out.record(Record(Kind.REJECTED, peer=peer, bytes=size, reason=reason, note=note))
        self._out.send(peer, answer)
        if reason is Reason.BAD_SIGNATURE:
            self._out.blame(peer, reason)

    def handle_question(self, peer: PeerId, message: AskRecord, now: float) -> None:
        """Send a peer the blocks that are stored under a key."""
        reason = self._find_objection(self._asks, peer, now)
        blocks = self._shelf.find(message.lookup)[:CANDIDATES] if reason is None else ()
        if reason is not None:
            note = "a question for a record"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=reason, note=note))
        self._out.send(peer, RecordIs(message.request, message.lookup, blocks, reason))

    def _find_objection(self, allowances: Allowances, peer: PeerId, now: float) -> Reason | None:
        if not self._serve:
            return Reason.UNSUPPORTED
        return None if allowances.spend(peer, now) else Reason.FLOODING
