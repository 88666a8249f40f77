"""What came of the demo: a table per peer, and whether anything was lost."""

from __future__ import annotations

from msgspec import Struct

from linnet.cli.demo.story import Facts, Plan
from linnet.cli.demo.tally import PeerTally, publication_times, published_ids, tally
from linnet.cli.output import counted, say, say_json, say_table

_COLUMNS = (
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
        """Print it."""
        if as_json:
            say_json(self)
            return
        say_table(_COLUMNS, map(_row, self.peers))
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
