"""Hot attributes: the events of a busy attribute are spread over several nodes.

A rendezvous counts the events that it receives. Above a threshold it looks for the nodes closest to the parts
of its attribute and has them hold all its filters, as keepers do; once all of them have these, its answers
tell publishers in how many parts events go. Subscriptions go to the rendezvous alone; it answers them when
the holders of the parts know of them. A node that does not hold a part says so, and the event goes to the
rendezvous: nothing is lost while an attribute is split, nor when one of these nodes is gone.
"""

from __future__ import annotations

from linnet.content.attribute_keys import (
    MOST_PARTS,
    Locate,
    Located,
    attribute_key,
    distance,
    is_part,
    part_name,
    part_of,
)
from linnet.content.config import ContentConfig
from linnet.content.filter_backup import Backups
from linnet.core.ids import EventId, PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.overlay.kademlia.routing_table import NodeId
from linnet.trace.records import Kind, Record

WINDOW = 10.0
"""Seconds over which events are counted."""


class HotAttributes:
    """The attributes that this node has split, and the splits of others that it knows."""

    def __init__(self, ours: PeerId, config: ContentConfig, backups: Backups, out: Outbox) -> None:
        self._ours = ours
        self._out = out
        self._config = config
        self._backups = backups
        self._counted: dict[str, tuple[float, int]] = {}
        """When each attribute's window began, and how many events came in it."""
        self._wanted: dict[str, int] = {}
        self._local: dict[str, None] = {}
        """Parts that this node is closest to itself."""
        self._pending: dict[NodeId, tuple[str, int]] = {}
        self._known: dict[str, tuple[int, float]] = {}
        """In how many parts other rendezvous have split an attribute, and until when that is believed."""

    # At the rendezvous.

    def count_arrival(self, attribute: str, now: float) -> None:
        """Count an event at its rendezvous, and split the attribute if there are too many."""
        if not self._config.hot or is_part(attribute):
            return
        since, count = self._counted.get(attribute, (now, 0))
        if since + WINDOW <= now:
            since, count = now, 0
        self._counted[attribute] = (since, count + 1)
        if count + 1 <= self._config.hot * WINDOW or self.parts(attribute) < self._wanted.get(attribute, 1):
            return
        self._counted[attribute] = (now, 0)
        self._split(attribute)

    def _split(self, attribute: str) -> None:
        before = self._wanted.get(attribute, 1)
        if before >= MOST_PARTS:
            return
        self._wanted[attribute] = 2 * before
        note = f"{attribute} goes in {2 * before} parts"
        self._out.record(Record(Kind.CONTROL, reason=Reason.CONGESTED, note=note))
        for part in range(before, 2 * before):
            key = attribute_key(part_name(attribute, part))
            self._pending[key] = (attribute, part)
            self._out.notify(Locate(key))

    def handle_nodes_found(self, found: Located) -> None:
        """Have the closest node that a lookup found hold a part, if the lookup was for one."""
        attribute, part = self._pending.pop(found.key, ("", 0))
        if not part:
            return
        closest = found.contacts[0] if found.contacts else None
        if closest is None or distance(self._ours, found.key) < distance(closest.peer, found.key):
            self._local[part_name(attribute, part)] = None
            return
        self._backups.mirror(attribute, part, closest)

    def parts(self, attribute: str) -> int:
        """Return in how many parts events may go: only parts whose holders have all filters count."""
        parts = self._wanted.get(attribute, 1)
        while parts > 1 and not all(self._holds(attribute, part) for part in range(1, parts)):
            parts //= 2
        return parts

    def _holds(self, attribute: str, part: int) -> bool:
        return part_name(attribute, part) in self._local or self._backups.is_mirrored(attribute, part)

    def unsplit(self, attribute: str) -> None:
        """Tell the holders of an attribute's parts to drop them."""
        for part in range(1, self._wanted.pop(attribute, 1)):
            self._local.pop(part_name(attribute, part), None)
        self._counted.pop(attribute, None)
        self._backups.unmirror(attribute)

    def begin_period(self, now: float) -> None:
        """End the splits of attributes that have cooled down."""
        self._known = {name: each for name, each in self._known.items() if each[1] > now}
        for attribute in list(self._wanted):
            since, count = self._counted.get(attribute, (now, 0))
            if since + 2 * WINDOW <= now or count < self._config.hot * WINDOW / 4:
                self.unsplit(attribute)

    # At publishers.

    def learn(self, attribute: str, parts: int, now: float) -> None:
        """Learn from a rendezvous in how many parts the events of an attribute go."""
        self._known.pop(attribute, None)
        if parts > 1 and len(self._known) < self._config.routes:
            self._known[attribute] = (min(parts, MOST_PARTS), now + self._config.confirmed)

    def choose(self, attribute: str, event: EventId, now: float) -> str:
        """Return the name, the attribute's or a part's, under which an event goes to a rendezvous."""
        parts, until = self._known.get(attribute, (1, 0.0))
        return part_name(attribute, part_of(event, parts)) if now < until else attribute
