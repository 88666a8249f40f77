"""Addresses in words."""

from __future__ import annotations

import pytest

from linnet.cli.name.wording import HINTS, fault_text, leads_to_text, path_lines
from linnet.names.commands import Fault
from linnet.node.name_types import NameView, ResolveNameReply, StepView


def test_every_fault_has_a_way_out() -> None:
    assert set(HINTS) == {fault.value for fault in Fault}


def test_where_a_path_begins() -> None:
    for via, line in (
        ("petname", "bob: you call lp1b so"),
        ("key", "lp1b: you gave this key"),
        ("own", "lp1b: your own zone"),
    ):
        path = (StepView(via, "bob" if via == "petname" else "", None, "lp1b", None, None),)
        assert path_lines(ResolveNameReply("a", None, (), path, None)) == [line]


def test_in_our_own_zone_we_say_so_ourselves() -> None:
    path = (
        StepView("own", "", None, "lp1me", None, None),
        StepView("place", "music", "lp1me", "lt1p", None, "ld1d"),
    )
    lines = path_lines(ResolveNameReply("music", "lt1p", (), path, 1))
    assert lines[1] == "music: you say that it is the place lt1p"


@pytest.mark.parametrize("fault", list(Fault))
def test_a_fault_is_one_line(fault: Fault) -> None:
    reply = ResolveNameReply("x.bob", None, (), (), None, fault.value, "x", "lp1b", "for this\x1b[1m reason")
    text = fault_text(reply)
    assert text.startswith(f"x.bob: {fault.value.replace('_', ' ')}: for this\\x1b[1m reason; ")
    assert "\n" not in text


def test_what_a_label_leads_to() -> None:
    def name(place: str | None, zone: str | None, removed: bool = False) -> NameView:
        return NameView("x", False, place, (), zone, 1, 1, True, removed, ())

    assert leads_to_text(name("lt1", None)) == "lt1"
    assert leads_to_text(name("lt1", "lp1")) == "lt1 and the zone of lp1"
    assert leads_to_text(name(None, "lp1")) == "the zone of lp1"
    assert leads_to_text(name(None, None, True)) == "removed"
