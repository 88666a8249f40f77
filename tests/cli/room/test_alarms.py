from __future__ import annotations

import pytest

from linnet.cli.room.alarms import alarm_text
from linnet.node.control_types import WarningView
from linnet.node.known_people import Alarm

EVE, ADA = "lp1" + "e" * 56, "lp1" + "a" * 56


@pytest.mark.parametrize("alarm", list(Alarm))
def test_each_names_whom_it_is_about_and_what_is_grave_is_marked(alarm: Alarm) -> None:
    is_device = alarm in (Alarm.NEW_DEVICE, Alarm.OWN_DEVICE)
    warning = WarningView(alarm, EVE, "ada", None if is_device else ADA, "0102" if is_device else None)
    line = alarm_text(warning)
    grave = alarm in (Alarm.VERIFIED_NAME, Alarm.OWN_NAME, Alarm.OWN_DEVICE)
    assert line.startswith("!!! " if grave else "! ")
    assert ("0102" if is_device else EVE[:19]) in line


def test_a_name_cannot_break_the_line() -> None:
    assert "\n" not in alarm_text(WarningView(Alarm.SAME_NAME, EVE, "x\n!!! all is well\x1b[2J", ADA))
    assert "\x1b" not in alarm_text(WarningView(Alarm.SAME_NAME, EVE, "x\x1b[2J", ADA))
