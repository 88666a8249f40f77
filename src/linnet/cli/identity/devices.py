"""``linnet id devices``: the devices of the person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import counted, plain, say_json, say_table

if TYPE_CHECKING:
    from linnet.node.device_types import DevicesReply, DeviceView

EPILOG = examples("linnet id devices", "linnet id devices --json | jq '.devices[].label'")

COLUMNS = ("name", "device", "online", "card ends", "revoked", "key")


def devices(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Every device of this person that the node has met or was told of, this one first."""
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.devices()
    if as_json:
        say_json(reply)
    else:
        say_table(COLUMNS, [row(device, reply) for device in reply.devices])


def row(device: DeviceView, reply: DevicesReply) -> tuple[object, ...]:
    """A device in a table."""
    from linnet.cli.moments import clock_text

    return (
        plain(device.label) or None,
        device.id,
        "this one" if device.this else device.online,
        None if device.not_after is None else clock_text(device.not_after)[:10],
        revoked_text(device, reply.rooms),
        device.device,
    )


def revoked_text(device: DeviceView, rooms: tuple[str, ...]) -> str:
    """Where a device is out of use, of the rooms that the node is in."""
    count = len(set(device.revoked_in) & set(rooms))
    if count:
        return f"in {count} of {counted(len(rooms), 'room')}"
    return "yes" if device.revoked else "no"
