"""Sleep by command and by turns."""

from __future__ import annotations

from linnet.core.effects import CancelTimer, SetTimer
from linnet.core.timers import Tick
from linnet.edge.proxy_config import EdgeConfig
from linnet.edge.sleeping import Sleeping

SLEEP, WAKE = Tick("sleeping", "sleep"), Tick("sleeping", "wake")


def test_without_battery_mode_only_the_word_changes_anything() -> None:
    sleeping = Sleeping(EdgeConfig())
    assert sleeping.start() == []
    assert sleeping.sleep(told=True) == [CancelTimer(SLEEP), CancelTimer(WAKE)]
    assert sleeping.asleep
    assert not sleeping.stir()
    assert sleeping.wake() == [CancelTimer(WAKE)]
    assert not sleeping.asleep


def test_in_battery_mode_it_goes_by_turns_and_the_application_ends_sleep() -> None:
    sleeping = Sleeping(EdgeConfig(battery=True, awake=10.0, asleep=600.0))
    assert sleeping.start() == [SetTimer(10.0, SLEEP)]
    assert not sleeping.stir()
    assert sleeping.sleep(told=False) == [SetTimer(600.0, WAKE)]
    assert sleeping.stir()
    assert sleeping.wake() == [CancelTimer(WAKE), SetTimer(10.0, SLEEP)]


def test_who_was_told_to_sleep_is_not_woken_by_the_turn_or_the_application() -> None:
    sleeping = Sleeping(EdgeConfig(battery=True))
    sleeping.sleep(told=False)
    assert sleeping.sleep(told=True) == [CancelTimer(SLEEP), CancelTimer(WAKE)]
    assert not sleeping.stir()
    assert sleeping.sleep(told=False) == [CancelTimer(SLEEP), CancelTimer(WAKE)]
