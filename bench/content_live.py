"""The published burst of events in real nodes: how long until everybody has what it wants.

``python -m bench.content_live [--nodes 30] [--variant base-reliable,…] [--course event-burst]``. Each node is
a process with real links, a store and a client for each subscription, all on this machine, as the published
nodes were containers on one host (Agostinho 2021, 5.3): here, too, most of a latency is waiting for a
processor. A latency is from an event's birth until the client has it first.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from linnet.api.content import ContentSaid, MatchView, ReadContent, SayContent
from linnet.api.items import SubscribedView
from linnet.cli.moments import wall_clock
from linnet.cli.play.nodes import LiveNode
from linnet.content.commands import ListContent
from linnet.content.predicate import read_attributes, read_predicate
from linnet.core.errors import LinnetError
from linnet.core.ids import Contact
from linnet.identity.addresses import contact_text, parse_hint
from linnet.identity.text import event_text
from linnet.node.client import ControlClient
from linnet.node.config import ContentSection, KademliaSection, NodeConfig
from linnet.node.config_reference import new_file
from linnet.node.home import open_home
from linnet.sim.content.scenario import Course, Publication, Variant, Workload

TABLE = KademliaSection(enabled=True, bucket_prefix=20, table_prefix=256)
"""All nodes have the same address here."""
FIRST = 2
"""Nodes whose addresses all others are given."""
STARTING = 3
READY_SECONDS = 600.0
ARRIVE_SECONDS = 300.0
BURST_MS = {
    Variant.BASE_UNRELIABLE: 1788,
    Variant.BASE_RELIABLE: 2505,
    Variant.REDIRECT_UNRELIABLE: 1954,
    Variant.REDIRECT_RELIABLE: 2313,
}
"""Mean latencies of the burst of events at 60 nodes: Agostinho 2021, Table 5.2."""


class Burst(Struct, frozen=True):
    """What came of one run."""

    variant: str
    nodes: int
    publishers: int
    expected: int
    missing: int
    undelivered_told: int
    """Branches that publishers were told about."""
    mean_ms: float
    median_ms: float
    longest_ms: float
    published_mean_ms: float | None
    """At 60 nodes, in containers on one host."""


class Client(threading.Thread):
    """Reads one subscription at one node."""

    def __init__(self, node: LiveNode, predicate: str, arrived: dict[tuple[str, str], float]) -> None:
        super().__init__(name=f"{node.name} wants {predicate}", daemon=True)
        self._node, self._predicate, self._arrived = node, predicate, arrived
        self._control = ControlClient(node.home.path)
        self.began = threading.Event()

    def run(self) -> None:
        """Until it is cut."""
        with suppress(LinnetError, RuntimeError):
            for item in self._control.lines(ReadContent(0, self._predicate)):
                if isinstance(item, SubscribedView):
                    self.began.set()
                elif isinstance(item, MatchView):
                    self._arrived.setdefault((self._node.name, item.event), wall_clock() - item.time)

    def end(self) -> None:
        """Stop reading."""
        self._control.cut()
        self.join(10.0)


def configured(directory: Path, count: int, variant: Variant) -> dict[str, LiveNode]:
    """Nodes that find each other by the addresses of the first two."""
    section = ContentSection(
        enabled=True, reliable="unreliable" not in variant, redirect="redirect" in variant
    )
    base = NodeConfig(kademlia=TABLE, content=section)
    names = [f"node{number}" for number in range(count)]
    nodes = {name: LiveNode(directory / name, relay=False, base=base) for name in names}
    configs = {name: open_home(node.home.path, wall_clock()).config for name, node in nodes.items()}
    first = {
        name: contact_text(Contact(nodes[name].peer, tuple(map(parse_hint, configs[name].node.listen))))
        for name in names[:FIRST]
    }
    for name, node in nodes.items():
        others = tuple(address for other, address in first.items() if other != name)
        node.home.config.write_text(
            new_file(replace(configs[name], kademlia=replace(TABLE, bootstrap=others)))
        )
    return nodes


def run(directory: Path, count: int, variant: Variant, course: Course) -> Burst:
    """One network: all subscribe, and when that stands, all publish at once."""
    with ExitStack() as stack:
        nodes = configured(directory, count, variant)
        for node in nodes.values():
            stack.callback(node.kill)
        with ThreadPoolExecutor(STARTING) as starts:
            list(starts.map(LiveNode.start, nodes.values()))
        workload = Workload(list(nodes), course)
        arrived: dict[tuple[str, str], float] = {}
        for name, predicate in workload.subscriptions():
            client = Client(nodes[name], predicate, arrived)
            stack.callback(client.end)
            client.start()
            if not client.began.wait(READY_SECONDS):
                raise TimeoutError(f"{client.name}: no subscription within {READY_SECONDS:.0f} s")
        if not waited(lambda: is_settled(nodes.values()), READY_SECONDS):
            raise TimeoutError(f"subscriptions did not stand within {READY_SECONDS:.0f} s")
        said = said_at_once(nodes, workload.publications())
        wanted = expected(workload, said)
        waited(lambda: wanted <= arrived.keys(), ARRIVE_SECONDS)
        return told(variant, course, count, said, wanted, dict(arrived))


def is_settled(nodes: Iterable[LiveNode]) -> bool:
    """Whether all subscriptions stand, as far as nodes know, and no attribute has two rendezvous."""
    seen = [node.control.ask(ListContent()) for node in nodes]
    held = [attribute for each in seen for attribute in each.rendezvous]
    return all(each.settled for each in seen) and len(held) == len({*held})


Said = list[tuple[Publication, ContentSaid]]


def said_at_once(nodes: dict[str, LiveNode], publications: list[Publication]) -> Said:
    """Everybody says what it has to say; returns when all know what became of it."""

    def say(one: Publication) -> tuple[Publication, ContentSaid]:
        return one, nodes[one.node].control.ask(SayContent(one.attributes, body=one.body))

    with ThreadPoolExecutor(len(publications)) as pool:
        return list(pool.map(say, publications))


def expected(workload: Workload, said: Said) -> set[tuple[str, str]]:
    """Pairs of a node and an event that it wants."""
    asked = [(name, read_predicate(text)) for name, text in workload.subscriptions()]
    return {
        (name, event_text(reply.event))
        for one, reply in said
        for name, predicate in asked
        if predicate.covers(read_attributes(one.attributes))
    }


def told(
    variant: Variant,
    course: Course,
    count: int,
    said: Said,
    wanted: set[tuple[str, str]],
    arrived: dict[tuple[str, str], float],
) -> Burst:
    """In numbers."""
    latencies = [1000.0 * arrived[pair] for pair in wanted if pair in arrived]
    return Burst(
        variant=variant,
        nodes=count,
        publishers=len(said),
        expected=len(wanted),
        missing=len(wanted - arrived.keys()),
        undelivered_told=sum(reply.missed for _, reply in said),
        mean_ms=round(statistics.fmean(latencies), 1),
        median_ms=round(statistics.median(latencies), 1),
        longest_ms=round(max(latencies), 1),
        published_mean_ms=float(BURST_MS[variant]) if course is Course.EVENT_BURST else None,
    )


def waited(is_so: Callable[[], bool], seconds: float) -> bool:
    """Whether it became so in time."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def main() -> None:
    """Measure, and print a line of JSON for each variant."""
    parser = argparse.ArgumentParser(prog="python -m bench.content_live", description=__doc__)
    parser.add_argument("--nodes", type=int, default=30)
    parser.add_argument("--variant", default=",".join(BURST_MS), help="one or more, with commas")
    parser.add_argument("--course", type=Course, default=Course.EVENT_BURST, choices=list(Course)[:3])
    asked = parser.parse_args()
    for variant in map(Variant, asked.variant.split(",")):
        with tempfile.TemporaryDirectory() as directory:
            burst = run(Path(directory), asked.nodes, variant, asked.course)
        print(msgspec.json.encode(burst).decode(), flush=True)


if __name__ == "__main__":
    main()
