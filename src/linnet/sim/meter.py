"""Measuring a simulation while it runs: what passes on its way into the trace, and what is delivered."""

from __future__ import annotations

from typing import Protocol

from linnet.core.effects import Deliver
from linnet.core.ids import DeviceId, PeerId
from linnet.core.reasons import Reason
from linnet.event.event import Event
from linnet.peer.interface import Handed
from linnet.trace.records import Kind, Record
from linnet.trace.sink import TraceSink


class HashedTrace(TraceSink, Protocol):
    """A trace that can be compared with another."""

    def sha256(self) -> str:
        """A hash over all records with node and time."""


class Meter:
    """Passes records on to a trace and counts what the report needs."""

    def __init__(self, trace: TraceSink) -> None:
        self._pass_on = trace.write
        self.close = trace.close
        self.changed_at: float | None = None
        """When an overlay changed last."""
        self.stale = 0
        """Messages that trackers and nodes rejected as stale."""
        self.began()

    def began(self) -> None:
        """From now on messages are counted."""
        self.sent = 0
        self.received = 0
        self.duplicates = 0
        self.returned = 0
        """Duplicates of what the node itself had published."""
        self.hops: dict[int, int] = {}
        """First receipts by the links that were crossed."""
        self.delays: list[float] = []
        """Seconds from publication to each first receipt."""
        self.links: list[int] = []
        """Links that each of these crossed; 0 if that was not told."""
        self.published: dict[bytes, float] = {}
        """When events were published."""
        self.published_by: dict[bytes, PeerId] = {}
        self._devices: dict[PeerId, DeviceId | None] = {}
        self.publishers: dict[PeerId, int] = {}
        """Nodes with how many events they published."""
        self.delivered: dict[bytes, dict[PeerId, None]] = {}
        """Events with the nodes whose application has them."""

    def write(self, node: PeerId, record: Record, now: float) -> None:
        """See `TraceSink.write`; the frequent kinds are looked at first."""
        self._pass_on(node, record, now)
        kind = record.kind
        if kind is Kind.SENT:
            self.sent += record.events
        elif kind is Kind.DUPLICATE:
            self.duplicates += record.events
            if node in self._devices and self._devices[node] == record.device:
                self.returned += record.events
        elif kind is Kind.RECEIVED:
            self._received(record, now)
        elif kind is Kind.DELIVERED:
            pass
        elif kind is Kind.OVERLAY:
            self.changed_at = now
        elif kind is Kind.PUBLISHED and record.event is not None:
            self.published[record.event] = now
            self.published_by[record.event] = node
            self._devices[node] = record.device
            self.publishers[node] = self.publishers.get(node, 0) + record.events
        elif kind is Kind.REJECTED and record.reason is Reason.STALE:
            self.stale += 1

    def _received(self, record: Record, now: float) -> None:
        self.received += record.events
        if record.hops is not None:
            self.hops[record.hops] = self.hops.get(record.hops, 0) + 1
        if record.event is not None:
            published_at = self.published.get(record.event)
            if published_at is not None:
                self.delays.append(now - published_at)
                self.links.append(record.hops or 0)

    def deliver(self, node: PeerId, effect: Deliver[Handed], now: float) -> None:
        """What an application of the simulation does: remember what it was handed."""
        for item in effect.items:
            if isinstance(item, Event):
                self.delivered.setdefault(item.id, {})[node] = None

    def reached(self) -> int:
        """Pairs of an event and a node other than its publisher whose application has it."""
        publishers = self.published_by
        return sum(len(nodes) - (publishers.get(event) in nodes) for event, nodes in self.delivered.items())
