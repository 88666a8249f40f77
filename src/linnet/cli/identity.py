"""``linnet id``: the person's key, its words for paper, and the person's devices."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.home import HomeOptions, LabelOption, say_home
from linnet.cli.moments import clock_text, wall_clock
from linnet.cli.options import with_examples
from linnet.cli.output import counted, fact_lines, plain, warn
from linnet.cli.running_node import Session
from linnet.core.errors import BadText
from linnet.identity.text import Sort, device_text, from_text, to_text, topic_text

if TYPE_CHECKING:
    from linnet.api.node_commands import DeviceRevoked, DevicesAre, OwnDevice, RoomOutcome
    from linnet.core.ids import DeviceId, TopicId
    from linnet.identity.keys import SigningKey

PhraseOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--phrase-file", metavar="FILE", help="Where the 24 words stand; - reads standard input."),
]
_STANDARD_INPUT = Path("-")
_MOST = 4096


def read_phrase(file: Path | None) -> str:
    """Return the words as given; on a terminal they are asked for, and not shown."""
    if file is not None and file != _STANDARD_INPUT:
        return _read_words(file)
    if sys.stdin.isatty():
        return _ask_words()
    if file is None:
        raise Failure(
            "give the words by --phrase-file FILE, or - for standard input; an argument would be seen",
            ExitCode.USAGE,
        )
    text = sys.stdin.read(_MOST + 1)
    if len(text) > _MOST:
        raise Failure(f"standard input has more than {_MOST} characters; this is no phrase", ExitCode.USAGE)
    return text


def _read_words(file: Path) -> str:
    from linnet.node.keyfiles import read_private

    try:
        return read_private(file).decode()
    except UnicodeDecodeError:
        # Without its cause, which would repeat the content of the file.
        raise Failure(f"{file}: is no text", ExitCode.USAGE) from None


def _ask_words() -> str:
    from linnet.identity.words import WORDS, read_words

    warn(f"Type the {WORDS} words, as many on a line as you like. They are not shown.")
    words: list[str] = []
    while len(words) < WORDS:
        try:
            line = getpass.getpass(f"word {len(words) + 1}: ")
        except EOFError:
            raise Failure(f"the phrase ended after {counted(len(words), 'word')}") from None
        try:
            words += read_words(line, len(words) + 1)
        except BadText as error:
            warn(f"{error}; type this line again")
    return " ".join(words)


def person_key(home: Path | None, phrase_file: Path | None = None) -> SigningKey:
    """Return the key from the home, or from a phrase if the home does not hold it.

    Raises `HomeError`, `KeyFileError`, `BadText`, or `Failure` if it is another person's key.
    """
    from linnet.identity.keys import SigningKey
    from linnet.identity.words import from_phrase
    from linnet.node.home import Home, HomeError, home_path
    from linnet.node.keyfiles import load_card, load_key

    at = Home(home_path(home))
    if not at.path.is_dir():
        raise HomeError(f"{at.path}: there is no home; make one with: linnet init, or linnet id recover")
    card = load_card(at.card)
    if phrase_file is not None:
        key = SigningKey(from_phrase(read_phrase(phrase_file)))
    elif at.person_key.exists():
        key = load_key(at.person_key, "person")
    else:
        raise Failure(
            f"{at.person_key}: the person's key is kept elsewhere; this needs it: do it on the device that "
            "has it, or bring the 24 words by --phrase-file where the command takes them",
            ExitCode.CONFIGURATION,
        )
    if key.public != card.person:
        raise Failure("this is the key of another person than the one of this home", ExitCode.CONFIGURATION)
    return key


Yes = Annotated[bool, typer.Option("--yes", help="Print it even though this is no terminal.")]
_WORD_COLUMNS = 4


@with_examples("linnet id backup", "linnet id backup --yes | lpr", "linnet id backup --yes --json")
def backup(yes: Yes = False, *, session: Session) -> None:
    """Print the person's key as 24 words, to be written on paper and kept where nobody finds it.

    From these words linnet id recover makes a new device of the same person, even if this machine is lost.
    """
    from linnet.identity.text import Sort, to_text
    from linnet.identity.words import to_phrase

    if not yes and not sys.stdout.isatty():
        raise Failure(
            "whoever reads these words is you, and this is no terminal; say --yes if they shall go there",
            ExitCode.USAGE,
        )
    key = person_key(session.home)
    person, phrase = to_text(Sort.PERSON, key.public), to_phrase(key.seed)
    warn("Whoever reads these words is you, for good. Write them on paper; keep no picture and no file.")
    warn(f"Write down also whose they are: {person}")
    session.say({"person": person, "phrase": phrase}, numbered(phrase.split()))


def numbered(words: list[str]) -> str:
    """Return words in columns with their numbers, to be read from left to right."""
    cells = [f"{place:2} {word:10}" for place, word in enumerate(words, 1)]
    rows = (cells[at : at + _WORD_COLUMNS] for at in range(0, len(cells), _WORD_COLUMNS))
    return "\n".join("".join(row).rstrip() for row in rows)


Person = Annotated[
    str | None, typer.Option("--person", metavar="PERSON", help="Whose words they should be, lp1….")
]
KeepKey = Annotated[
    bool,
    typer.Option(
        "--keep-key", help="Keep the person's key here: whoever has this machine can then act as you."
    ),
]


@with_examples(
    'linnet id recover --label "new laptop"',
    "linnet id recover --phrase-file - --person lp1… < words.txt",
    "linnet id recover --phrase-file words.txt --home ~/.linnet-new",
)
def recover(
    phrase_file: PhraseOption = None,
    person: Person = None,
    *,
    options: HomeOptions,
    keep_key: KeepKey = False,
    session: Session,
) -> None:
    """Make a home for a new device of the person whose 24 words linnet id backup printed.

    The words are asked for and not shown, or read from a file that only you can read. They sign the device's
    card, and are not kept unless you ask for it. Nothing is overwritten, and only the person is recovered:
    the device is new in every room.
    """
    from linnet.identity.keys import SigningKey
    from linnet.identity.text import Sort, from_text, to_text
    from linnet.identity.words import from_phrase
    from linnet.node import home as homes

    path = homes.home_path(session.home)
    # Checked before the user types 24 words for nothing.
    homes.check_vacant(path)
    config = options.config()
    wanted = None if person is None else from_text(Sort.PERSON, person)
    key = SigningKey(from_phrase(read_phrase(phrase_file)))
    if wanted is not None and wanted != key.public:
        found = to_text(Sort.PERSON, key.public)
        raise Failure(f"these are the words of {found}, not of that person; is one wrong?", ExitCode.USAGE)
    say_home(homes.init(path, wall_clock(), config, key, keep_key), session)
    if wanted is None:
        warn("Compare the person with what you wrote down: one wrong phrase in 256 looks right.")
    warn("Join your rooms again, then take a lost device out of them: linnet id devices, linnet id revoke.")


@with_examples("linnet id ask --label phone", "linnet id ask --label pi --home ~/.linnet-pi")
def ask(options: HomeOptions, session: Session) -> None:
    """Make a home with a device's key alone, and print what your other device needs to link it.

    Your person's key never comes here, so whoever steals this machine can neither make devices in your name
    nor revoke any. Nothing is overwritten.
    """
    from linnet.node import home as homes

    at = homes.home_path(session.home)
    device = to_text(Sort.DEVICE, homes.ask(at, options.config()))
    named = f" --label {options.label!r}" if options.label else ""
    found = {"home": str(at), "device": device}
    after = f"next    on a device that holds your key: linnet id link {device}{named}"
    session.say(found, [*fact_lines(found.items(), 8), after])


Device = Annotated[
    str, typer.Argument(metavar="DEVICE", help="The new device's whole key, ld1…: linnet id ask prints it.")
]


@with_examples("linnet id link ld1… --label phone", "linnet id link ld1… --phrase-file words.txt")
def link_device(
    device: Device, label: LabelOption = "", phrase_file: PhraseOption = None, *, session: Session
) -> None:
    """Print a card that says for a year that a device is yours; linnet id accept installs it there.

    Repeat this for the same device before the year is over. The person's key signs the card; where this home
    does not hold that key, its 24 words sign.
    """
    from linnet.identity.cards import card_to_text
    from linnet.node.home import new_card

    key = from_text(Sort.DEVICE, device)
    card = new_card(person_key(session.home, phrase_file), key, wall_clock(), label)
    text = card_to_text(card)
    if not session.as_json:
        end = clock_text(card.not_after)[:10]
        warn(f"Good until {end}. On the device: linnet id accept CARD, with this card:")
    session.say({"card": text, "ends": card.not_after}, text)


CardText = Annotated[str, typer.Argument(metavar="CARD", help="What linnet id link printed, lc1….")]


@with_examples("linnet id accept lc1…")
def accept(card: CardText, session: Session) -> None:
    """Install a card in this home: its first, or one that renews the present one.

    A node that runs here uses it after its next start.
    """
    from linnet.identity.cards import card_from_text
    from linnet.node import home as homes

    say_home(homes.accept(homes.home_path(session.home), card_from_text(card), wall_clock()), session)


@with_examples("linnet id renew --phrase-file words.txt", "linnet id renew --phrase-file -")
def renew(phrase_file: PhraseOption = None, *, session: Session) -> None:
    """Make this device's card good for another year. The words sign it and are not kept.

    A home that holds the person's key does this by itself when a node starts. A node that runs here
    uses the card after its next start.
    """
    from linnet.node import home as homes
    from linnet.node.keyfiles import load_card

    at = homes.Home(homes.home_path(session.home))
    key = person_key(session.home, phrase_file)
    old = load_card(at.card)
    card = homes.new_card(key, old.device_key, wall_clock(), old.label)
    say_home(homes.accept(at.path, card, wall_clock()), session)


COLUMNS = ("name", "device", "online", "card ends", "revoked", "key")


@with_examples("linnet id devices", "linnet id devices --json | jq '.devices[].label'")
def devices(session: Session) -> None:
    """List the devices of this person that the node has met or heard of, this one first."""
    from linnet.api.node_commands import ListDevices

    reply = session.ask(ListDevices())
    session.say_table(reply, COLUMNS, [_device_row(device, reply) for device in reply.devices])


def _device_row(device: OwnDevice, reply: DevicesAre) -> tuple[object, ...]:
    return (
        plain(device.label) or None,
        device.id.hex(),
        "this one" if device.is_this else device.is_online,
        None if device.not_after is None else clock_text(device.not_after)[:10],
        revoked_text(device, reply.rooms),
        None if device.key is None else device_text(device.key),
    )


def revoked_text(device: OwnDevice, rooms: tuple[TopicId, ...]) -> str:
    """Say in how many of the node's rooms a device is revoked."""
    count = len(set(device.revoked_in) & set(rooms))
    if count:
        return f"in {count} of {counted(len(rooms), 'room')}"
    return "yes" if device.is_revoked else "no"


Which = Annotated[
    str, typer.Argument(metavar="DEVICE", help="Its name or the beginning of its id: linnet id devices.")
]
_ID_LETTERS = 16

_LEAST = 4
"""The least letters of an id that name a device."""


@with_examples(
    "linnet id revoke phone", "linnet id revoke 91ab30c2", "linnet id revoke phone --phrase-file words.txt"
)
def revoke(device: Which, phrase_file: PhraseOption = None, *, session: Session) -> None:
    """Revoke a device of yours in every room of this node, and in its streams. This cannot be undone.

    The person's key signs the revocation; where the home does not hold that key, its 24 words sign. Whoever
    stole that key with the device can make other devices in your name: then only a new person helps.
    """
    from linnet.api.node_commands import ListDevices, RevokeDevice
    from linnet.identity import cards

    person = person_key(session.home, phrase_file)
    with session.open_node() as node:
        known = node.ask(ListDevices()).devices
        chosen = choose_device(device, known)
        if any(each.is_this and each.id == chosen for each in known):
            raise Failure("this is the device that you use now; revoke it from another", ExitCode.USAGE)
        word = cards.revoke(person, chosen, int(wall_clock()))
        reply = node.ask(RevokeDevice(chosen, word.at, word.sig))
    label = next((each.label for each in known if each.id == chosen), None)
    session.say(reply, _revoked_lines(reply, label))
    if any(room.outcome == "refused" for room in reply.rooms):
        raise typer.Exit(ExitCode.FAILED)


def choose_device(text: str, devices: Sequence[OwnDevice]) -> DeviceId:
    """Return the device that is meant: any whole id, or a known one's beginning; `BadText` lists them."""
    from linnet.core.ids import DeviceId
    from linnet.identity.keys import device_id
    from linnet.identity.lookup import is_whole, with_label

    wanted = text.strip()
    if is_whole(Sort.DEVICE, wanted):
        return device_id(from_text(Sort.DEVICE, wanted))
    found = with_label(wanted, devices)
    start = wanted.lower()
    if not found and _is_id(start):
        return DeviceId(bytes.fromhex(start))
    if not found and len(start) >= _LEAST:
        found = [each for each in devices if each.id.hex().startswith(start) or _key_starts(each, start)]
    if len(found) == 1:
        return found[0].id
    listed = ", ".join(f"{each.id.hex()} ({plain(each.label)!r})" for each in found or devices)
    if found:
        raise BadText(f"{wanted!r} can be {len(found)} devices; say which by its id: {listed}")
    raise BadText(f"no device of yours called {wanted[:80]!r} is known here; there are {listed}")


def _is_id(text: str) -> bool:
    return len(text) == _ID_LETTERS and all(letter in "0123456789abcdef" for letter in text)


def _key_starts(device: OwnDevice, start: str) -> bool:
    if device.key is None or len(start) <= len(Sort.DEVICE):
        return False
    return device_text(device.key).startswith(start)


def _revoked_lines(reply: DeviceRevoked, label: str | None) -> Iterator[str]:
    who = "which this node never met" if label is None else plain(label) or "without a name"
    yield (f"revoked {reply.device.hex()} ({who})")
    names = [plain(room.name or topic_text(room.room)[:14]) for room in reply.rooms]
    width = max(map(len, names), default=0)
    for name, room in zip(names, reply.rooms, strict=True):
        yield (f"  {name:{width}}  {outcome_text(room)}")
    if not reply.rooms:
        yield "  this node is in no room; its streams were told"


def outcome_text(room: RoomOutcome) -> str:
    """Describe the outcome of a revocation in one room."""
    from linnet.cli.room.messages import went_to

    match room.outcome:
        case "revoked":
            return f"revoked, sent to {went_to(room.neighbors, len(room.relays))}"
        case "already":
            return "was revoked before"
        case "skipped":
            return f"skipped: {room.detail}"
        case _:
            return f"REFUSED: {room.reason}: {room.detail}"
