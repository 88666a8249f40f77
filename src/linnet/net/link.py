"""An authenticated link: frames in, frames out, and how it ends.

A link ends once, with one reason: its own side hangs up, the peer says `Bye`, the connection is
lost, or a bound is passed. What was received before the end is handled before it is reported.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Protocol

from linnet.core.errors import MalformedMessage
from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.net.channel import Channel
from linnet.net.config import NetConfig
from linnet.net.outbox import Outbox
from linnet.peer.messages import CODEC, Bye, Unsupported
from linnet.trace.records import Kind, Record
from linnet.wire.codec import UnknownMessage
from linnet.wire.frame import FrameReader, frame

_BYE = CODEC.encode(Bye(Reason.SHUTDOWN))[:2]
"""How each `Bye` begins, whatever its reason."""


class LinkOwner(Protocol):
    """Who is told what happens on a link."""

    @property
    def turn(self) -> int:
        """The number of this loop turn."""

    @property
    def is_stalled(self) -> bool:
        """Whether no more can be handled before the store has caught up."""

    def now(self) -> float:
        """The clock's time."""

    def message_received(self, link: Link, message: Message) -> None:
        """A message came."""

    def link_dirty(self, link: Link) -> None:
        """Call `flush` at the end of this turn."""

    def link_congested(self, link: Link, congested: bool) -> None:
        """The outbox passed its high mark, or fell below its low mark again."""

    def link_ended(self, link: Link, reason: Reason) -> None:
        """The link is no more for the machine, though it may still send its last words."""

    def record(self, record: Record) -> None:
        """Write this down."""


class Link:
    """One peer at the other end of one channel."""

    def __init__(
        self, peer: PeerId, hello: Hello, dialed: bool, channel: Channel, owner: LinkOwner, config: NetConfig
    ) -> None:
        self.peer = peer
        self.hello = hello
        self.dialed = dialed
        self.channel = channel
        self._owner = owner
        self._config = config
        self._reader = FrameReader()
        self._inbox: deque[bytes] = deque()
        self._inbox_bytes = 0
        self._outbox = Outbox()
        self._budget = 0
        self._byte_budget = 0
        self._budget_turn = -1
        self._scheduled = False
        self._reading = True
        self._congested = False
        self._ended = False
        self._lost: Reason | None = None
        self._linger: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Handle what comes, beginning with what came already."""
        self.channel.hand_over(self)

    def send(self, data: bytes, bulk: bool) -> None:
        """Queue a frame. May end the link, if more waits than is allowed."""
        if self._ended:
            return
        self._outbox.put(data, self._owner.now(), bulk)
        waiting = self._outbox.bytes
        if waiting >= self._config.write_bytes and not self.channel.is_paused:
            self.flush()
        elif waiting > self._config.outbox_bytes:
            self.cut(Reason.SLOW_PEER, f"{waiting} bytes wait")
        else:
            self._owner.link_dirty(self)

    def flush(self) -> None:
        """Write what waits, in few large writes, as far as the transport takes it."""
        outbox, channel = self._outbox, self.channel
        while outbox.bytes and not channel.is_paused and self._lost is None:
            channel.write(outbox.take(self._config.write_bytes))
        if self._ended:
            return
        if not self._congested and outbox.bytes > self._config.high_mark:
            self._congested = True
            self._owner.link_congested(self, True)
        elif self._congested and outbox.bytes < self._config.low_mark:
            self._congested = False
            self._owner.link_congested(self, False)

    def check_age(self, now: float) -> None:
        """End the link if something has waited for too long."""
        oldest = self._outbox.oldest()
        if not self._ended and oldest is not None and now - oldest > self._config.outbox_age:
            self.cut(Reason.SLOW_PEER, f"a message waits for {now - oldest:.0f} s")

    def hang_up(self, reason: Reason) -> None:
        """Send what waits, then the reason, and close. The link ends for the machine now."""
        if self._ended:
            return
        self._say_bye(reason)
        self._end(reason)
        self.flush()

    def cut(self, reason: Reason, detail: str) -> None:
        """End the link because of what the peer did; what waits for it is given up."""
        if self._ended:
            return
        self._give_up(reason, detail)
        self._say_bye(reason)
        self._end(reason)
        self.flush()

    def abort(self) -> None:
        """Close at once, without a word."""
        self.channel.abort()

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
        self.work()

    def writable(self) -> None:
        """See `Consumer`."""
        self.flush()

    def channel_lost(self, reason: Reason) -> None:
        """See `Consumer`."""
        if self._linger is not None:
            self._linger.cancel()
        self._lost = reason
        if self._ended:
            self._give_up(reason, "the link closed before it was sent")
        elif not self._inbox:
            self._end_lost()

    def work(self) -> None:
        """Handle received frames, as many as one turn allows; the rest comes in later turns."""
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
            message = CODEC.decode(payload)
        except UnknownMessage as error:
            self._reject(Reason.UNSUPPORTED, error.detail)
            if error.tag != 0:  # A second Hello is known, and out of place.
                self.send(frame(CODEC.encode(Unsupported(error.tag))), bulk=False)
            else:
                self.cut(Reason.PROTOCOL_ERROR, "a second Hello")
        except MalformedMessage as error:
            self._reject(error.reason, error.detail)
            self.cut(Reason.PROTOCOL_ERROR, error.detail)
        else:
            if isinstance(message, Bye):
                self._give_up(message.reason, "the peer has closed the link")
                self._end(message.reason)
                self.channel.close(message.reason)
            else:
                self._owner.message_received(self, message)

    def _skim(self, data: bytes) -> None:
        """Read on after the end: bytes left unread would turn our reason into a reset for the peer.

        A peer that hangs up at the same time waits for us as we wait for it: its `Bye` ends both.
        """
        with suppress(MalformedMessage):
            self._inbox.extend(self._reader.feed(data))
        if any(payload.startswith(_BYE) for payload in self._inbox):
            self.channel.close()
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
            self.channel.pause_reading()
        elif not self._reading and self._inbox_bytes <= self._config.inbox_bytes // 2:
            self._reading = True
            self.channel.resume_reading()

    def _say_bye(self, reason: Reason) -> None:
        # Behind everything else, so in the data lane.
        self._outbox.put(frame(CODEC.encode(Bye(reason))), self._owner.now(), bulk=True)

    def _end(self, reason: Reason) -> None:
        self._ended = True
        loop = asyncio.get_running_loop()
        if self._lost is None:
            if not self._reading:
                self.channel.resume_reading()
            self._linger = loop.call_later(self._config.linger, self.channel.abort)
        self._owner.link_ended(self, reason)
        if self._inbox and self._lost is None:
            loop.call_soon(self._skim, b"")

    def _end_lost(self) -> None:
        reason = self._lost or Reason.REMOTE_CLOSED
        self._give_up(reason, "the connection was lost")
        self._end(reason)

    def _give_up(self, reason: Reason, detail: str) -> None:
        frames, size = self._outbox.clear()
        if frames:
            record = Record(
                Kind.DROPPED, peer=self.peer, events=frames, bytes=size, reason=reason, note=detail
            )
            self._owner.record(record)

    def _reject(self, reason: Reason, detail: str) -> None:
        self._owner.record(Record(Kind.REJECTED, peer=self.peer, reason=reason, note=detail[:200]))
