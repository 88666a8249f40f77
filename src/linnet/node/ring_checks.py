"""What may be wrong at a node without trackers, for `linnet doctor`."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.core.counts import counted
from linnet.identity.text import Sort, short, to_text
from linnet.node.addresses import parse_contact
from linnet.node.config import NodeConfig
from linnet.node.control_types import Check
from linnet.overlay.trackerless.status import TrackerlessStatus
from linnet.peer.interface import NodeStatus

BEGIN = (
    "name one or two nodes that are up: linnet up --bootstrap KEY@HOST:PORT (linnet up prints that address); "
    "the first node of a network waits for the others"
)


def ring_checks(status: NodeStatus, config: NodeConfig, ring: TrackerlessStatus) -> Iterator[Check]:
    """Whether others are known, whether those to begin with answer, and how topics stand."""
    known = ring.acquaintances
    if known:
        yield Check("ring", True, f"{counted(known, 'node')} known, {len(ring.sample)} of them in the sample")
    else:
        yield Check("ring", False, "no other node is known", BEGIN)
        yield from _first(status, config)
    alone = [topic for topic in ring.rings if not topic.known]
    if ring.rings:
        found = f"{counted(len(ring.rings), 'topic')}, {len(alone)} of them with no other known member"
        yield Check("topics", True, found)
    uncovered = sum(topic.uncovered for topic in ring.rings)
    if uncovered:
        yield Check(
            "links",
            False,
            f"{counted(uncovered, 'neighbour')} without a link: {ring.held} are held, which is the most",
            "raise trackerless.most_links",
        )


def _first(status: NodeStatus, config: NodeConfig) -> Iterator[Check]:
    """Why those to begin with are of no use."""
    links = {peer.peer: peer for peer in status.peers}
    for text in config.node.bootstrap:
        contact = parse_contact(text)
        link = links.get(contact.peer)
        if contact.peer == status.peer or link is None or link.up:
            continue
        name = f"bootstrap {short(Sort.DEVICE, contact.peer)}"
        advice = f"linnet doctor {to_text(Sort.DEVICE, contact.peer)}@{','.join(contact.hints)}"
        yield Check(name, False, f"not linked: {link.last_failure or 'dialling'}", advice)
