from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from linnet.api.items import Alarm, EventView, WarningView
from linnet.api.rooms import KnownMember
from linnet.cli.room.words import Names, alarm_text, event_line, spoken
from linnet.core.ids import AuthorId
from linnet.identity.text import person_text
from linnet.rooms.event_types import Membership


def member(person: AuthorId, label: str) -> KnownMember:
    return KnownMember(person, label, Membership.JOIN, 0, False, (), False)


ADA, BEA, CAL = AuthorId(b"a" * 32), AuthorId(b"b" * 32), AuthorId(b"c" * 32)


ADA_TEXT, BEA_TEXT, CAL_TEXT = map(person_text, (ADA, BEA, CAL))


def test_a_label_if_there_is_one() -> None:
    names = Names([member(ADA, "ada"), member(BEA, "")])
    assert names.of(ADA) == "ada"
    assert names.of(BEA) == BEA_TEXT[:9] + "…"
    assert names.of(CAL) == CAL_TEXT[:9] + "…"


def test_nobody_passes_for_another() -> None:
    names = Names([member(ADA, "ada"), member(BEA, "ada"), member(CAL, "you")], own=ADA)
    assert names.of(ADA) == "you"
    assert names.of(BEA) == f"ada ({BEA_TEXT[:9]}…)"
    assert names.of(CAL) == f"you ({CAL_TEXT[:9]}…)"


def test_a_card_brings_a_name() -> None:
    names = Names()
    names.learn(ADA_TEXT, "ada")
    names.learn(BEA_TEXT, None)
    assert (names.of(ADA_TEXT), names.of(BEA)) == ("ada", BEA_TEXT[:9] + "…")
    names.learn(BEA_TEXT, "ada")
    assert names.of(ADA) == f"ada ({ADA_TEXT[:9]}…)"


def test_a_name_is_only_shown() -> None:
    assert Names([member(ADA, "\x1b[2Jada")]).of(ADA) == r"\x1b[2Jada"


ADA_KEY, BEA_KEY = "lp1ada", "lp1bea"


DEVICE = "ld1" + "x" * 56


def event(
    kind: str, text: str | None = None, key: str | None = None, content: dict[str, Any] | None = None
) -> EventView:
    body = b"\xff\xfe" if text is None else text.encode()
    return EventView(
        "le1" + "e" * 56,
        "lt1",
        ADA_KEY,
        "00",
        kind,
        0,
        body,
        text=text,
        key=key,
        label="ada",
        content=content,
    )


def said(view: EventView) -> str:
    names = Names()
    names.learn(BEA_KEY, "bea")
    line = event_line(view, names)
    assert re.match(r"\d\d:\d\d ", line)
    return line[6:]


def membership(what: str, key: str = BEA_KEY, reason: str | None = None, by: str | None = None) -> EventView:
    return event("member", key=key, content={"membership": what, "reason": reason, "invited_by": by})


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (event("message", "hello"), "ada: hello"),
        (event("message"), "ada: (2 bytes that are no text)"),
        (event("create", key="", content={}), "* ada founded the room"),
        (membership("join", ADA_KEY), "* ada joined"),
        (membership("join", ADA_KEY, by=BEA_KEY), "* ada joined, invited by bea"),
        (membership("leave", ADA_KEY), "* ada left"),
        (membership("leave", reason="spam"), "* ada removed bea: spam"),
        (membership("ban"), "* ada banned bea"),
        (membership("invite"), "* ada invited bea"),
        (membership("knock", ADA_KEY), "* ada would like to join"),
        (event("name", "tea", ""), "* ada set the name to 'tea'"),
        (event("power", key="", content={"users": {}}), "* ada changed the power levels"),
        (event("join_rules", key="", content={"rule": "public"}), "* ada decided who may join: public"),
        (event("relay", key=DEVICE, content={"active": True}), "* ada added the relay ld1xxxxxxxxx…"),
        (event("relay", key=DEVICE, content={"active": False}), "* ada took out the relay ld1xxxxxxxxx…"),
        (
            event("retention", key="", content={"max_lifetime_ms": 7_200_000}),
            "* ada let relays keep events for 2h 0m",
        ),
        (
            event("retention", key="", content={"max_lifetime_ms": None}),
            "* ada let relays keep events as long as they can",
        ),
        (event("revocation", key="", content={"device": "00"}), "* ada took the device 00 out of use"),
        (
            event("redaction", content={"event": "le1" + "f" * 56, "reason": "typo"}),
            "* ada took back le1fffffffff…: typo",
        ),
        (
            event("attachment", content={"name": "cat.png", "size": 2500}),
            "* ada attached cat.png (2.5 kB), to be fetched by le1eeeeeeeeeee",
        ),
        (event("mood", "sunny", "today"), "* ada set mood 'today': sunny"),
        (event("poll"), "* ada sent poll: 2 bytes"),
        (event("member", content={"malformed": "x"}), "* ada said something that cannot be read (member)"),
    ],
)
def test_every_event_in_words(view: EventView, words: str) -> None:
    assert said(view) == words


def test_nobody_can_speak_as_another() -> None:
    assert said(event("message", "hi\n12:00 bea: I agree")) == "ada: hi\n      12:00 bea: I agree"
    assert said(membership("ban", reason="x\n12:00 bea: hi")) == r"* ada banned bea: x\n12:00 bea: hi"
    assert "\x1b" not in said(event("message", "\x1b[2J"))
    assert spoken(event("message", "a\u202eb"), Names()) == r"a\u202eb"


def test_a_doubtful_time_is_marked() -> None:
    said = event("message", "hi")
    assert event_line(said, Names())[5:] == " ada: hi"
    assert event_line(replace(said, doubtful=True), Names())[5:] == "? ada: hi"
    assert event_line(replace(said, doubtful=True, time=2**63 - 1), Names()) == "--:--? ada: hi"


def test_a_mark_stands_behind_the_time() -> None:
    assert event_line(event("message", "a\nb"), Names(), "✓")[6:] == "✓ ada: a\n        b"


@pytest.mark.parametrize(("by", "words"), [(BEA_KEY, "redacted by bea"), (ADA_KEY, "redacted by its author")])
def test_what_was_taken_back_says_by_whom(by: str, words: str) -> None:
    view = replace(event("message", ""), unreadable="redacted", redacted_by=by)
    assert said(view) == f"ada: ({words})"


EVE, ADA_ID = "lp1" + "e" * 56, "lp1" + "a" * 56


@pytest.mark.parametrize("alarm", list(Alarm))
def test_each_names_whom_it_is_about_and_what_is_grave_is_marked(alarm: Alarm) -> None:
    is_device = alarm in (Alarm.NEW_DEVICE, Alarm.OWN_DEVICE)
    warning = WarningView(alarm, EVE, "ada", None if is_device else ADA_ID, "0102" if is_device else None)
    line = alarm_text(warning)
    grave = alarm in (Alarm.VERIFIED_NAME, Alarm.OWN_NAME, Alarm.OWN_DEVICE)
    assert line.startswith("!!! " if grave else "! ")
    assert ("0102" if is_device else EVE[:19]) in line


def test_a_name_cannot_break_the_line() -> None:
    assert "\n" not in alarm_text(WarningView(Alarm.SAME_NAME, EVE, "x\n!!! all is well\x1b[2J", ADA_ID))
    assert "\x1b" not in alarm_text(WarningView(Alarm.SAME_NAME, EVE, "x\x1b[2J", ADA_ID))
