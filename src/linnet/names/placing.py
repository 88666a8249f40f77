"""Handing our own blocks to peers that keep them, and knowing who does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.names.block import Block
from linnet.names.messages import PutAnswer, PutRecord
from linnet.trace.records import Kind, Record

TOLD = 64
"""Peers that are remembered for one label; those that answered longest ago are forgotten."""

Told: TypeAlias = tuple[tuple[PeerId, Reason | None], ...]


class PutDue(Timer, frozen=True):
    """A peer has had long enough to say whether it keeps a block."""

    request: int


class Placing:
    """Which peer was handed which version, and what became of it."""

    def __init__(self, patience: float, out: Outbox) -> None:
        self._patience = patience
        self._out = out
        self._number = 0
        self._open: dict[int, tuple[PeerId, bytes, int]] = {}
        self._told: dict[bytes, dict[PeerId, tuple[int, Reason | None]]] = {}

    def hand_block(self, block: Block, peers: Sequence[PeerId]) -> None:
        """Give a block to peers; who does not answer is given it again when it is next handed out."""
        self._told.setdefault(block.lookup, {})
        for peer in peers:
            self._number += 1
            self._open[self._number] = (peer, block.lookup, block.version)
            self._out.send(peer, PutRecord(self._number, block))
            self._out.set_timer(self._patience, PutDue(self._number))

    def handle_answer(self, peer: PeerId, message: PutAnswer) -> None:
        """Note that a peer keeps a block, or why not."""
        waiting = self._open.get(message.request)
        if waiting is None or waiting[0] != peer:
            note = "an answer nobody waits for"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note=note))
            return
        self._settle(message.request, message.reason, Kind.REJECTED)

    def handle_timeout(self, timer: PutDue) -> None:
        """Note that a peer did not answer in time."""
        if timer.request in self._open:
            self._settle(timer.request, Reason.TIMEOUT, Kind.DROPPED)

    def handle_link_down(self, peer: PeerId, reason: Reason) -> None:
        """Note that a peer is gone, and perhaps what it was handed."""
        for number in [number for number, waiting in self._open.items() if waiting[0] == peer]:
            self._settle(number, reason, Kind.DROPPED)

    def told(self, block: Block) -> Told:
        """Who was handed this version, and what they said."""
        under = self._told.get(block.lookup, {})
        return tuple((peer, reason) for peer, (version, reason) in under.items() if version == block.version)

    def forget(self, lookup: bytes) -> None:
        """There is nothing more to hand out under this key."""
        self._told.pop(lookup, None)

    def _settle(self, number: int, reason: Reason | None, kind: Kind) -> None:
        peer, lookup, version = self._open.pop(number)
        told = self._told.get(lookup)
        if told is not None:
            told.pop(peer, None)
            told[peer] = (version, reason)
            if len(told) > TOLD:
                del told[next(iter(told))]
        if reason is not None:
            self._out.record(Record(kind, peer=peer, reason=reason, note="a record of ours"))
