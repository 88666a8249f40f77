"""An authenticated link: sends and receives frames, with priority lanes, and ends with one reason.

A link ends once, with one reason: its own side hangs up, the peer says `Bye`, the connection is lost, or a
bound is passed. Messages received before the end are handled before it is reported.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Protocol

from linnet.core.allowances import Allowances
from linnet.core.errors import MalformedMessage
from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.limits import KIB
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.machine.protocol import Vocabulary
from linnet.net.config import NetConfig
from linnet.net.transport import Connection, Lane
from linnet.peer.messages import CODEC, Bye, Unsupported
from linnet.trace.records import Kind, Record
from linnet.wire.codec import UnknownMessage
from linnet.wire.frame import FrameReader, frame

_SMALL = 16 * KIB
"""Bytes of an unfinished frame that are not worth counting."""
_BYE = CODEC.encode(Bye(Reason.SHUTDOWN))[:2]
"""The first bytes of each `Bye`, whatever its reason."""

_CONTROL, _DATA = Lane.CONTROL, Lane.DATA
"""Local names, since each frame that is sent needs one of them."""


class SendQueue:
    """Frames that wait for one peer, measured in bytes and age. Order holds within a lane."""

    def __init__(self) -> None:
        self._lanes: tuple[deque[tuple[bytes, float]], ...] = (deque(), deque(), deque())
        """The waiting frames by `Lane`, which is the order in which they are sent."""
        self.bytes = 0
        """The number of waiting bytes."""

    def __len__(self) -> int:
        return sum(map(len, self._lanes))

    def put(self, frame: bytes, now: float, lane: Lane) -> None:
        """Queue a frame behind those of its lane."""
        self._lanes[lane].append((frame, now))
        self.bytes += len(frame)

    def take(self, limit: int) -> bytes:
        """Return frames from the front, joined: as many as reach `limit` bytes, at least one."""
        return self._take(self._lanes, limit)

    def take_lane(self, limit: int) -> tuple[bytes, Lane]:
        """Return frames of the first lane alone that has any, joined in the same way."""
        lane = next(lane for lane in Lane if self._lanes[lane])
        return self._take((self._lanes[lane],), limit), lane

    def _take(self, lanes: tuple[deque[tuple[bytes, float]], ...], limit: int) -> bytes:
        taken: list[bytes] = []
        size = 0
        for lane in lanes:
            while lane and size < limit:
                frame, _ = lane.popleft()
                taken.append(frame)
                size += len(frame)
        self.bytes -= size
        return taken[0] if len(taken) == 1 else b"".join(taken)

    def oldest(self) -> float | None:
        """Return when the longest waiting frame was put; None if nothing waits."""
        return min((lane[0][1] for lane in self._lanes if lane), default=None)

    def clear(self) -> tuple[int, int]:
        """Drop everything; return the count of frames and bytes."""
        lost = len(self), self.bytes
        for lane in self._lanes:
            lane.clear()
        self.bytes = 0
        return lost


class LinkOwner(Protocol):
    """The owner of links, which is notified of what happens on them."""

    vocabulary: Vocabulary
    """The messages that the node knows."""

    @property
    def turn(self) -> int:
        """The number of this loop turn."""

    @property
    def is_stalled(self) -> bool:
        """Whether nothing more can be handled before the store has caught up."""

    def now(self) -> float:
        """Return the clock's time."""

    def message_received(self, link: Link, message: Message) -> None:
        """Handle a message that arrived."""

    def link_dirty(self, link: Link) -> None:
        """Call `flush` on the link at the end of this turn."""

    def link_holds(self, more: int) -> None:
        """Note that links hold so many more bytes of unfinished frames; the greediest may be cut for it."""

    def link_congested(self, link: Link, congested: bool) -> None:
        """Note that the outbox passed its high mark, or fell below its low mark again."""

    def link_ended(self, link: Link, reason: Reason) -> None:
        """Note that the link has ended for the machine, though it may still send its last data."""

    def record(self, record: Record) -> None:
        """Write a record."""


class Link:
    """One link: a peer at the other end of one connection."""

    def __init__(
        self,
        peer: PeerId,
        hello: Hello,
        dialed: bool,
        connection: Connection,
        owner: LinkOwner,
        config: NetConfig,
    ) -> None:
        self.peer = peer
        self.hello = hello
        self.dialed = dialed
        self.connection = connection
        self._owner = owner
        self._decode = owner.vocabulary.decode
        self._config = config
        self._reader = FrameReader()
        self._unknown = Allowances(config.unknown_messages, config.unknown_messages / 60.0)
        self.unfinished = 0
        """Bytes of a frame whose rest has not come."""
        self._inbox: deque[bytes] = deque()
        self._inbox_bytes = 0
        self._queue = SendQueue()
        self._budget = 0
        self._byte_budget = 0
        self._budget_turn = -1
        self._scheduled = False
        self._reading = True
        self._congested = False
        self._ended = False
        self._lost: Reason | None = None
        self._linger: asyncio.TimerHandle | None = None

    def send(self, data: bytes, bulk: bool) -> None:
        """Queue a frame. May end the link, if more waits than is allowed."""
        if self._ended:
            return
        self._queue.put(data, self._owner.now(), _DATA if bulk else _CONTROL)
        waiting = self._queue.bytes
        if waiting >= self._config.write_bytes and not self.connection.is_paused:
            self.flush()
        elif waiting > self._config.outbox_bytes:
            self.cut(Reason.SLOW_PEER, f"{waiting} bytes wait")
        else:
            self._owner.link_dirty(self)

    def flush(self) -> None:
        """Write the waiting frames, in few large writes, as far as the transport takes them."""
        queue, connection = self._queue, self.connection
        while queue.bytes and not connection.is_paused and self._lost is None:
            if connection.is_ordered:
                connection.write(queue.take(self._config.write_bytes))
            else:
                connection.write(*queue.take_lane(self._config.write_bytes))
        if self._ended:
            return
        if not self._congested and queue.bytes > self._config.high_mark:
            self._congested = True
            self._owner.link_congested(self, True)
        elif self._congested and queue.bytes < self._config.low_mark:
            self._congested = False
            self._owner.link_congested(self, False)

    def check_age(self, now: float) -> None:
        """End the link if a frame has waited for too long."""
        oldest = self._queue.oldest()
        if not self._ended and oldest is not None and now - oldest > self._config.outbox_age:
            self.cut(Reason.SLOW_PEER, f"a message waits for {now - oldest:.0f} s")

    def hang_up(self, reason: Reason) -> None:
        """Send the waiting frames, then the reason, and close. The link ends for the machine now."""
        if self._ended:
            return
        self._say_bye(reason)
        self._end(reason)
        self.flush()

    def cut(self, reason: Reason, detail: str) -> None:
        """End the link because of the peer's behaviour, and drop the waiting frames."""
        if self._ended:
            return
        self._give_up(reason, detail)
        self._say_bye(reason)
        self._end(reason)
        self.flush()

    def abort(self) -> None:
        """Close at once, without sending a reason."""
        self.connection.abort()

    def data_received(self, data: bytes) -> None:
        """See `Consumer`."""
        if self._ended:
            self._skim(data)
            return
        try:
            frames = self._reader.feed(data)
        except MalformedMessage as error:
            self._reject(error.reason, error.detail)
            self.cut(Reason.OVERSIZED_FRAME, error.detail)
            return
        self._inbox.extend(frames)
        self._inbox_bytes += len(data)
        if self._reader.pending > _SMALL or self.unfinished:
            self._count_unfinished(self._reader.pending)
        self.work()

    def _count_unfinished(self, size: int) -> None:
        more = size - self.unfinished
        self.unfinished = size
        self._owner.link_holds(more)

    def writable(self) -> None:
        """See `Consumer`."""
        self.flush()

    def connection_lost(self, reason: Reason) -> None:
        """See `Consumer`."""
        if self._linger is not None:
            self._linger.cancel()
        self._lost = reason
        self._reader = FrameReader()  # What it holds is freed now, whenever the link itself is.
        if self._ended:
            self._give_up(reason, "the link closed before it was sent")
        elif not self._inbox:
            self._end_lost()

    def work(self) -> None:
        """Handle received frames, as many as one turn allows; the rest are handled in later turns."""
        if self._budget_turn != self._owner.turn:
            self._budget_turn = self._owner.turn
            self._budget = self._config.frames_per_turn
            self._byte_budget = self._config.bytes_per_turn
        inbox, owner = self._inbox, self._owner
        while inbox and self._has_budget and not self._ended and not owner.is_stalled:
            payload = inbox.popleft()
            self._budget -= 1
            self._byte_budget -= len(payload)
            self._inbox_bytes -= len(payload)
            self._handle(payload)
        if self._ended:
            return
        if inbox:
            self._work_later()
        else:
            self._inbox_bytes = 0
            if self._lost is not None:
                self._end_lost()
                return
        self._control_reading()

    @property
    def _has_budget(self) -> bool:
        return self._budget > 0 and self._byte_budget > 0

    def _handle(self, payload: bytes) -> None:
        try:
            message = self._decode(payload)
        except UnknownMessage as error:
            self._reject(Reason.UNSUPPORTED, error.detail)
            if error.tag == 0:  # A second Hello is known, and out of place.
                self.cut(Reason.PROTOCOL_ERROR, "a second Hello")
            elif self._unknown.spend(self.peer, self._owner.now()):
                self.send(frame(CODEC.encode(Unsupported(error.tag))), bulk=False)
            else:
                self.cut(Reason.FLOODING, "unknown messages, though we said that they are unknown")
        except MalformedMessage as error:
            self._reject(error.reason, error.detail)
            self.cut(Reason.PROTOCOL_ERROR, error.detail)
        else:
            if isinstance(message, Bye):
                self._give_up(message.reason, "the peer has closed the link")
                self._end(message.reason)
                self.connection.close(message.reason)
            else:
                self._owner.message_received(self, message)

    def _skim(self, data: bytes) -> None:
        """Read on after the end: unread bytes would turn our reason into a connection reset for the peer.

        A peer that hangs up at the same time waits for us as we wait for it: its `Bye` ends both.
        """
        with suppress(MalformedMessage):
            self._inbox.extend(self._reader.feed(data))
        if any(payload.startswith(_BYE) for payload in self._inbox):
            self.connection.close()
        self._inbox.clear()

    def _work_later(self) -> None:
        if not self._scheduled and not self._owner.is_stalled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._work_again)

    def _work_again(self) -> None:
        self._scheduled = False
        self._budget_turn = -1
        self.work()

    def _control_reading(self) -> None:
        if self._lost is not None:
            return
        if self._reading and self._inbox_bytes > self._config.inbox_bytes:
            self._reading = False
            self.connection.pause_reading()
        elif not self._reading and self._inbox_bytes <= self._config.inbox_bytes // 2:
            self._reading = True
            self.connection.resume_reading()

    def _say_bye(self, reason: Reason) -> None:
        self._queue.put(frame(CODEC.encode(Bye(reason))), self._owner.now(), Lane.LAST)

    def _end(self, reason: Reason) -> None:
        self._ended = True
        if self.unfinished:
            self._count_unfinished(0)
        loop = asyncio.get_running_loop()
        if self._lost is None:
            if not self._reading:
                self.connection.resume_reading()
            self._linger = loop.call_later(self._config.linger, self.connection.abort)
        self._owner.link_ended(self, reason)
        if self._inbox and self._lost is None:
            loop.call_soon(self._skim, b"")

    def _end_lost(self) -> None:
        reason = self._lost or Reason.REMOTE_CLOSED
        self._give_up(reason, "the connection was lost")
        self._end(reason)

    def _give_up(self, reason: Reason, detail: str) -> None:
        frames, size = self._queue.clear()
        if frames:
            record = Record(
                Kind.DROPPED, peer=self.peer, events=frames, bytes=size, reason=reason, note=detail
            )
            self._owner.record(record)

    def _reject(self, reason: Reason, detail: str) -> None:
        self._owner.record(Record(Kind.REJECTED, peer=self.peer, reason=reason, note=detail[:200]))
