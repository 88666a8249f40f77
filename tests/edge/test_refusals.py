"""However much is refused: all of it is counted, and little is written."""

from __future__ import annotations

from tests.delivery.voices import asked

from linnet.core.effects import SetTimer
from linnet.core.reasons import Reason
from linnet.edge.presence import Refusals, RefusalsDue
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record


def test_the_first_is_written_at_once_and_the_rest_as_one() -> None:
    out = Outbox()
    refusals = Refusals(out)
    first = Record(Kind.REJECTED, reason=Reason.FLOODING, note="one")
    window = SetTimer(1.0, RefusalsDue())
    assert asked(out, refusals.note_refusal, Reason.FLOODING, "one") == [first, window]
    assert asked(out, refusals.note_refusal, Reason.FLOODING, "two") == []
    assert asked(out, refusals.note_refusal, Reason.FLOODING, "three") == []
    assert len(asked(out, refusals.note_refusal, Reason.MALFORMED, "four")) == 1
    [rest] = asked(out, refusals.end_window)
    assert (rest.reason, rest.events) == (Reason.FLOODING, 2)
    assert asked(out, refusals.note_refusal, Reason.FLOODING, "one") == [first, window]
    assert asked(out, refusals.end_window) == []
