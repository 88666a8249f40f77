"""The course of the demo, and its outcome, counted from the files that its processes wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from linnet.cli.demo.member import PUBLISHED, RECEIVED, Begin, PublishedLine, ReceivedLine
from linnet.cli.demo.network import Network, Process
from linnet.cli.exits import Failure
from linnet.cli.moments import wall_clock
from linnet.cli.output import counted, say, say_json, say_table
from linnet.core.quantiles import quantile, within_ms
from linnet.trace.jsonlines import FILE_NAME, Line
from linnet.trace.records import Kind

PUBLISHERS = 2
MIN_PEERS = PUBLISHERS + 1

KILL_PEER = 0.25
RETURN_PEER = 0.45
KILL_TRACKER = 0.55
"""The share of messages that are published before each event of the demo."""

_PACE = 125.0
"""Messages per second in total."""

_LONGEST = 18.0
_SLACK = 60.0
_DRAIN = 20.0
"""Seconds after the last message until which everything must have arrived everywhere."""

Tell = Callable[[str], None]
Progress = Callable[[int, int], None]


class Plan(Struct, frozen=True):
    """The settings of a demo."""

    peers: int
    messages: int
    seed: int

    @property
    def seconds(self) -> float:
        """The seconds that publishing takes."""
        return min(_LONGEST, max(4.0, self.messages / _PACE))


class Facts(Struct, frozen=True):
    """The course of a demo, as it was carried out or observed."""

    names: tuple[str, ...]
    homes: tuple[Path, ...]
    """The homes of the peers."""
    publishers: tuple[str, ...]
    killed: str
    seconds_away: float
    resumed: bool
    """Whether the killed peer found its durable subscription again."""
    takeover_seconds: float
    """From the death of the tracker until every peer follows the standby."""
    wall_seconds: float


class Story:
    """Runs the demo over a network that is about to start."""

    def __init__(self, plan: Plan, network: Network, tell: Tell, progress: Progress) -> None:
        self._plan = plan
        self._network = network
        self._tell = tell
        self._progress = progress

    async def run(self) -> Facts:
        """Run the demo, from the start of its processes to their end."""
        plan, network, began = self._plan, self._network, wall_clock()
        self._tell(f"starting a tracker, its standby, a storage node and {plan.peers} peers")
        await network.start()
        chosen = Random(plan.seed).sample(network.peers, MIN_PEERS)  # noqa: S311 - a choice, no secret
        *publishers, victim = chosen
        names = " and ".join(peer.name for peer in publishers)
        self._tell(f"everyone is linked; {names} publish {plan.messages:,} messages in {plan.seconds:.0f} s")
        for number, publisher in enumerate(publishers):
            share = (plan.messages + number) // PUBLISHERS
            publisher.begin(Begin(share, plan.seconds))
        seconds_away = await self._kill_and_return(publishers, victim)
        takeover = await self._kill_tracker(publishers)
        await self._published(publishers, 1.0)
        self._tell("all is published; waiting until it is everywhere")
        await self._drained()
        await network.stop()
        return Facts(
            tuple(peer.name for peer in network.peers),
            tuple(peer.home for peer in network.peers),
            tuple(peer.name for peer in publishers),
            victim.name,
            seconds_away,
            victim.resumed is True,
            takeover,
            wall_clock() - began,
        )

    async def _kill_and_return(self, publishers: list[Process], victim: Process) -> float:
        await self._published(publishers, KILL_PEER)
        await victim.kill()
        killed_at = wall_clock()
        self._tell(f"{victim.name} is killed (SIGKILL)")
        await self._published(publishers, RETURN_PEER)
        await self._network.restart(victim)
        await self._network.until(
            lambda: victim.resumed is not None and victim.state is not None and victim.state.neighbors > 0,
            _SLACK,
            f"{victim.name} did not return",
        )
        seconds = wall_clock() - killed_at
        self._tell(f"{victim.name} is back after {seconds:.1f} s and resumes where it was")
        return seconds

    async def _kill_tracker(self, publishers: list[Process]) -> float:
        await self._published(publishers, KILL_TRACKER)
        network = self._network
        await network.tracker.kill()
        killed_at = wall_clock()
        self._tell("the tracker is killed (SIGKILL), for good")
        standby = network.standby.ready
        if standby is None:
            raise Failure("the standby is not ready")
        await network.until(
            lambda: all(
                peer.state is not None and peer.state.tracker == standby.device for peer in network.peers
            ),
            _SLACK,
            "the standby did not take over",
        )
        seconds = wall_clock() - killed_at
        self._tell(f"the standby has taken over after {seconds:.1f} s")
        return seconds

    async def _published(self, publishers: list[Process], share: float) -> None:
        """Wait until this share of the messages is published."""
        wanted = share * self._plan.messages
        await self._network.until(
            lambda: self._shown() >= wanted, self._plan.seconds + _SLACK, "the publishers did not get on"
        )

    async def _drained(self) -> None:
        """Wait until every peer has as many events as were published, or nothing arrives any more."""
        peers, wanted = self._network.peers, self._plan.messages

        def everywhere() -> bool:
            self._shown()
            return min(map(_received, peers)) >= wanted

        # What is missing by then is counted by id, from the files.
        await self._network.holds(everywhere, _DRAIN)

    def _shown(self) -> int:
        peers = self._network.peers
        published = sum(0 if peer.state is None else peer.state.published for peer in peers)
        self._progress(published, sum(map(_received, peers)))
        return published


def _received(process: Process) -> int:
    return 0 if process.state is None else process.state.received


T = TypeVar("T")

Times: TypeAlias = dict[tuple[str, int], float]
"""When something happened to an event, by the event's device and sequence number."""


class PeerTally(Struct, frozen=True):
    """The counts of what one peer received."""

    peer: str
    delivered: int
    """Distinct events that its subscription handed over."""
    missing: int
    """Published events that it was not handed."""
    repeated: int
    """Events that it was handed again, after a crash."""
    duplicates: int
    """Copies that arrived over another path and were filtered out; from its trace."""
    p50_ms: float
    """From publication to delivery, including the time that it was away; from the traces."""
    p99_ms: float
    felt_p50_ms: float
    """From the call to publish until the application had it, including both applications' own delays."""
    felt_p99_ms: float
    gaps_filled: int
    """Gaps in chains that it noticed and closed; from its trace."""
    resent: int
    """Events that it received on request; from its trace."""
    reconnects: int
    """Links to peers to which it had been linked before; from its trace."""
    foreign: int
    """Events that nobody published: forged or damaged ones."""


def published_ids(homes: Iterable[Path]) -> dict[str, None]:
    """Return the id of every event that a publisher's node accepted."""
    return {line.id: None for home in homes for line in _lines(home / PUBLISHED, PublishedLine)}


def publication_times(homes: Iterable[Path]) -> Times:
    """Return when each event was published, by the publishers' traces."""
    return {
        (row.device, place): row.time
        for home in homes
        for row in _rows(home / "trace" / FILE_NAME)
        if row.kind is Kind.PUBLISHED and row.device is not None and row.seq is not None
        for place in range(row.seq, row.seq + row.events)
    }


def tally(name: str, home: Path, published: dict[str, None], times: Times) -> PeerTally:
    """Count what one peer received, from its own files."""
    first: dict[str, int] = {}
    repeated = 0
    for line in _lines(home / RECEIVED, ReceivedLine):
        if not line.id:
            continue
        if line.id in first:
            repeated += 1
        else:
            first[line.id] = _microseconds(line.at, line.got)
    felt = sorted(first.values())
    traced = _Traced(home / "trace" / FILE_NAME)
    delays = sorted(
        _microseconds(times[event], time) for event, time in traced.delivered.items() if event in times
    )
    return PeerTally(
        peer=name,
        delivered=len(first),
        missing=sum(id not in first for id in published),
        repeated=repeated,
        duplicates=traced.duplicates,
        p50_ms=_within(delays, 0.50),
        p99_ms=_within(delays, 0.99),
        felt_p50_ms=_within(felt, 0.50),
        felt_p99_ms=_within(felt, 0.99),
        gaps_filled=traced.gaps_filled,
        resent=traced.resent,
        reconnects=traced.reconnects,
        foreign=sum(id not in published for id in first),
    )


def _microseconds(begin: float, end: float) -> int:
    """Return a delay as the lab's audit does: a negative one, from a clock that is ahead, counts as 0."""
    return max(0, round(end * 1_000_000) - round(begin * 1_000_000))


def _within(delays: list[int], share: float) -> float:
    return float(within_ms(quantile(delays, share) or 0))


class _Traced:
    """The counts of what the trace of one node records."""

    def __init__(self, path: Path) -> None:
        self.duplicates = 0
        self.gaps_filled = 0
        self.resent = 0
        self.reconnects = 0
        self.delivered: dict[tuple[str, int], float] = {}
        """When each event was first handed over."""
        linked: dict[str, None] = {}
        for row in _rows(path):
            if row.kind is Kind.DUPLICATE:
                self.duplicates += row.events
            elif row.kind is Kind.DELIVERED and row.device is not None and row.seq is not None:
                for place in range(row.seq, row.seq + row.events):
                    self.delivered.setdefault((row.device, place), row.time)
            elif row.kind is Kind.RESYNC and row.note is not None:
                self.gaps_filled += row.note == "gap filled"
            elif row.kind is Kind.RESYNC:
                self.resent += row.events
            elif row.kind is Kind.LINK_UP and row.peer is not None:
                self.reconnects += row.peer in linked
                linked[row.peer] = None


def _rows(path: Path) -> Iterator[Line]:
    """Yield the rows of a trace; a killed process may leave its last line incomplete."""
    decoder = msgspec.json.Decoder(Line)
    for raw in _whole_lines(path):
        if not raw.startswith(b'{"linnet_trace"'):
            yield decoder.decode(raw)


def _lines(path: Path, kind: type[T]) -> Iterator[T]:
    decoder = msgspec.json.Decoder(kind)
    return (decoder.decode(raw) for raw in _whole_lines(path))


def _whole_lines(path: Path) -> list[bytes]:
    if not path.exists():
        return []
    *whole, _ = path.read_bytes().split(b"\n")
    return whole


_PEER_COLUMNS = (
    "peer",
    "delivered ",
    "missing ",
    "duplicates ",
    "p50 ms ",
    "p99 ms ",
    "gaps filled ",
    "reconnects ",
)


class Outcome(Struct, frozen=True):
    """The numbers of one run."""

    ok: bool
    missing: int
    published: int
    peers: tuple[PeerTally, ...]
    publishers: tuple[str, ...]
    killed: str
    seconds_away: float
    resumed: bool
    takeover_seconds: float
    wall_seconds: float
    verdict: str

    @classmethod
    def of(cls, plan: Plan, facts: Facts) -> Outcome:
        """Count what the processes wrote."""
        published, times = published_ids(facts.homes), publication_times(facts.homes)
        peers = tuple(
            tally(name, home, published, times) for name, home in zip(facts.names, facts.homes, strict=True)
        )
        missing = sum(peer.missing for peer in peers)
        wrong = []
        if len(published) != plan.messages:
            wrong.append(f"{len(published)} of {counted(plan.messages, 'message')} were published")
        if missing:
            wrong.append(f"{missing} deliveries are missing")
        if foreign := sum(peer.foreign for peer in peers):
            wrong.append(f"{counted(foreign, 'event')} came that nobody published")
        if not facts.resumed:
            wrong.append(f"{facts.killed} did not find its durable subscription again")
        return cls(
            not wrong,
            missing,
            len(published),
            peers,
            facts.publishers,
            facts.killed,
            facts.seconds_away,
            facts.resumed,
            facts.takeover_seconds,
            facts.wall_seconds,
            "; ".join(wrong) or "nothing was lost",
        )

    def show(self, as_json: bool) -> None:
        """Print the numbers."""
        if as_json:
            say_json(self)
            return
        say_table(_PEER_COLUMNS, map(_row, self.peers))
        publishers = " and ".join(self.publishers)
        say(f"{counted(self.published, 'message')} from {publishers}, {self.wall_seconds:.1f} s in all")
        say(f"{self.killed} was away for {self.seconds_away:.1f} s and resumed its durable subscription")
        say(f"the tracker was killed for good, its standby took over in {self.takeover_seconds:.1f} s")
        say(f"missing: {self.missing}")


def _row(peer: PeerTally) -> tuple[object, ...]:
    return (
        peer.peer,
        peer.delivered,
        peer.missing,
        peer.duplicates,
        f"{peer.p50_ms:,.1f}",
        f"{peer.p99_ms:,.1f}",
        peer.gaps_filled,
        peer.reconnects,
    )
