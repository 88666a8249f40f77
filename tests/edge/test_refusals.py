"""However much is refused: all of it is counted, and little is written."""

from __future__ import annotations

from linnet.core.reasons import Reason
from linnet.edge.refusals import Refusals
from linnet.trace.records import Kind, Record


def test_the_first_is_written_at_once_and_the_rest_as_one() -> None:
    refusals = Refusals()
    assert not refusals.is_open
    assert refusals.refused(Reason.FLOODING, "one") == [
        Record(Kind.REJECTED, reason=Reason.FLOODING, note="one")
    ]
    assert refusals.refused(Reason.FLOODING, "two") == []
    assert refusals.refused(Reason.FLOODING, "three") == []
    assert len(refusals.refused(Reason.MALFORMED, "four")) == 1
    assert refusals.is_open
    [rest] = refusals.end()
    assert (rest.reason, rest.events) == (Reason.FLOODING, 2)
    assert not refusals.is_open
    assert len(refusals.refused(Reason.FLOODING, "again")) == 1
    assert refusals.end() == []
