"""What Slack's subtypes of a message are here, and how fine its clock is."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.lab.sources.rows import LEFT_OUT

BOT = LEFT_OUT + "a bot said it"
UNKNOWN = "its subtype is not known"

_NOTICES = (
    *("join", "leave", "topic", "purpose", "name", "archive", "unarchive", "posting_permissions"),
    *("convert_to_private", "canvas_updated"),
)
_KINDS = {
    **dict.fromkeys(("", "msg", "message", "me_message", "thread_broadcast", "reply_broadcast"), "text"),
    **dict.fromkeys(("bot_message", "file_comment", "slackbot_response", "tombstone"), "text"),
    "file_share": "file",
    **{f"{place}_{what}": "notice" for place in ("channel", "group") for what in _NOTICES},
    **dict.fromkeys(("pinned_item", "unpinned_item", "bot_add", "bot_remove", "reminder_add"), "notice"),
    **dict.fromkeys(("huddle_thread", "sh_room_created", "bot_enable", "bot_disable"), "notice"),
}
_ABOUT_OTHERS = {
    "message_changed": LEFT_OUT + "an edit of another message",
    "message_deleted": LEFT_OUT + "the deletion of another message",
    "message_replied": LEFT_OUT + "news of a reply, which is there itself",
}

_COUNTERS = 50_000
"""Microseconds below which fractions are no time: Slack once counted the messages of a second there."""


def kind_of(subtype: str) -> str | None:
    """The kind of a message of this subtype; None if it is not used."""
    return _KINDS.get(subtype)


def reason_of(subtype: str) -> str:
    """Why a message of this subtype is not used."""
    return _ABOUT_OTHERS.get(subtype, UNKNOWN)


def granularity_of(times: Iterable[str]) -> str:
    """How fine the clock of these times, as Slack writes them, is: ``s`` if fractions only count."""
    fractions = (text.partition(".")[2] for text in times)
    fine = any(int(each[:6].ljust(6, "0")) >= _COUNTERS for each in fractions if each.isdecimal())
    return "ms" if fine else "s"
