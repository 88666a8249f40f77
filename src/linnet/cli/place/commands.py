"""All commands about places: name, what it does, in a few words, examples."""

from __future__ import annotations

from linnet.cli.deferred import Deferred, Module

admit = Module("linnet.cli.place.admit")
announce = Module("linnet.cli.place.announce")
eject = Module("linnet.cli.place.eject")
enter = Module("linnet.cli.place.enter")
guests = Module("linnet.cli.place.guests")
history = Module("linnet.cli.place.history")
host = Module("linnet.cli.place.host")
leave = Module("linnet.cli.place.leave")
list_ = Module("linnet.cli.place.list_")
look = Module("linnet.cli.place.look")
receipts = Module("linnet.cli.place.receipts")
reject = Module("linnet.cli.place.reject")
status = Module("linnet.cli.place.status")
talk = Module("linnet.cli.place.talk")
watch = Module("linnet.cli.place.watch")

COMMANDS: tuple[tuple[str, Deferred, str, Deferred], ...] = (
    ("host", host.host, "Found a place.", host.EPILOG),
    ("enter", enter.enter, "Enter a place by its address.", enter.EPILOG),
    ("list", list_.list_, "Every place of the node.", list_.EPILOG),
    ("status", status.status, "One place, and its address.", status.EPILOG),
    ("announce", announce.announce, "Say something to all guests.", announce.EPILOG),
    ("talk", talk.talk, "Say something to the host alone.", talk.EPILOG),
    ("watch", watch.watch, "Print what is said in a place.", watch.EPILOG),
    ("history", history.history, "Messages of the past.", history.EPILOG),
    ("look", look.look, "What a place is decorated with.", look.EPILOG),
    ("guests", guests.guests, "Who is in, and who waits.", guests.EPILOG),
    ("receipts", receipts.receipts, "Which guests have a message.", receipts.EPILOG),
    ("admit", admit.admit, "Let somebody in.", admit.EPILOG),
    ("reject", reject.reject, "Turn somebody away.", reject.EPILOG),
    ("eject", eject.eject, "Put a guest out.", eject.EPILOG),
    ("leave", leave.leave, "Be a guest no longer.", leave.EPILOG),
)
