from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from linnet.cli.room.names import Names
from linnet.cli.room.wording import event_line, spoken
from linnet.node.control_types import EventView

ADA, BEA = "lp1ada", "lp1bea"
DEVICE = "ld1" + "x" * 56


def event(
    kind: str, text: str | None = None, key: str | None = None, content: dict[str, Any] | None = None
) -> EventView:
    body = b"\xff\xfe" if text is None else text.encode()
    return EventView(
        "le1" + "e" * 56, "lt1", ADA, "00", kind, 0, body, text=text, key=key, label="ada", content=content
    )


def said(view: EventView) -> str:
    names = Names()
    names.learn(BEA, "bea")
    line = event_line(view, names)
    assert re.match(r"\d\d:\d\d ", line)
    return line[6:]


def membership(what: str, key: str = BEA, reason: str | None = None, by: str | None = None) -> EventView:
    return event("member", key=key, content={"membership": what, "reason": reason, "invited_by": by})


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (event("message", "hello"), "ada: hello"),
        (event("message"), "ada: (2 bytes that are no text)"),
        (event("create", key="", content={}), "* ada founded the room"),
        (membership("join", ADA), "* ada joined"),
        (membership("join", ADA, by=BEA), "* ada joined, invited by bea"),
        (membership("leave", ADA), "* ada left"),
        (membership("leave", reason="spam"), "* ada removed bea: spam"),
        (membership("ban"), "* ada banned bea"),
        (membership("invite"), "* ada invited bea"),
        (membership("knock", ADA), "* ada would like to join"),
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


def test_a_mark_stands_behind_the_time() -> None:
    assert event_line(event("message", "a\nb"), Names(), "✓")[6:] == "✓ ada: a\n        b"


@pytest.mark.parametrize(("by", "words"), [(BEA, "redacted by bea"), (ADA, "redacted by its author")])
def test_what_was_taken_back_says_by_whom(by: str, words: str) -> None:
    view = replace(event("message", ""), unreadable="redacted", redacted_by=by)
    assert said(view) == f"ada: ({words})"
