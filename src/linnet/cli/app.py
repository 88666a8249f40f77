"""All commands, and the handling of errors that leave them.

A command is imported when it is called; until then it is a row of a table, and costs nothing but its name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from linnet.cli.exits import EXIT_CODES, ExitCode, status_and_words
from linnet.cli.options import spread_options
from linnet.cli.output import say, warn
from linnet.core.errors import LinnetError


class DeferredGroup(TyperGroup):
    """A group that imports a command only when that is called, not to list it."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - of typer's own
        """Import and return the command of this name."""
        command = self.commands.get(cmd_name)
        build = getattr(command.callback, "build", None) if command is not None else None
        if build is not None:
            self.commands[cmd_name] = command = build()
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - of typer's own
        """List the commands by their short help, without importing them."""
        limit = formatter.width - 6 - max(map(len, self.commands))
        rows = [(name, each.get_short_help_str(limit)) for name, each in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


group = functools.partial(
    typer.Typer,
    cls=DeferredGroup,
    no_args_is_help=True,
    # Plain help starts faster, and can be copied.
    rich_markup_mode=None,
)
"""Makes a group of deferred commands."""


GROUPS = {
    "stream": "Streams: who may read, how linked.",
    "trust": "Whom you trust; nobody is told.",
    "overlay": "How nodes find each other without trackers.",
    "edge": "Phones and proxies.",
    "lan": "Local networks: what may be known there.",
    "room": "Rooms: members, invitations, relays.",
    "name": "Names: what leads where.",
    "name petname": "Whom you call what.",
    "place": "Places: a host, guests, and what it looks like.",
    "content": "Content: subscribe to what is said.",
    "id": "Who you are: backup, devices.",
    "relay": "For whoever runs a relay.",
    "tracker": "For whoever runs a tracker.",
    "sim": "Run the shipped node in simulation.",
    "lab": "Traces to figures, on Spark.",
    "lab generate": "Make workloads.",
    "lab study": "Rerun the experiments of the papers.",
}
"""The description of every group, by the words before its commands."""

COMMANDS = (
    ("init", "home:make_home", "Make a home with new keys."),
    ("up", "up:up", "Run the node of this home."),
    ("publish", "stream.events:publish", "Publish to a stream."),
    ("subscribe", "stream.events:subscribe", "Print the events of a stream."),
    ("history", "stream.events:history", "Print the kept events of a stream."),
    ("status", "status:status", "Show the state of the node."),
    ("peers", "links:peers", "List the links of the node."),
    ("connect", "links:connect", "Keep a link to a device."),
    ("block", "links:block", "Refuse all contact with a device."),
    ("declare", "stream.policy:declare", "Set the policy of your own stream."),
    ("doctor", "doctor:doctor", "Find out what does not work."),
    ("api", "api:api", "Call any operation of the node."),
    ("export", "home:export_node", "Write the node into one file."),
    ("import", "home:import_node", "Make a home from an exported file."),
    ("privacy", "overlay:privacy", "Show what others learned of your interests."),
    ("chat", "room.chat:chat", "Talk in a room."),
    ("play", "play.command:play", "Play traffic in a room, and print what all nodes did."),
    ("demo", "demo.command:demo", "Watch a real network deliver every message."),
    ("stream request", "stream.policy:request", "Ask to read a sealed stream."),
    ("stream allow", "stream.policy:allow", "Let a device read a sealed stream."),
    ("stream disallow", "stream.policy:disallow", "Remove readers of a sealed stream."),
    ("stream readers", "stream.policy:readers", "List the readers of a sealed stream."),
    ("stream check", "stream.policy:check", "Have storage nodes show what they confirmed."),
    ("stream overlay", "stream.policy:overlay", "Switch a stream to the ring, or back."),
    ("trust add", "overlay:add_trust", "Trust a device."),
    ("trust list", "overlay:list_trust", "List the devices that you trust."),
    ("trust remove", "overlay:remove_trust", "Stop trusting a device."),
    ("overlay status", "overlay:show_overlay", "Show known nodes and each topic's ring."),
    ("edge status", "edge:show_edge", "Show proxies, or clients of this one."),
    ("edge sleep", "edge:sleep", "Close all links, to save power."),
    ("edge wake", "edge:wake", "Reconnect after sleep."),
    ("lan status", "edge:show_networks", "Show local networks and who is there."),
    ("lan allow", "edge:allow_topic", "Let a topic be found on a network."),
    ("lan deny", "edge:deny_topic", "Hide a topic on a network again."),
    ("room create", "room.rooms:create", "Create a room."),
    ("room join", "room.members:join", "Join a room by an invitation."),
    ("room invite", "room.members:invite", "Print an invitation to a room."),
    ("room list", "room.rooms:list_rooms", "List the rooms of the node."),
    ("room send", "room.messages:send", "Send messages to a room."),
    ("room read", "room.messages:read", "Print the events of a room."),
    ("room history", "room.messages:history", "Print the kept events of a room."),
    ("room ledger", "room.ledger:ledger", "Show at whom your events arrived."),
    ("room members", "room.members:members", "List the members of a room."),
    ("room security", "room.security:security", "Show who holds keys, and safety numbers."),
    ("room state", "room.state:state", "Show or set the state of a room."),
    ("room power", "room.members:power", "Show or set power levels."),
    ("room kick", "room.members:kick", "Remove a person from a room."),
    ("room ban", "room.members:ban", "Ban a person from a room."),
    ("room unban", "room.members:unban", "Lift a ban."),
    ("room share", "room.messages:share", "Show newcomers earlier messages."),
    ("room redact", "room.messages:redact", "Redact an event."),
    ("room attach", "room.messages:attach", "Attach files to a room."),
    ("room fetch", "room.messages:fetch", "Fetch a file from a room."),
    ("room relays", "room.state:show_relays", "Show, add or remove relays."),
    ("room retention", "room.state:retention", "Show or set how long relays keep events."),
    ("room leave", "room.rooms:leave", "Leave a room."),
    ("name publish", "names:publish", "Publish where a label leads."),
    ("name resolve", "names:resolve", "Resolve an address."),
    ("name list", "names:list_labels", "List the labels of your zone."),
    ("name remove", "names:remove", "Withdraw a label."),
    ("name export", "names:export_records", "Export your records to a file."),
    ("name import", "names:import_records", "Import the records of such a file."),
    ("name petname set", "names:set_petname", "Give a person a name."),
    ("name petname list", "names:list_petnames", "List the names you gave."),
    ("name petname remove", "names:remove_petname", "Remove such a name."),
    ("place host", "place.places:host", "Found a place."),
    ("place enter", "place.door:enter", "Enter a place by its address."),
    ("place list", "place.places:list_places", "List every place of the node."),
    ("place status", "place.places:show_place", "Show one place, and its address."),
    ("place announce", "place.messages:announce", "Say something to all guests."),
    ("place talk", "place.messages:talk", "Say something to the host alone."),
    ("place watch", "place.messages:watch", "Print what is said in a place."),
    ("place history", "place.messages:history", "Print messages of the past."),
    ("place look", "place.messages:look", "Show what a place is decorated with."),
    ("place guests", "place.door:guests", "Show who is in, and who waits."),
    ("place receipts", "place.messages:receipts", "Show which guests have a message."),
    ("place admit", "place.door:admit", "Let somebody in."),
    ("place reject", "place.door:reject", "Turn somebody away."),
    ("place eject", "place.door:eject", "Put a guest out."),
    ("place leave", "place.places:leave", "Be a guest no longer."),
    ("content subscribe", "content:subscribe", "Print what matches a predicate."),
    ("content publish", "content:publish", "Publish an event with attributes."),
    ("content advertise", "content:advertise", "Open a group of your own."),
    ("content groups", "content:groups", "List your groups, or find others."),
    ("content list", "content:list_subscriptions", "List subscriptions."),
    ("content unsubscribe", "content:unsubscribe", "End a kept subscription."),
    ("id backup", "identity:backup", "Print your key as 24 words for paper."),
    ("id recover", "identity:recover", "Make a new device from the 24 words."),
    ("id ask", "identity:ask", "Make a home for one more device."),
    ("id link", "identity:link_device", "Print a card for one more device."),
    ("id accept", "identity:accept", "Accept a card that link printed."),
    ("id renew", "identity:renew", "Make a new card for this device."),
    ("id devices", "identity:devices", "List your devices."),
    ("id revoke", "identity:revoke", "Revoke a lost device."),
    ("relay report", "operators:report", "Show what this relay knows."),
    ("tracker graph", "operators:graph", "Show how nodes of a stream are linked."),
    ("sim streams", "sim.streams:streams", "A stream over a simulated network."),
    ("sim mass-join", "sim.streams:mass_join", "Everyone joins at once."),
    ("sim content", "sim.content:content", "Subscriptions to what is said."),
    ("sim places", "sim.places:places", "A host and guests who come and go."),
    ("sim rooms", "sim.rooms:rooms", "A room whose members come and go."),
    ("sim groups", "sim.groups:groups", "An encrypted group, and thieves."),
    ("sim overlay", "sim.overlay:overlay", "Nodes without trackers, and liars."),
    ("sim history", "sim.rooms:history", "A real concurrent history, in any order."),
    ("sim metadata", "sim.rooms:metadata", "What relays come to know."),
    ("lab ingest", "lab.workloads:ingest", "Read traces of the world into tables."),
    ("lab match", "lab.studies:match", "Match events and subscriptions."),
    ("lab audit", "lab.audit:audit", "Account for every message."),
    ("lab watch", "lab.audit:watch", "Account for messages while nodes run."),
    ("lab generate chats", "lab.workloads:chats", "Chats like those of WhatsApp."),
    ("lab study attacks", "lab.studies:attacks", "What attackers gain, and who notices."),
    ("lab study overlay", "lab.studies:overlay", "Nodes without trackers."),
    ("lab study content", "lab.studies:content", "Who gets what it asked for."),
    ("lab study groups", "lab.studies:groups", "What keys without a server cost."),
    ("lab study places", "lab.studies:places", "What a log of fragments tells."),
    ("lab study relays", "lab.relay_studies:relays", "What relays change."),
    ("lab study retention", "lab.relay_studies:retention", "How long relays should keep."),
    ("lab study streams", "lab.studies:streams", "How streams spread."),
)
"""Every command, in the order of the help: how it is typed, where its code is, what it does."""

app = typer.Typer(
    name="linnet",
    cls=DeferredGroup,
    add_completion=False,
    no_args_is_help=True,
    # Plain help starts faster, and can be copied.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"\b\nFirst steps:\n  linnet demo\n  linnet init\n  linnet up\n\n{EXIT_CODES}",
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"linnet {version('linnet')}")
        raise typer.Exit


@app.callback()
def linnet(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Publish-subscribe without servers, with a receipt for every message."""


def told(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command as it is run: its errors are printed in a line, since tracebacks are for bugs."""
    spread = spread_options(command)

    @functools.wraps(spread)
    def run(**given: object) -> None:
        try:
            spread(**given)
        except LinnetError as error:
            code, words = status_and_words(error)
            warn(f"linnet: {words}")
            raise typer.Exit(code) from error
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None

    return run


def add_deferred(to: typer.Typer, name: str, where: str, short: str) -> None:
    """Put a command, ``module:function``, into a group whose class is `DeferredGroup`.

    The end of its help is what `with_examples` gave it. If it has an option ``--help`` of its own, it gets
    no other.
    """

    def build() -> Any:  # noqa: ANN401 - typer does not say what it builds
        module, _, function = where.partition(":")
        loaded: Callable[..., None] = getattr(import_module(f"linnet.cli.{module}"), function)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        alone.command(
            name,
            short_help=short,
            epilog=vars(loaded)["epilog"],
            add_help_option="wants_help" not in loaded.__annotations__,
        )(told(loaded))
        return typer.main.get_command(alone)

    def stands_in() -> None:
        raise RuntimeError(f"{name} was called before it was loaded")

    stands_in.build = build  # type: ignore[attr-defined] # functions can have attributes
    to.command(name, short_help=short)(stands_in)


def _add_commands() -> None:
    groups = {"": app}
    for words, about in GROUPS.items():
        above, _, name = words.rpartition(" ")
        groups[words] = group()
        groups[above].add_typer(groups[words], name=name, help=about, epilog=EXIT_CODES)
    for words, where, short in COMMANDS:
        above, _, name = words.rpartition(" ")
        add_deferred(groups[above], name, where, short)


_add_commands()
