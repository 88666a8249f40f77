"""Sleep by command and by turns."""

from __future__ import annotations

from linnet.core.effects import CancelTimer, SetTimer
from linnet.edge.config import EdgeConfig
from linnet.machine.outbox import Outbox
from linnet.peer.edge import SleepDue, SleepSchedule, WakeDue

SLEEP, WAKE = SleepDue(), WakeDue()


def test_without_battery_mode_only_the_word_changes_anything() -> None:
    out = Outbox()
    sleeping = SleepSchedule(EdgeConfig(), out)
    sleeping.start()
    assert out.take() == []
    sleeping.fall_asleep(told=True)
    assert out.take() == [CancelTimer(SLEEP), CancelTimer(WAKE)]
    assert sleeping.asleep
    assert not sleeping.is_interruptible
    sleeping.wake_up()
    assert out.take() == [CancelTimer(WAKE)]
    assert not sleeping.asleep


def test_in_battery_mode_it_goes_by_turns_and_the_application_ends_sleep() -> None:
    out = Outbox()
    sleeping = SleepSchedule(EdgeConfig(battery=True, awake=10.0, asleep=600.0), out)
    sleeping.start()
    assert out.take() == [SetTimer(10.0, SLEEP)]
    assert not sleeping.is_interruptible
    sleeping.fall_asleep(told=False)
    assert out.take() == [SetTimer(600.0, WAKE)]
    assert sleeping.is_interruptible
    sleeping.wake_up()
    assert out.take() == [CancelTimer(WAKE), SetTimer(10.0, SLEEP)]


def test_who_was_told_to_sleep_is_not_woken_by_the_turn_or_the_application() -> None:
    out = Outbox()
    sleeping = SleepSchedule(EdgeConfig(battery=True), out)
    sleeping.fall_asleep(told=False)
    out.take()
    sleeping.fall_asleep(told=True)
    assert out.take() == [CancelTimer(SLEEP), CancelTimer(WAKE)]
    assert not sleeping.is_interruptible
    sleeping.fall_asleep(told=False)
    assert out.take() == [CancelTimer(SLEEP), CancelTimer(WAKE)]
