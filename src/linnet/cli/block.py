"""``linnet block``: have nothing to do with a device."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json

EPILOG = examples("linnet block ld1…", "linnet block --unblock ld1…")

Key = Annotated[str, typer.Argument(metavar="KEY", help="The device's id, ld1…, as linnet peers shows it.")]
Unblock = Annotated[bool, typer.Option("--unblock", help="Have to do with it again.")]


def block(key: Key, unblock: Unblock = False, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Close the link to a device and refuse it from now on; kept over restarts."""
    from linnet.cli.running_node import control
    from linnet.identity.text import Sort, from_text, to_text

    # Whoever copies an address may leave where it is behind it.
    device = to_text(Sort.DEVICE, from_text(Sort.DEVICE, key.partition("@")[0]))
    with control(home) as node:
        node.block(device, not unblock)
    if as_json:
        say_json({"device": device, "blocked": not unblock})
    else:
        say(f"{'unblocked' if unblock else 'blocked'} {device}")
