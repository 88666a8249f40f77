"""All commands about content: name, what it does, in a few words, examples."""

from __future__ import annotations

from linnet.cli.deferred import Deferred, Module

advertise = Module("linnet.cli.content.advertise")
groups = Module("linnet.cli.content.groups")
list_ = Module("linnet.cli.content.list_")
publish = Module("linnet.cli.content.publish")
subscribe = Module("linnet.cli.content.subscribe")
unsubscribe = Module("linnet.cli.content.unsubscribe")

COMMANDS: tuple[tuple[str, Deferred, str, Deferred], ...] = (
    ("subscribe", subscribe.subscribe, "Print what a predicate accepts.", subscribe.EPILOG),
    ("publish", publish.publish, "Say something with attributes.", publish.EPILOG),
    ("advertise", advertise.advertise, "Serve a group of your own.", advertise.EPILOG),
    ("groups", groups.groups, "Groups of yours, and of others.", groups.EPILOG),
    ("list", list_.list_, "Subscriptions, and what is carried.", list_.EPILOG),
    ("unsubscribe", unsubscribe.unsubscribe, "End a kept subscription.", unsubscribe.EPILOG),
)
