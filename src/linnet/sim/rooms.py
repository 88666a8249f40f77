"""The scenario of ``linnet sim rooms``: people who come and go, and what of their talk arrives."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from linnet.delivery.commands import Declined
from linnet.event.event import MESSAGE, Event
from linnet.rooms.commands import ExamineLedger, ExamineState
from linnet.rooms.content import CONTROL_KINDS
from linnet.rooms.results import LedgerIs, StateIs
from linnet.rooms.room_store import RoomMemory
from linnet.sim.judge import Judge
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.oracle import Oracle
from linnet.sim.rooms_report import RoomsReport
from linnet.sim.rooms_scenario import Course, RoomScenario
from linnet.sim.rooms_world import RoomsWorld
from linnet.trace.columns import ColumnTrace

Progress = Callable[[float, str], None]

_SHOWN = 5
_LEDGER_LINES = 100_000


def run_rooms(
    scenario: RoomScenario, trace: ColumnTrace | None = None, progress: Progress | None = None
) -> RoomsReport:
    """Run a scenario to its end and judge it. Equal scenarios give equal reports and traces."""
    tell = progress or _silent
    began = time.perf_counter()
    kept = ColumnTrace() if trace is None else trace
    links = LinkModel(named_latency(scenario.latency), scenario.jitter, scenario.loss)
    world = RoomsWorld(scenario.seed, scenario.peers, scenario.relays, links, kept)
    tell(0.0, "the room is set up")
    world.set_up()
    course = Course(scenario, world)
    course.appoint()
    course.run(tell)
    tell(0.85, "judging")
    oracle = Oracle(all_events(world))
    judge = Judge(world, oracle, list(kept.rows()))
    return RoomsReport(
        peers=scenario.peers,
        relays=scenario.relays,
        **_course(world, oracle, course),
        **_deliveries(judge),
        **_states(world, oracle),
        **_ledgers(world, judge),
        unauthorised_delivered=judge.unauthorised(),
        endangered=len(judge.endangered),
        soft_failed=len({event for soft in judge.evidence.soft.values() for event in soft}),
        duplicate_deliveries=world.repeated,
        causal_violations=judge.causal_violations(),
        virtual_seconds=world.network.elapsed,
        trace_sha256=kept.sha256(),
        wall_seconds=time.perf_counter() - began,
    )


def all_events(world: RoomsWorld) -> list[Event]:
    """Every event that some peer has, of those whose own event it is in any case."""
    found: dict[bytes, Event] = {}
    for name in world.peers:
        memory = RoomMemory(world.room, world.stores[name], rejected=1)
        for verified in (*memory.events(), *memory.early()):
            found.setdefault(verified.head, verified.events[0])
    return list(found.values())


def _course(world: RoomsWorld, oracle: Oracle, course: Course) -> dict[str, Any]:
    answers = world.network.answers
    events = oracle.events.values()
    said = [event for event in events if event.kind == MESSAGE]
    return {
        "events": len(events),
        "messages": len(said),
        "declined": sum(isinstance(answers.get(request), Declined) for request in course.requests),
        "banned": len(course.banned),
        "demoted": len(course.demoted),
        "offline_share": world.away / (course.ended - course.began) / len(world.peers),
    }


def _deliveries(judge: Judge) -> dict[str, Any]:
    pairs = list(judge.pairs())
    missing = [pair for pair in pairs if pair.seen_at is None]
    returns = [back for pair in pairs if (back := judge.first_return(pair)) is not None]
    return {
        "pairs": len(pairs),
        "delivered_share": 1 - len(missing) / len(pairs) if pairs else 1.0,
        "undelivered": tuple(
            f"{pair.event.kind} {pair.event.id.hex()[:8]} of {pair.said_at:.2f} s at {pair.name}"
            for pair in missing[:_SHOWN]
        ),
        "return_pairs": len(returns),
        "first_return_share": sum(returns) / len(returns) if returns else 1.0,
    }


def _states(world: RoomsWorld, oracle: Oracle) -> dict[str, Any]:
    """Members at the end, asked for their state."""
    wrong, digests, expected = 0, set(), oracle.state()
    joined = oracle.joined()
    for name in world.peers:
        if world.identities[name].author not in joined:
            continue
        state = world.obtain(name, ExamineState(world.room), StateIs)
        digests.add(state.digest)
        found = {(e.kind, e.key): e.event.id for e in state.entries if e.kind in CONTROL_KINDS}
        wrong += found != expected
    return {"distinct_states": len(digests), "states_wrong": wrong}


def _ledgers(world: RoomsWorld, judge: Judge) -> dict[str, Any]:
    lines = pending = 0
    lies: list[str] = []
    for name in world.peers:
        ledger = world.obtain(name, ExamineLedger(world.room, None, _LEDGER_LINES), LedgerIs)
        for event in ledger.events:
            for fate in event.members:
                lines += 1
                pending += judge.is_pending(event, fate)
                lie = judge.lies(name, event, fate, world.network.elapsed)
                lies += [] if lie is None else [lie]
    return {
        "ledger_lines": lines,
        "ledger_wrong": len(lies),
        "ledger_wrong_lines": tuple(lies[:_SHOWN]),
        "ledger_pending": pending,
    }


def _silent(done: float, what: str) -> None:
    """Nobody watches."""
