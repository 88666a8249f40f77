"""All commands about content: name, what it does, in a few words, examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linnet.cli.content import advertise, groups, list_, publish, subscribe, unsubscribe

COMMANDS: tuple[tuple[str, Callable[..., Any], str, str], ...] = (
    ("subscribe", subscribe.subscribe, "Print what a predicate accepts.", subscribe.EPILOG),
    ("publish", publish.publish, "Say something with attributes.", publish.EPILOG),
    ("advertise", advertise.advertise, "Serve a group of your own.", advertise.EPILOG),
    ("groups", groups.groups, "Groups of yours, and of others.", groups.EPILOG),
    ("list", list_.list_, "Subscriptions, and what is carried.", list_.EPILOG),
    ("unsubscribe", unsubscribe.unsubscribe, "End a kept subscription.", unsubscribe.EPILOG),
)
