"""``linnet name list``: what your zone says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, say_table

if TYPE_CHECKING:
    from linnet.node.name_types import NameView

EPILOG = examples("linnet name list", "linnet name list --json | jq '.names[] | {label, told}'")

_COLUMNS = ("label", "leads to", "until", "renewed", "password", "kept by ", "refused by ")


def list_(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the labels of your zone that this device wrote, until when they are good and how many keep them.

    Removed ones are shown for as long as others have to be told so.
    """
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.names()
    if as_json:
        say_json(reply)
        return
    say(f"your zone is {reply.zone}")
    if reply.names:
        say("")
        say_table(_COLUMNS, [_row(each) for each in reply.names])
    else:
        say("it says nothing yet; linnet name publish LABEL --place PLACE changes that")


def _row(name: NameView) -> tuple[object, ...]:
    from linnet.cli.moments import clock_text
    from linnet.cli.name.wording import leads_to_text

    kept = sum(each.refusal is None for each in name.told)
    refused = len(name.told) - kept
    until = clock_text(name.expires)
    return (name.label, leads_to_text(name), until, name.renew, name.protected, kept, refused)
