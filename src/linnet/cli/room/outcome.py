"""Telling what became of something that was said or done in a room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.cli.output import counted, say, say_json

if TYPE_CHECKING:
    from linnet.node.room_types import SentReply


def tell_sent(reply: SentReply, words: str, as_json: bool) -> None:
    """What was done, and to whom the event went at once."""
    if as_json:
        say_json(reply)
        return
    say(words)
    say(f"sent to {went_to(reply)}")


def went_to(reply: SentReply) -> str:
    """To whom an event went at once."""
    members = counted(reply.neighbors, "member") + " online" if reply.neighbors else ""
    relays = counted(len(reply.relays), "relay") if reply.relays else ""
    if not members and not relays:
        return "nobody yet: it goes out when a member or relay appears"
    return " and ".join(filter(None, (members, relays)))
