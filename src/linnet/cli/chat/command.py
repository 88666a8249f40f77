"""``linnet chat``: talk in a room."""

from __future__ import annotations

from linnet.cli.moments import parse_since, wall_clock
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import plain
from linnet.cli.room.options import FromOption, RoomArgument

EPILOG = examples("linnet chat tea", "linnet chat tea --from beginning", "echo hello | linnet chat tea")


def chat(
    room: RoomArgument, since: FromOption = "1h", home: HomeOption = None, as_json: JsonOption = False
) -> None:
    """Talk in a room. Each line that you type is said; /help tells what else there is.

    A mark before a message of yours tells how far it is: · pending, ⌂ at a relay, ✓ arrived at some,
    ✓✓ arrived at all. Ctrl-C, Ctrl-D or /quit end the conversation; you stay in the room. With --json
    what comes in is printed as JSON, and marks are left to linnet room ledger.
    """
    from linnet.cli.chat.conversation import Conversation
    from linnet.cli.chat.screen import Screen
    from linnet.cli.room.finding import find_room
    from linnet.cli.running_node import control

    begin = parse_since(since, wall_clock())
    with control(home) as node:
        found = find_room(node, room)
        own = node.status().person
    screen = Screen(f"{plain(found.name or found.room[:10] + '…')}> ")
    conversation = Conversation(lambda: control(home), found.room, own, screen.show, as_json)
    conversation.run(screen.lines(), begin)
    if conversation.error is not None:
        raise conversation.error
