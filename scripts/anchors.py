"""Hold seeded simulations against what they did before: a pure refactoring changes none of these.

    python scripts/anchors.py               # run all, exit 1 if one differs from tests/anchors.json
    python scripts/anchors.py rooms edge    # only those whose names have one of these in them
    python scripts/anchors.py --write       # keep what they do now

Each anchor has three digests. `trace` covers the records. `effects` covers every effect that a machine asked
for, in its order. `unordered` covers the same with the effects of each input sorted: it stays where two parts
of a node only change places within one input.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter

from linnet.content.config import ContentConfig
from linnet.core.effects import AfterCommit, CancelTimer, Deliver, SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.edge.commands import Sleep, Wake
from linnet.edge.config import EdgeConfig
from linnet.identity.text import Sort, to_text
from linnet.names.commands import PublishName, Resolved, ResolveName
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Effect, Handed, Start
from linnet.sim.content.scenario import ContentScenario, Course, run_content
from linnet.sim.groups.scenario import GroupScenario, run_groups
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.named_nodes import NamedNodes
from linnet.sim.nemesis.course import run_course
from linnet.sim.network import Network
from linnet.sim.overlay.course import run_overlay
from linnet.sim.overlay.scenario import OverlayScenario
from linnet.sim.places.scenario import PlacesScenario, run_places
from linnet.sim.rooms.scenario import RoomScenario, run_rooms
from linnet.sim.streams.course import run_streams
from linnet.sim.streams.world import StreamScenario
from linnet.sim.wires import Host
from linnet.trace.columns import ColumnTrace

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "tests" / "anchors.json"


class EffectDigest:
    """Every effect that simulated machines ask for. Timers count by their delay, whatever they are called."""

    def __init__(self) -> None:
        self.ordered = hashlib.sha256()
        self.unordered = hashlib.sha256()
        self.count = 0
        self._is_inside = False

    def __enter__(self) -> EffectDigest:
        self._perform = perform = Network._perform

        def digest_and_perform(network: Network, host: Host, effects: Sequence[Effect], now: float) -> None:
            # What waits for a commit is performed by a second call; it was counted with its input.
            if self._is_inside or not effects:
                return perform(network, host, effects, now)
            self.add(host.peer, effects, now)
            self._is_inside = True
            try:
                return perform(network, host, effects, now)
            finally:
                self._is_inside = False

        Network._perform = digest_and_perform  # type: ignore[method-assign, assignment]
        return self

    def __exit__(self, *_: object) -> None:
        Network._perform = self._perform  # type: ignore[method-assign]

    def add(self, peer: PeerId, effects: Sequence[Effect], now: float) -> None:
        """The effects of one input."""
        keys = [_key(effect) for effect in _flatten(effects)]
        self.count += len(keys)
        head = f"{now!r} {peer.hex()} "
        self.ordered.update((head + "\n".join(keys)).encode())
        self.unordered.update((head + "\n".join(sorted(keys))).encode())


def _flatten(effects: Sequence[Effect]) -> Iterator[Effect]:
    for effect in effects:
        if isinstance(effect, AfterCommit):
            yield from effect.effects
        else:
            yield effect


def _key(effect: Effect) -> str:
    if isinstance(effect, SetTimer):
        return f"set {effect.delay!r}"
    return "cancel" if isinstance(effect, CancelTimer) else repr(effect)


class NamesWorld(NamedNodes):
    """Nodes of a hash table that keeps names."""

    hints = ("sim://names",)
    patience, step = 120.0, 0.5

    def configured(self, name: str) -> PeerConfig:
        """Everybody begins with the first."""
        begin = () if name == "n0" else (self.contact("n0"),)
        return PeerConfig(
            listens=self.hints, kademlia=KademliaConfig(), kademlia_bootstrap=begin, content=ContentConfig()
        )

    def deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        """Nobody subscribes."""


def run_names() -> str:
    """A name is published, resolved, and resolved again without one of the nodes."""
    trace = ColumnTrace()
    world = NamesWorld(5, LinkModel(named_latency("aws"), 0.01, 0.02), trace)
    names = tuple(f"n{number}" for number in range(12))
    world.add(names)
    for name in names:
        world.obtain(name, Start(), object)
    world.network.run(60.0)
    place = Contact(world.peer("n1"), world.hints)
    world.obtain("n1", PublishName("music", TopicId(b"m" * 32), (place,)), object)
    world.network.run(world.network.elapsed + 60.0)
    address = f"music.{to_text(Sort.PERSON, world.identities['n1'].author)}"
    world.obtain("n7", ResolveName(address), Resolved)
    world.network.crash(world.peer("n3"))
    world.network.crash(world.peer("n1"), silent=True)
    world.obtain("n9", ResolveName(address), Resolved)
    world.network.run(world.network.elapsed + 600.0)
    return trace.sha256()


def run_edge() -> str:
    """Two mobiles behind two proxies, one of which falls; one mobile sleeps for a while."""
    from tests.edge.coast import Coast

    coast = Coast("p0", "p1", "q0", "q1", "m0", "m1", seed=8, loss=0.03, edge=EdgeConfig(at_once=2))
    for name in ("m0", "m1", "p1"):
        coast.subscribe(name, name="app", since=0.0, wait=3.0)
    for number in range(20):
        coast.publish(("p0", "m0", "p1", "m1")[number % 4], f"{number}", wait=0.7)
        if number == 6:
            coast.crash("q0", silent=True)
        if number == 9:
            coast.ask("m1", Sleep(), wait=0.0)
        if number == 13:
            coast.restart("q0")
            coast.ask("m1", Wake(), wait=0.0)
    coast.run(120.0)
    trace = hashlib.sha256()
    for peer, record in coast.notes.records:
        trace.update(f"{peer.hex()} {record!r}\n".encode())
    return trace.hexdigest()


def _nemesis(way: str, seed: int) -> Callable[[], str]:
    return lambda: run_course(way, seed).trace_sha256


ANCHORS: dict[str, Callable[[], str]] = {
    "streams near": lambda: (
        run_streams(StreamScenario(nodes=128, messages=30, near=True, seed=11)).trace_sha256
    ),
    "streams churn": lambda: (
        run_streams(
            StreamScenario(nodes=64, messages=30, loss=0.05, storage=2, churn=20, seed=3)
        ).trace_sha256
    ),
    "rooms loss": lambda: (
        run_rooms(RoomScenario(peers=8, relays=2, messages=60, loss=0.05, seed=3)).trace_sha256
    ),
    "rooms partition": lambda: (
        run_rooms(RoomScenario(peers=6, relays=2, messages=40, partition=60, seed=9)).trace_sha256
    ),
    "content fault": lambda: run_content(ContentScenario(nodes=40, course=Course.FAULT, seed=7)).trace_sha256,
    "places churn": lambda: (
        run_places(PlacesScenario(guests=30, messages=15, loss=0.05, churn=0.3, seed=5)).trace_sha256
    ),
    "overlay": lambda: (
        run_overlay(
            OverlayScenario(nodes=60, topics=10, subscriptions=3, rounds=10, warmup=10, seed=4)
        ).trace_sha256
    ),
    "groups": lambda: run_groups(GroupScenario(members=8, ops=40, seed=4)).trace_sha256,
    "names": run_names,
    "edge": run_edge,
    **{
        f"nemesis {way} {seed}": _nemesis(way, seed)
        for way in ("streams", "rooms", "places", "content")
        for seed in (1, 2, 3)
    },
}


def measure(name: str) -> dict[str, object]:
    """Run one anchor."""
    with EffectDigest() as digest:
        trace = ANCHORS[name]()
    return {
        "trace": trace,
        "effects": digest.ordered.hexdigest(),
        "unordered": digest.unordered.hexdigest(),
        "count": digest.count,
    }


def main(arguments: list[str]) -> int:
    """Compare, or with --write keep; the exit status."""
    sys.path.insert(0, str(ROOT))
    write = "--write" in arguments
    words = [word for word in arguments if not word.startswith("--")]
    chosen = [name for name in ANCHORS if not words or any(word in name for word in words)]
    kept: dict[str, dict[str, object]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    differing = []
    for name in chosen:
        began = perf_counter()
        found = measure(name)
        changed = [key for key, value in found.items() if kept.get(name, {}).get(key) != value]
        said = f"differs in {', '.join(changed)}" if changed else "equal"
        print(f"{name:20} {said:40} {found['count']:>8} effects {perf_counter() - began:6.1f} s", flush=True)
        differing += changed
        kept[name] = found
    if write:
        KEPT.write_text(json.dumps({name: kept[name] for name in ANCHORS if name in kept}, indent=1) + "\n")
        return 0
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
