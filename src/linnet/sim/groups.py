"""The run of ``linnet sim groups``: a group that is cut apart and robbed, and what becomes of it.

At the end all devices meet. Then it is asked whether members agree, whether all that should be readable was
read, and, with the help of a `Thief`, whether anything was readable that should not be.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from statistics import fmean
from typing import Any

from linnet.core.ids import EventId
from linnet.groups import agreement
from linnet.groups.bodies import Acks, decode_body
from linnet.groups.ids import MemberId
from linnet.groups.state import encode_state
from linnet.sim.groups_course import Course, Progress
from linnet.sim.groups_report import GroupScenario, GroupsReport
from linnet.sim.groups_world import GROUP, GroupNet
from linnet.sim.overheard import Theft, Thief, Watch

_SHOWN = 5


def run_groups(
    scenario: GroupScenario, thief: Thief, progress: Progress | None = None, keep_all: bool = False
) -> GroupsReport:
    """Run a scenario to its end and judge it. Equal scenarios give equal reports."""
    tell = progress or _silent
    began = time.perf_counter()
    course = Course(scenario, keep_all)
    course.run(tell)
    net = course.net
    troubles = [*divergences(net), *(each for machine in net.machines for each in machine.troubles)]
    tell(0.8, "breaking in")
    watch = thief(GROUP, net.overheard)
    verdicts = _thefts(course, watch)
    tell(0.9, "asking the removed")
    verdicts["leaked"] += leaks_to_removed(net, watch)
    updates = net.update_bytes()
    return GroupsReport(
        members=scenario.members,
        members_at_end=len(net.members()),
        ops=len(course.ops),
        updates=course.counts["update"],
        additions=course.counts["add"],
        removals=course.counts["remove"],
        leaves=course.counts["leave"],
        heals=course.counts["heal"],
        acks=sum(not each.clear and isinstance(decode_body(each.body), Acks) for each in net.overheard),
        messages=len(net.said),
        partitions=scenario.partitions,
        thefts=len(course.robberies),
        diverged=len(troubles),
        troubles=tuple(troubles[:_SHOWN]),
        **reading(net),
        **verdicts,
        bytes_per_update=round(fmean(updates), 1) if updates else 0.0,
        weak_starts=sum(machine.weak for machine in net.machines),
        trace_sha256=net.trace_sha256,
        wall_seconds=round(time.perf_counter() - began, 3),
    )


def divergences(net: GroupNet) -> Iterator[str]:
    """Members who see another group, or follow other keys, than the first of them; for when all have met."""
    members = [net.machines[place] for place in net.members()]
    if not members:
        return
    view = agreement.members(members[0].state)
    keys = {member: members[0].state.ratchets.get(member) for member in view}
    here = [machine.state.me for machine in members]
    if sorted(view) != sorted(member for member in here if member is not None):
        yield "the members are not those who think that they are"
    for machine in members:
        state = machine.state
        if agreement.members(state) != view:
            yield f"{machine.name} sees other members"
        elif {member: state.ratchets.get(member) for member in view} != keys or None in keys.values():
            yield f"{machine.name} follows other keys"
        elif agreement.pending_by_member(state):
            yield f"{machine.name} still waits for acknowledgements"


def reading(net: GroupNet) -> dict[str, int]:
    """Who read what should be read, and what should not."""
    present = {net.machines[place].state.me: net.machines[place] for place in net.members()}
    pairs = unreadable = late = misread = 0
    for said in net.said.values():
        for reader in said.readers:
            if reader in present:
                machine = present[reader]
                is_read = machine.opened.get((reader, said.id)) == said.text
                is_late = not is_read and said.by in machine.state.closed
                late += is_late
                pairs += not is_late
                unreadable += not is_read and not is_late
    for machine in net.machines:
        misread += sum(reader not in net.said[id].readers for reader, id in machine.opened)
    return {"pairs": pairs, "unreadable": unreadable, "late": late, "misread": misread}


def _thefts(course: Course, watch: Watch) -> dict[str, Any]:
    """What thieves of single states, and one of all of them, could read."""
    net, counts = course.net, dict.fromkeys(("safe", "leaked", "read", "unread"), 0)
    healed: list[int] = []
    unhealed = 0
    groups: list[list[Theft]] = [[robbery.theft] for robbery in course.robberies]
    if len(groups) > 1:
        groups.append([robbery.theft for robbery in course.robberies])
    for number, thefts in enumerate(groups):
        safe = watch.safe(thefts)
        reader = watch.reader()
        for theft in thefts:
            reader.steal(theft.state)
        read = reader.read()
        counts["safe"] += len(safe)
        counts["leaked"] += sum(id in safe for id in read)
        counts["read"] += sum(id not in safe for id in read)
        counts["unread"] += sum(id not in safe and id not in read for id in net.said)
        unhealed += any(id not in safe for id in course.last_words)
        if number < len(course.robberies):
            healed.append(_healed_after(course, number, safe))
    return {
        **counts,
        "healed_after_ops": round(fmean(healed), 2) if healed else 0.0,
        "healed_after_ops_max": max(healed, default=0),
        "unhealed": unhealed,
    }


def _healed_after(course: Course, number: int, safe: frozenset[EventId]) -> int:
    """Operations between a theft and the last message that is not safe from it."""
    robbery = course.robberies[number]
    last = max(
        (said.at for said in course.net.said.values() if said.at >= robbery.heard and said.id not in safe),
        default=robbery.heard,
    )
    return sum(robbery.heard <= at <= last for at, _ in course.ops)


def leaks_to_removed(net: GroupNet, watch: Watch, early: bool = False) -> int:
    """Messages that all whom their sender knew to be removed could read, with all states they ever had.

    With `early` those that were sent although healing was due, where nothing stands against that.
    """
    removed = watch.removed()
    by_removed: dict[frozenset[MemberId], list[EventId]] = {}
    for id, members in removed.items():
        if members and net.said[id].needed_heal is early:
            by_removed.setdefault(members, []).append(id)
    leaks = 0
    states = _states(net, {member: None for members in by_removed for member in members})
    for chain in _chains(by_removed):
        reader, robbed = watch.reader(), frozenset[MemberId]()
        for members in chain:
            for member in sorted(members - robbed):
                for data in states.get(member, ()):
                    reader.steal(data)
            robbed, read = members, reader.read()
            leaks += sum(id in read for id in by_removed[members])
    return leaks


def _chains(sets: Iterable[frozenset[MemberId]]) -> list[list[frozenset[MemberId]]]:
    """Sets in rows, each holding the one before: so one thief serves for a row."""
    chains: list[list[frozenset[MemberId]]] = []
    for members in sorted(sets, key=lambda each: (len(each), sorted(each))):
        fitting = next((chain for chain in chains if chain[-1] <= members), None)
        if fitting is None:
            chains.append([members])
        else:
            fitting.append(members)
    return chains


def _states(net: GroupNet, wanted: dict[MemberId, None]) -> dict[MemberId, list[bytes]]:
    """All states that were kept of these members, from before they joined and while they were in."""
    found: dict[MemberId, list[bytes]] = {}
    for machine in net.machines:
        before: dict[bytes, list[bytes]] = {}
        for state in machine.kept:
            identity = state.prekeys.identity.public
            if state.me is None:
                before.setdefault(identity, []).append(encode_state(state))
            elif state.me in wanted:
                found.setdefault(state.me, before.get(identity, [])[:]).append(encode_state(state))
    return found


def _silent(done: float, what: str) -> None:
    pass
