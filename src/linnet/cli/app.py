"""All commands, and what happens to an error that leaves one.

Modules of commands are deferred: each is imported when one of its commands is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, ParamSpec

import typer

from linnet.cli.content.commands import COMMANDS as CONTENT_COMMANDS
from linnet.cli.deferred import Deferred, DeferredGroup, Module, add_deferred, group
from linnet.cli.exits import EXIT_CODES, ExitCode, status_and_words
from linnet.cli.name.group import name_group
from linnet.cli.output import say, warn
from linnet.cli.place.commands import COMMANDS as PLACE_COMMANDS
from linnet.core.errors import LinnetError

block = Module("linnet.cli.block")
connect = Module("linnet.cli.connect")
declare = Module("linnet.cli.declare")
doctor = Module("linnet.cli.doctor")
edge = Module("linnet.cli.edge")
export = Module("linnet.cli.export")
history = Module("linnet.cli.history")
import_ = Module("linnet.cli.import_")
init = Module("linnet.cli.init")
overlay_status = Module("linnet.cli.overlay_status")
peers = Module("linnet.cli.peers")
privacy = Module("linnet.cli.privacy")
publish = Module("linnet.cli.publish")
sim_content = Module("linnet.cli.sim_content")
sim_groups = Module("linnet.cli.sim_groups")
sim_history = Module("linnet.cli.sim_history")
sim_mass_join = Module("linnet.cli.sim_mass_join")
sim_metadata = Module("linnet.cli.sim_metadata")
sim_overlay = Module("linnet.cli.sim_overlay")
sim_places = Module("linnet.cli.sim_places")
sim_rooms = Module("linnet.cli.sim_rooms")
sim_streams = Module("linnet.cli.sim_streams")
status = Module("linnet.cli.status")
subscribe = Module("linnet.cli.subscribe")
trust = Module("linnet.cli.trust")
up = Module("linnet.cli.up")
chat = Module("linnet.cli.chat.command")
demo = Module("linnet.cli.demo.command")
accept = Module("linnet.cli.identity.accept")
ask = Module("linnet.cli.identity.ask")
backup = Module("linnet.cli.identity.backup")
devices = Module("linnet.cli.identity.devices")
link = Module("linnet.cli.identity.link")
recover = Module("linnet.cli.identity.recover")
renew = Module("linnet.cli.identity.renew")
revoke = Module("linnet.cli.identity.revoke")
lan_status = Module("linnet.cli.lan.status")
switching = Module("linnet.cli.lan.switching")
play = Module("linnet.cli.play.command")
report = Module("linnet.cli.relay.report")
room_history = Module("linnet.cli.room.history")
allow = Module("linnet.cli.stream.allow")
disallow = Module("linnet.cli.stream.disallow")
overlay = Module("linnet.cli.stream.overlay")
readers = Module("linnet.cli.stream.readers")
request = Module("linnet.cli.stream.request")
graph = Module("linnet.cli.tracker.graph")
attach = Module("linnet.cli.room.attach")
ban = Module("linnet.cli.room.ban")
create = Module("linnet.cli.room.create")
fetch = Module("linnet.cli.room.fetch")
invite = Module("linnet.cli.room.invite")
join = Module("linnet.cli.room.join")
kick = Module("linnet.cli.room.kick")
leave = Module("linnet.cli.room.leave")
ledger = Module("linnet.cli.room.ledger")
list_ = Module("linnet.cli.room.list_")
members = Module("linnet.cli.room.members")
power = Module("linnet.cli.room.power")
read = Module("linnet.cli.room.read")
redact = Module("linnet.cli.room.redact")
relays = Module("linnet.cli.room.relays")
retention = Module("linnet.cli.room.retention")
security = Module("linnet.cli.room.security")
send = Module("linnet.cli.room.send")
share = Module("linnet.cli.room.share")
state = Module("linnet.cli.room.state")
unban = Module("linnet.cli.room.unban")
audit = Module("linnet.cli.lab.audit")
generate_chats = Module("linnet.cli.lab.generate_chats")
ingest = Module("linnet.cli.lab.ingest")
match = Module("linnet.cli.lab.match")
study_content = Module("linnet.cli.lab.study_content")
study_groups = Module("linnet.cli.lab.study_groups")
study_overlay = Module("linnet.cli.lab.study_overlay")
study_places = Module("linnet.cli.lab.study_places")
study_relays = Module("linnet.cli.lab.study_relays")
study_retention = Module("linnet.cli.lab.study_retention")
study_streams = Module("linnet.cli.lab.study_streams")
watch = Module("linnet.cli.lab.watch")

P = ParamSpec("P")

app = typer.Typer(
    name="linnet",
    cls=DeferredGroup,
    add_completion=False,
    no_args_is_help=True,
    # Plain help: it starts faster, and what it shows can be copied.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"\b\nFirst steps:\n  linnet demo\n  linnet init\n  linnet up\n\n{EXIT_CODES}",
)
sim = group()
room = group()
place = group()
identity = group()
relay = group()
stream = group()
edges = group()
lan = group()
trusting = group()
without = group()
lab = group()
content = group()
study = group()
generate = group()
tracking = group()


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


def told(command: Callable[P, None]) -> Callable[P, None]:
    """The command, with its errors told in a line: a traceback is for bugs."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except LinnetError as error:
            code, words = status_and_words(error)
            warn(f"linnet: {words}")
            raise typer.Exit(code) from error
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None

    return run


def _add(to: typer.Typer, name: str, command: Deferred, short: str, epilog: Deferred) -> None:
    add_deferred(to, name, command, short, epilog, told)


_add(app, "init", init.init, "Make a home with new keys.", init.EPILOG)
_add(app, "up", up.up, "Run the node of this home.", up.EPILOG)
_add(app, "publish", publish.publish, "Say something in a stream.", publish.EPILOG)
_add(app, "subscribe", subscribe.subscribe, "Print what is said in a stream.", subscribe.EPILOG)
_add(app, "history", history.history, "Print what is kept of a stream.", history.EPILOG)
_add(app, "status", status.status, "How things stand at the node.", status.EPILOG)
_add(app, "peers", peers.peers, "Every link of the node.", peers.EPILOG)
_add(app, "connect", connect.connect, "Keep a link to a device.", connect.EPILOG)
_add(app, "block", block.block, "Have nothing to do with a device.", block.EPILOG)
_add(app, "declare", declare.declare, "Decide about a stream of your own.", declare.EPILOG)
_add(app, "doctor", doctor.doctor, "Why does it not work?", doctor.EPILOG)
_add(app, "export", export.export, "Write the node into one file.", export.EPILOG)
_add(app, "import", import_.import_, "Make a home from such a file.", import_.EPILOG)
_add(stream, "request", request.request, "Ask to read a sealed stream.", request.EPILOG)
_add(stream, "allow", allow.allow, "Let a device read it.", allow.EPILOG)
_add(stream, "disallow", disallow.disallow, "Put readers out.", disallow.EPILOG)
_add(stream, "readers", readers.readers, "Who may read it.", readers.EPILOG)
_add(stream, "overlay", overlay.overlay, "Change it over to the ring, or back.", overlay.EPILOG)
app.add_typer(stream, name="stream", help="Streams: who may read, how linked.", epilog=EXIT_CODES)
_add(app, "privacy", privacy.privacy, "What others were told of your interests.", privacy.EPILOG)
_add(trusting, "add", trust.add, "Trust a device.", trust.ADD_EPILOG)
_add(trusting, "list", trust.list_, "Whom you trust.", trust.LIST_EPILOG)
_add(trusting, "remove", trust.remove, "Trust it no longer.", trust.REMOVE_EPILOG)
app.add_typer(trusting, name="trust", help="Whom you trust; nobody is told.", epilog=EXIT_CODES)
_add(without, "status", overlay_status.status, "Whom it knows, each topic's ring.", overlay_status.EPILOG)
app.add_typer(without, name="overlay", help="How nodes find each other without trackers.", epilog=EXIT_CODES)
_add(edges, "status", edge.status, "Proxies, or whom this one serves.", edge.STATUS_EPILOG)
_add(edges, "sleep", edge.sleep, "Let go of all links, to save power.", edge.SLEEP_EPILOG)
_add(edges, "wake", edge.wake, "Be there again.", edge.WAKE_EPILOG)
app.add_typer(edges, name="edge", help="Phones and proxies.", epilog=EXIT_CODES)
_add(lan, "status", lan_status.status, "Local networks, and who is there.", lan_status.EPILOG)
_add(lan, "allow", switching.allow, "Let a topic be known on a network.", switching.ALLOW_EPILOG)
_add(lan, "deny", switching.deny, "Keep it to yourself there again.", switching.DENY_EPILOG)
app.add_typer(lan, name="lan", help="Local networks: what may be known there.", epilog=EXIT_CODES)
_add(room, "create", create.create, "Found a room.", create.EPILOG)
_add(room, "join", join.join, "Join a room by an invitation.", join.EPILOG)
_add(room, "invite", invite.invite, "An invitation to hand over.", invite.EPILOG)
_add(room, "list", list_.list_, "Every room of the node.", list_.EPILOG)
_add(room, "send", send.send, "Say something in a room.", send.EPILOG)
_add(room, "read", read.read, "Print what is said in a room.", read.EPILOG)
_add(room, "history", room_history.history, "Print what is kept of a room.", room_history.EPILOG)
_add(room, "ledger", ledger.ledger, "Did it arrive, and at whom?", ledger.EPILOG)
_add(room, "members", members.members, "Who is in a room.", members.EPILOG)
_add(room, "security", security.security, "Who holds keys; safety numbers.", security.EPILOG)
_add(room, "state", state.state, "What holds in a room.", state.EPILOG)
_add(room, "power", power.power, "Who may do what.", power.EPILOG)
_add(room, "kick", kick.kick, "Put a person out.", kick.EPILOG)
_add(room, "ban", ban.ban, "Put a person out for good.", ban.EPILOG)
_add(room, "unban", unban.unban, "Take a ban back.", unban.EPILOG)
_add(room, "share", share.share, "Show newcomers what was said before.", share.EPILOG)
_add(room, "redact", redact.redact, "Take an event back.", redact.EPILOG)
_add(room, "attach", attach.attach, "Put a file into a room.", attach.EPILOG)
_add(room, "fetch", fetch.fetch, "Get a file out of a room.", fetch.EPILOG)
_add(room, "relays", relays.relays, "Who holds events for those away.", relays.EPILOG)
_add(room, "retention", retention.retention, "How long relays keep events.", retention.EPILOG)
_add(room, "leave", leave.leave, "Leave a room.", leave.EPILOG)
app.add_typer(room, name="room", help="Rooms: members, invitations, relays.", epilog=EXIT_CODES)
app.add_typer(name_group(_add), name="name", help="Names: what leads where.", epilog=EXIT_CODES)
for each in PLACE_COMMANDS:
    _add(place, *each)
app.add_typer(place, name="place", help="Places: a host, guests, and what it looks like.", epilog=EXIT_CODES)
for each in CONTENT_COMMANDS:
    _add(content, *each)
app.add_typer(content, name="content", help="Content: subscribe to what is said.", epilog=EXIT_CODES)
_add(identity, "backup", backup.backup, "Your key as 24 words, for paper.", backup.EPILOG)
_add(identity, "recover", recover.recover, "A new device of yours from them.", recover.EPILOG)
_add(identity, "ask", ask.ask, "A home for one more device.", ask.EPILOG)
_add(identity, "link", link.link, "A card for one more device.", link.EPILOG)
_add(identity, "accept", accept.accept, "Take a card that link printed.", accept.EPILOG)
_add(identity, "renew", renew.renew, "A new card for this device.", renew.EPILOG)
_add(identity, "devices", devices.devices, "Every device of yours.", devices.EPILOG)
_add(identity, "revoke", revoke.revoke, "Take a lost device out of use.", revoke.EPILOG)
app.add_typer(identity, name="id", help="Who you are: backup, devices.", epilog=EXIT_CODES)
_add(app, "chat", chat.chat, "Talk in a room.", chat.EPILOG)
_add(relay, "report", report.report, "What this relay knows.", report.EPILOG)
app.add_typer(relay, name="relay", help="For whoever runs a relay.", epilog=EXIT_CODES)
_add(tracking, "graph", graph.graph, "How the nodes of a stream are linked.", graph.EPILOG)
app.add_typer(tracking, name="tracker", help="For whoever runs a tracker.", epilog=EXIT_CODES)
_add(sim, "streams", sim_streams.streams, "A stream over a simulated network.", sim_streams.EPILOG)
_add(sim, "mass-join", sim_mass_join.mass_join, "Everyone joins at once.", sim_mass_join.EPILOG)
_add(sim, "content", sim_content.content, "Subscriptions to what is said.", sim_content.EPILOG)
_add(sim, "places", sim_places.places, "A host and guests who come and go.", sim_places.EPILOG)
_add(sim, "rooms", sim_rooms.rooms, "A room whose members come and go.", sim_rooms.EPILOG)
_add(sim, "groups", sim_groups.groups, "An encrypted group, and thieves.", sim_groups.EPILOG)
_add(sim, "overlay", sim_overlay.overlay, "Nodes without trackers, and liars.", sim_overlay.EPILOG)
_add(sim, "history", sim_history.history, "A real concurrent history, in any order.", sim_history.EPILOG)
_add(sim, "metadata", sim_metadata.metadata, "What relays come to know.", sim_metadata.EPILOG)
app.add_typer(sim, name="sim", help="Run the shipped node in simulation.", epilog=EXIT_CODES)
_add(lab, "ingest", ingest.ingest, "Read traces of the world into tables.", ingest.EPILOG)
_add(generate, "chats", generate_chats.chats, "Chats like those of WhatsApp.", generate_chats.EPILOG)
lab.add_typer(generate, name="generate", help="Make workloads.", epilog=EXIT_CODES)
_add(study, "overlay", study_overlay.overlay, "Nodes without trackers.", study_overlay.EPILOG)
_add(study, "content", study_content.content, "Who gets what it asked for.", study_content.EPILOG)
_add(study, "groups", study_groups.groups, "What keys without a server cost.", study_groups.EPILOG)
_add(study, "places", study_places.places, "What a log of fragments tells.", study_places.EPILOG)
_add(study, "relays", study_relays.relays, "What relays change.", study_relays.EPILOG)
_add(study, "retention", study_retention.retention, "How long relays should keep.", study_retention.EPILOG)
_add(study, "streams", study_streams.streams, "How streams spread.", study_streams.EPILOG)
_add(lab, "match", match.match, "Which subscriptions accept which events?", match.EPILOG)
lab.add_typer(study, name="study", help="Rerun the experiments of the papers.", epilog=EXIT_CODES)
_add(lab, "audit", audit.audit, "What became of every message?", audit.EPILOG)
_add(lab, "watch", watch.watch, "The same, while nodes run.", watch.EPILOG)
app.add_typer(lab, name="lab", help="Traces to figures, on Spark.", epilog=EXIT_CODES)
_add(app, "play", play.play, "Play traffic in a room, and print what all nodes did.", play.EPILOG)
_add(app, "demo", demo.demo, "Watch a real network deliver every message.", demo.EPILOG)
