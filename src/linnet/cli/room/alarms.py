"""Warnings about people, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.cli.output import plain

if TYPE_CHECKING:
    from linnet.node.control_types import WarningView

_LETTERS = 19
"""Of an id: so many that nobody finds another key whose id begins with them."""


def alarm_text(warning: WarningView) -> str:
    """A warning as a line; three marks stand before what is grave."""
    name = repr(plain(warning.label))
    who = warning.person[:_LETTERS] + "…"
    other = "" if warning.other is None else warning.other[:_LETTERS] + "…"
    match warning.alarm.value:
        case "verified_name":
            words = f"!!! THIS {name} ({who}) IS NOT the {name} whom you verified ({other})"
            return f"{words}. Trust nothing that they say before you have compared safety numbers with them"
        case "own_name":
            return f"!!! somebody else ({who}) calls themselves as you do: {name}"
        case "same_name":
            words = f"! another person ({who}) is called {name}, as one whom you know ({other})"
            return f"{words}. Compare safety numbers: linnet room security ROOM --person {who[:-1]}"
        case "own_device":
            words = f"!!! there is a new device of yours: {warning.device}"
            return f"{words}. If it is not yours, your key was stolen: look at linnet id devices"
        case _:
            words = f"! a new device of {name} ({who}), whom you verified: {warning.device}"
            return f"{words}. Ask them whether it is theirs, then verify them again"
