"""The asking side: one question to several peers at once, until all have answered or it takes too long.

What it returns is what was found, right or not: only who knows the name can tell.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.names.block import Block, check_block
from linnet.names.config import NamesConfig
from linnet.names.messages import AskRecord, RecordIs
from linnet.trace.records import Kind, Record


class AskDue(Timer, frozen=True):
    """Peers have had long enough to answer a question."""

    number: int


class Gathered(Struct, frozen=True, gc=False):
    """Everything that was found under a key, and how many peers answered at all."""

    number: int
    blocks: tuple[Block, ...]
    answered: int


class _Question:
    __slots__ = ("answered", "blocks", "lookup", "open")

    def __init__(self, lookup: bytes, peers: Sequence[PeerId]) -> None:
        self.lookup = lookup
        self.open: dict[PeerId, None] = dict.fromkeys(peers)
        self.blocks: dict[Block, None] = {}
        self.answered = 0


class Asking:
    """Questions for records to the peers that we have links to. Each ends in one `Gathered` of its number."""

    def __init__(self, config: NamesConfig, out: Outbox) -> None:
        self._config = config
        self._out = out
        self._number = 0
        self._questions: dict[int, _Question] = {}

    def next_number(self) -> int:
        """Draw a number for a question."""
        self._number += 1
        return self._number

    def ask_peers(self, number: int, lookup: bytes, peers: Sequence[PeerId]) -> Gathered | None:
        """Ask peers what is kept under a key; what was found at once if there is nobody to ask."""
        asked = peers[: self._config.asks]
        if not asked:
            return Gathered(number, (), 0)
        self._questions[number] = _Question(lookup, asked)
        for peer in asked:
            self._out.send(peer, AskRecord(number, lookup))
        self._out.set_timer(self._config.patience, AskDue(number))
        return None

    def handle_answer(self, peer: PeerId, message: RecordIs) -> Gathered | None:
        """Take what a peer answers; the last answer ends the question."""
        question = self._questions.get(message.request)
        if question is None or peer not in question.open or message.lookup != question.lookup:
            note = "an answer nobody waits for"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note=note))
            return None
        del question.open[peer]
        if message.reason is not None:
            note = "a question for a record was refused"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=message.reason, note=note))
        else:
            question.answered += 1
        for block in message.blocks:
            if _is_sound(block, question.lookup):
                question.blocks[block] = None
            else:
                reason = Reason.BAD_SIGNATURE
                self._out.record(Record(Kind.REJECTED, peer=peer, reason=reason, note="a record"))
                self._out.blame(peer, reason)
        return self._close_if_done(message.request)

    def handle_timeout(self, timer: AskDue) -> Gathered | None:
        """End a question: those who have not answered are not waited for."""
        question = self._questions.get(timer.number)
        if question is None:
            return None
        for peer in question.open:
            note = "a question for a record"
            self._out.record(Record(Kind.DROPPED, peer=peer, reason=Reason.TIMEOUT, note=note))
        question.open = {}
        return self._close_if_done(timer.number)

    def handle_link_down(self, peer: PeerId) -> list[Gathered]:
        """Wait no longer for a peer that is gone; returns what has ended by that."""
        waiting = [number for number, question in self._questions.items() if peer in question.open]
        for number in waiting:
            del self._questions[number].open[peer]
        ended = [self._close_if_done(number) for number in waiting]
        return [gathered for gathered in ended if gathered is not None]

    def _close_if_done(self, number: int) -> Gathered | None:
        question = self._questions[number]
        if question.open:
            return None
        del self._questions[number]
        self._out.cancel_timer(AskDue(number))
        return Gathered(number, tuple(question.blocks), question.answered)


def _is_sound(block: Block, lookup: bytes) -> bool:
    try:
        check_block(block)
    except RemoteError:
        return False
    return block.lookup == lookup
