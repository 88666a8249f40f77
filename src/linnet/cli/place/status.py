"""``linnet place status``: one place as it stands."""

from __future__ import annotations

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import plain, say, say_json
from linnet.cli.place.options import PlaceArgument

EPILOG = examples("linnet place status tea", "linnet place status tea --json | jq -r .address")


def status(place: PlaceArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """How a place stands at this node, and the address by which others enter it."""
    from linnet.cli.place.finding import find_place
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.place(find_place(node, place))
    if as_json:
        say_json(reply)
        return
    told = reply.place
    for name, value in (
        ("name", plain(told.name or "-")),
        ("place", told.place),
        ("you are", told.role),
        ("policy", told.deed.policy.value),
        ("host", told.deed.host),
        ("voice", f"{told.voice or '-'} (term {told.term})"),
        ("messages", f"{told.message}; {told.missing} fragments are missing"),
        ("guests", f"{told.guests}; generation {told.generation}"),
        ("links", f"{len(told.upstreams)} up, {len(told.downstreams)} down"),
        ("objects", f"{told.objects} as of message {told.state}, hash {told.state_hash[:16]}"),
        ("address", reply.address),
    ):
        say(f"{name:<9}{value}")
