"""The commands about names, as one group."""

from __future__ import annotations

from collections.abc import Callable

import typer

from linnet.cli.deferred import Deferred, Module, group
from linnet.cli.exits import EXIT_CODES

carry = Module("linnet.cli.name.carry")
list_ = Module("linnet.cli.name.list_")
petname = Module("linnet.cli.name.petname")
publish = Module("linnet.cli.name.publish")
remove = Module("linnet.cli.name.remove")
resolve = Module("linnet.cli.name.resolve")

Add = Callable[[typer.Typer, str, Deferred, str, Deferred], None]


def name_group(add: Add) -> typer.Typer:
    """``linnet name``, with `add` for how a command is put into a group."""
    name = group()
    known = group()
    add(name, "publish", publish.publish, "Say where a label leads.", publish.EPILOG)
    add(name, "resolve", resolve.resolve, "Where does an address lead?", resolve.EPILOG)
    add(name, "list", list_.list_, "What your zone says.", list_.EPILOG)
    add(name, "remove", remove.remove, "Take a label back.", remove.EPILOG)
    add(name, "export", carry.export, "Your records as a file.", carry.EXPORT_EPILOG)
    add(name, "import", carry.import_, "Keep records of such a file.", carry.IMPORT_EPILOG)
    add(known, "set", petname.set_, "Know a person by a name.", petname.SET_EPILOG)
    add(known, "list", petname.list_, "Whom you know.", petname.LIST_EPILOG)
    add(known, "remove", petname.remove, "Know them no longer.", petname.REMOVE_EPILOG)
    name.add_typer(known, name="petname", help="Whom you call what.", epilog=EXIT_CODES)
    return name
