"""``linnet name resolve``: where an address leads, and by whose word."""

from __future__ import annotations

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.name.options import AddressArgument
from linnet.cli.name.passwords import PasswordFileOption, PasswordOption, read_password
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, warn

EPILOG = examples(
    "linnet name resolve music.alice",
    "linnet name resolve music.alice.bob --json | jq -r .place",
    "linnet name resolve club.alice --password",
    "linnet name resolve lp1…",
)


def resolve(
    address: AddressArgument,
    password: PasswordOption = False,
    password_file: PasswordFileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell the place that an address leads to, where it is entered, and by whose word each step is.

    It is read from the right: whom you call so, then one label after the other. What was found before also
    serves while nobody can be asked.
    """
    from linnet.cli.name.wording import fault_text, path_lines
    from linnet.cli.running_node import control
    from linnet.node.name_types import ResolveNameRequest

    secret = read_password(password, password_file)
    with control(home) as node:
        reply = node.resolve_name(ResolveNameRequest(address, secret))
    if as_json:
        say_json(reply)
        if reply.fault is not None:
            raise typer.Exit(ExitCode.FAILED)
        return
    if reply.place is None:
        for line in path_lines(reply):
            warn(line)
        raise Failure(fault_text(reply))
    say(reply.place)
    for contact in reply.contacts:
        say(f"enter at {contact}")
    for line in path_lines(reply):
        say(line)
