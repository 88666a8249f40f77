"""``linnet trust``: whom you trust, which nobody else learns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, say_table

if TYPE_CHECKING:
    from linnet.node.overlay_types import TrustReply

ADD_EPILOG = examples("linnet trust add ld1…", "linnet trust add ld1… --value 0.5")
LIST_EPILOG = examples("linnet trust list", "linnet trust list --json | jq '.devices[].device'")
REMOVE_EPILOG = examples("linnet trust remove ld1…")

_COLUMNS = ("device", "trust ")

Device = Annotated[
    str, typer.Argument(metavar="DEVICE", help="The device's id, ld1…; what stands behind an @ is left out.")
]
Value = Annotated[float, typer.Option("--value", help="How much: above 0, at most 1.")]


def add(device: Device, value: Value = 1.0, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Trust a device: this node turns to it more often, and rather keeps it among those who are alike.

    It stays on this device and is told to nobody. A stranger has 0.1.
    """
    from linnet.cli.running_node import control
    from linnet.core.errors import BadText
    from linnet.node.overlay_types import TrustRequest

    if not 0.0 < value <= 1.0:
        raise BadText(f"--value {value:g}: trust is above 0, at most 1; linnet trust remove takes it back")
    named = _named(device)
    with control(home) as node:
        reply = node.set_trust(TrustRequest(named, value))
    if as_json:
        say_json(reply)
    else:
        say(f"trust {named} with {value:g}")


def list_(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the devices that you trust, most first."""
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.trust()
    if as_json:
        say_json(reply)
    elif reply.devices:
        say_table(_COLUMNS, _rows(reply))
    else:
        say("you trust no device more than strangers; linnet trust add DEVICE changes that")


def remove(device: Device, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Trust a device no more than strangers. To have nothing to do with it: linnet block."""
    from linnet.cli.running_node import control
    from linnet.node.overlay_types import TrustRequest

    named = _named(device)
    with control(home) as node:
        reply = node.set_trust(TrustRequest(named))
    if as_json:
        say_json(reply)
    else:
        say(f"no longer trust {named}")


def _named(device: str) -> str:
    """The device alone: whoever copies an address may leave where it is behind it."""
    from linnet.identity.text import Sort, from_text, to_text

    return to_text(Sort.DEVICE, from_text(Sort.DEVICE, device.partition("@")[0]))


def _rows(reply: TrustReply) -> list[tuple[object, ...]]:
    return [(each.device, f"{each.value:g}") for each in reply.devices]
