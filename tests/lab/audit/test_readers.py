"""Who takes part, and who was online, against a loop over the rows."""

from __future__ import annotations

from tests.lab.audit.stage import Staged
from tests.lab.audit.tales import Oracle, Tale, us

from linnet.lab.audit.readers import sessions_of


def test_readers_are_those_who_subscribed_joined_or_were_handed_something(
    staged: Staged, oracle: Oracle
) -> None:
    found = {
        (bytes(row.topic), staged.name(row.receiver)): (row.begin_us, row.end_us, row.lasting, row.own)
        for row in staged.readers.collect()
    }
    assert found == oracle.readers()


def test_switches_say_who_took_part_at_any_time(staged: Staged, oracle: Oracle, tale: Tale) -> None:
    times = [us(row) for row in tale.rows[::7]]
    for row in staged.readers.collect():
        for time in times:
            before = [switch for switch in row.switches if switch.us <= time]
            state = oracle.state(staged.name(row.receiver), bytes(row.topic), time)
            assert (before[-1].on if before else None) == (None if state is None else state[0])


def test_sessions_end_with_their_last_rows(staged: Staged, tale: Tale) -> None:
    for row in sessions_of(staged.activity, staged.nodes).collect():
        mine = [each for each in tale.rows if each.node == staged.name(row.number)]
        for end in row.ends:
            run = [each for each in mine if sum(s <= us(each) for s in row.sessions) == end.session]
            assert end.end_us == max(map(us, run))
            assert end.clean == any(each.kind == "offline" for each in run)
