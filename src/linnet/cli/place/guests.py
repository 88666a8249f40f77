"""``linnet place guests``: who is in, and who waits at the door."""

from __future__ import annotations

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import plain, say, say_json, say_table
from linnet.cli.place.options import PlaceArgument

EPILOG = examples("linnet place guests tea", "linnet place guests tea --json | jq -r '.waiting[]'")


def guests(place: PlaceArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Who is in a place, from which message on it is open to each, and who waits at the door."""
    from linnet.cli.place.finding import find_place
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.guests(find_place(node, place))
    if as_json:
        say_json(reply)
        return
    rows = [(each.person, "guest", each.since, each.upto, "") for each in reply.guests]
    said = reply.said or ("",) * len(reply.waiting)
    rows += [
        (person, "waits", 0, None, plain(words)) for person, words in zip(reply.waiting, said, strict=False)
    ]
    if rows:
        say_table(("person", "is", "from message ", "has fragments below ", "said at the door"), rows)
    else:
        say("nobody is in yet: hand over the address that linnet place status shows")
