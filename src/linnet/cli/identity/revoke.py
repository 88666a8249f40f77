"""``linnet id revoke``: take a lost device out of use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.identity.phrases import PhraseOption
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import plain, say, say_json
from linnet.core.errors import BadText

if TYPE_CHECKING:
    from linnet.node.device_types import DeviceView, RevokeReply, RoomOutcomeView

EPILOG = examples(
    "linnet id revoke phone", "linnet id revoke 91ab30c2", "linnet id revoke phone --phrase-file words.txt"
)

Which = Annotated[
    str, typer.Argument(metavar="DEVICE", help="Its name or the beginning of its id: linnet id devices.")
]

_ID_LETTERS = 16
_LEAST = 4
"""Letters of an id that name a device."""


def revoke(
    device: Which, phrase_file: PhraseOption = None, home: HomeOption = None, as_json: JsonOption = False
) -> None:
    """Say in every room of this node, and in its streams, that a device is yours no longer. For good.

    The person's key signs it; where the home does not hold it, its 24 words do. Whoever stole that key with
    the device can make others in your name: then only a new person helps.
    """
    from linnet.cli.identity.person import person_key
    from linnet.cli.moments import wall_clock
    from linnet.cli.running_node import control
    from linnet.core.ids import DeviceId
    from linnet.identity import cards
    from linnet.node.device_types import RevokeRequest

    person = person_key(home, phrase_file)
    with control(home) as node:
        known = node.devices().devices
        chosen = choose_device(device, known)
        if any(each.this and each.id == chosen for each in known):
            raise Failure("this is the device that you use now; revoke it from another", ExitCode.USAGE)
        word = cards.revoke(person, DeviceId(bytes.fromhex(chosen)), int(wall_clock()))
        reply = node.revoke_device(RevokeRequest(chosen, word.at, word.sig))
    if as_json:
        say_json(reply)
    else:
        _tell(reply, next((each.label for each in known if each.id == chosen), None))
    if any(room.outcome == "refused" for room in reply.rooms):
        raise typer.Exit(ExitCode.FAILED)


def choose_device(text: str, devices: Sequence[DeviceView]) -> str:
    """The id of the device that is meant: any whole id, or one of those known; `BadText` lists them."""
    from linnet.cli.room.finding import is_whole
    from linnet.identity.keys import device_id
    from linnet.identity.text import Sort, from_text

    wanted = text.strip()
    if is_whole(Sort.DEVICE, wanted):
        return device_id(from_text(Sort.DEVICE, wanted)).hex()
    found = [each for each in devices if each.label == wanted]
    found = found or [each for each in devices if each.label.casefold() == wanted.casefold() != ""]
    start = wanted.lower()
    if not found and _is_id(start):
        return start
    if not found and len(start) >= _LEAST:
        found = [each for each in devices if each.id.startswith(start) or _key_starts(each, start)]
    if len(found) == 1:
        return found[0].id
    listed = ", ".join(f"{each.id} ({plain(each.label)!r})" for each in found or devices)
    if found:
        raise BadText(f"{wanted!r} can be {len(found)} devices; say which by its id: {listed}")
    raise BadText(f"no device of yours called {wanted[:80]!r} is known here; there are {listed}")


def _is_id(text: str) -> bool:
    return len(text) == _ID_LETTERS and all(letter in "0123456789abcdef" for letter in text)


def _key_starts(device: DeviceView, start: str) -> bool:
    from linnet.identity.text import Sort

    return device.device is not None and len(start) > len(Sort.DEVICE) and device.device.startswith(start)


def _tell(reply: RevokeReply, label: str | None) -> None:
    who = "which this node never met" if label is None else plain(label) or "without a name"
    say(f"revoked {reply.device} ({who})")
    names = [plain(room.name or room.room[:14]) for room in reply.rooms]
    width = max(map(len, names), default=0)
    for name, room in zip(names, reply.rooms, strict=True):
        say(f"  {name:{width}}  {outcome_text(room)}")
    if not reply.rooms:
        say("  this node is in no room; its streams were told")


def outcome_text(room: RoomOutcomeView) -> str:
    """What became of it in one room, in words."""
    from linnet.cli.room.outcome import went_to
    from linnet.node.room_types import SentReply

    match room.outcome:
        case "revoked":
            ids = () if room.event is None else (room.event,)
            return f"revoked, sent to {went_to(SentReply(room.room, ids, room.neighbors, room.relays))}"
        case "already":
            return "was revoked before"
        case "skipped":
            return f"skipped: {room.detail}"
        case _:
            return f"REFUSED: {room.reason}: {room.detail}"
