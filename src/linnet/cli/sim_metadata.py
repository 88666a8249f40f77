"""``linnet sim metadata``: what relays come to know of a room, beside what a homeserver would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.options import JsonOption, examples
from linnet.cli.output import say, say_json, say_table
from linnet.cli.simulating import SeedOption, progress_bar, simulation

if TYPE_CHECKING:
    from linnet.sim.metadata import Knowledge

EPILOG = examples(
    "linnet sim metadata",
    "linnet sim metadata --retention 60",
    "linnet sim metadata --peers 30 --relays 5 --retention 3600 --json",
)

_LINES = {
    "people": "members that it knows",
    "control_events": "control events, kept for ever",
    "events_held": "other events held at the end",
    "events_seen": "other events that it ever held",
    "event_hours": "hours that it held them, in all",
    "plain_state": "names and other plain state held",
    "people_seen": "people whose devices came to it",
}

Peers = Annotated[int, typer.Option(min=2, max=1000, help="People in the room, with one device each.")]
Relays = Annotated[int, typer.Option(min=1, max=32, help="Relays of the room, and homeservers beside.")]
Messages = Annotated[int, typer.Option(min=1, max=100_000, help="Messages in all, at random times.")]
Offline = Annotated[float, typer.Option(min=0.0, max=0.95, help="Share of the time that a peer is away.")]
Retention = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", min=1.0, help="How long relays keep an event; none: no limit."),
]


def metadata(
    peers: Peers = 20,
    relays: Relays = 3,
    messages: Messages = 200,
    offline: Offline = 0.5,
    retention: Retention = None,
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Run a room with relays and count what each of them knows of it.

    Beside it stands what a homeserver of federated Matrix would hold of the same run: the whole event
    graph, for ever. It is taken to serve an equal share of the people.
    """
    with simulation():
        from linnet.sim.metadata import run_metadata
        from linnet.sim.rooms_scenario import RoomScenario

        scenario = RoomScenario(
            peers=peers, relays=relays, messages=messages, offline=offline, bans=0, demotions=0, seed=seed
        )
        with progress_bar(as_json) as progress:
            report = run_metadata(scenario, retention, progress)
    if as_json:
        say_json(report)
        return
    rows = [
        (words, _figure(report.relay, name), _figure(report.homeserver, name))
        for name, words in _LINES.items()
    ]
    say_table(("what is known", "a relay ", "a homeserver "), rows)
    say(
        f"of {report.events} events in {report.virtual_seconds:,.0f} s a relay holds {report.held_share:.0%} "
        f"of what a homeserver holds at the end, and {report.hours_share:.0%} of its event-hours"
    )


def _figure(knowledge: Knowledge, name: str) -> str:
    return f"{getattr(knowledge, name):,.1f}"
