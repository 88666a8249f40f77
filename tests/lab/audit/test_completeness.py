"""What was owed to each reader, against sums over every pair."""

from __future__ import annotations

from tests.lab.audit.stage import Staged
from tests.lab.audit.tales import GRACE_US, Oracle, Tale

from linnet.lab.audit.completeness import completeness_of
from linnet.lab.audit.fates import NOT_OWED, Fate


def test_nothing_is_left_over(staged: Staged, oracle: Oracle, tale: Tale) -> None:
    missing = staged.missing(GRACE_US)
    rows = completeness_of(staged.readers, staged.delays, missing, staged.activity, staged.nodes).collect()
    fates = oracle.missing()
    readers = oracle.readers()
    assert {(row.topic, row.receiver) for row in rows} == {(t.hex(), n.hex()) for t, n in readers}
    for row in rows:
        topic, node = bytes.fromhex(row.topic), bytes.fromhex(row.receiver)
        begin = readers[topic, node][0]
        mine = [fate for (event, who), fate in fates.items() if event[0] == topic and who == node]
        came = [event for event, who in oracle.arrivals if event[0] == topic and who == node]
        known = [event for event in came if event in oracle.published]
        owed = [event for event in known if oracle.published[event][1] >= begin]
        assert row.delivered == len(owed)
        assert (row.history, row.unpublished) == (len(known) - len(owed), len(came) - len(known))
        for fate in Fate:
            if fate not in NOT_OWED:
                assert row[fate.value] == mine.count(fate.value)
        assert row.not_owed == sum(mine.count(fate.value) for fate in NOT_OWED)
        assert row.owed == len(owed) + len(mine) - row.not_owed
        about = [each for each in tale.rows if each.node == node and each.topic == topic]
        assert row.duplicates == sum(each.events for each in about if each.kind == "duplicate")
        assert row.gaps_filled == sum(each.note == "gap filled" for each in about)
        assert row.resent == sum(each.events for each in about if each.kind == "resync" and each.note is None)
