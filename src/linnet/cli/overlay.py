"""Commands about overlays without trackers: known nodes, trusted devices, and what others were told."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.moments import clock_text
from linnet.cli.options import with_examples
from linnet.cli.output import counted, fact_lines, plain, say, say_table
from linnet.cli.running_node import Session
from linnet.identity.text import device_text, topic_text

if TYPE_CHECKING:
    from linnet.core.ids import PeerId
    from linnet.overlay.gossip.commands import TrackerlessStatus
    from linnet.overlay.gossip.privacy_budget import BudgetIs, FilterTold

RING_COLUMNS = ("topic", "members known ", "beside us on the ring", "neighbours", "without a link ")

_SHOWN = 13
"""Letters of a device id in a table: enough to distinguish it, and to find it in linnet peers."""


@with_examples(
    "linnet overlay status", "linnet overlay status --json | jq '.rings[] | {name, known, neighbors}'"
)
def show_overlay(session: Session) -> None:
    """Show the rounds of gossip, the nodes that this node knows, and the ring of each topic."""
    from linnet.overlay.gossip.commands import ExamineOverlay

    reply = session.ask(ExamineOverlay())
    session.say(reply, fact_lines(facts(reply), 15))
    if reply.rings and not session.as_json:
        say_table(RING_COLUMNS, ring_rows(reply))


def facts(reply: TrackerlessStatus) -> list[tuple[str, str]]:
    """Return the state of gossip as names and values."""
    empty = f", {reply.intersections_empty} of them with nothing in common" if reply.intersections else ""
    return [
        ("rounds", f"{reply.rounds:,}"),
        ("known", counted(reply.acquaintances, "node")),
        ("sample", f"{len(reply.sample)} of all nodes"),
        ("alike", f"{len(reply.alike)}, and {len(reply.fingers)} who are not"),
        ("held", f"links to {counted(reply.held, 'node')} for topics"),
        ("intersections", f"{reply.intersections}{empty}"),
    ]


def ring_rows(reply: TrackerlessStatus) -> list[tuple[object, ...]]:
    """Return the topics as rows of a table."""
    return [
        (
            plain(ring.name) if ring.name else topic_text(ring.topic),
            ring.known,
            # In a small ring, the same nodes are on both sides.
            _shown(dict.fromkeys((*reversed(ring.predecessors), *ring.successors))),
            _shown(ring.neighbors),
            ring.uncovered,
        )
        for ring in reply.rings
    ]


def _shown(devices: Iterable[PeerId]) -> list[str]:
    return [device_text(each)[:_SHOWN] for each in devices]


Device = Annotated[
    str, typer.Argument(metavar="DEVICE", help="The device's id, ld1…; what stands behind an @ is left out.")
]
Value = Annotated[float, typer.Option("--value", help="How much: above 0, at most 1.")]


@with_examples("linnet trust add ld1…", "linnet trust add ld1… --value 0.5")
def add_trust(device: Device, value: Value = 1.0, *, session: Session) -> None:
    """Trust a device: this node asks it more often, and prefers it among peers with similar interests.

    The value stays on this device and is told to nobody. A stranger has 0.1.
    """
    from linnet.core.errors import BadText
    from linnet.overlay.gossip.commands import SetTrust

    if not 0.0 < value <= 1.0:
        raise BadText(f"--value {value:g}: trust is above 0, at most 1; linnet trust remove takes it back")
    named = _named(device)
    session.say(session.ask(SetTrust(named, value)), f"trust {device_text(named)} with {value:g}")


@with_examples("linnet trust list", "linnet trust list --json | jq '.devices[].device'")
def list_trust(session: Session) -> None:
    """List the devices that you trust, the most trusted first."""
    from linnet.overlay.gossip.commands import ListTrust

    reply = session.ask(ListTrust())
    rows = [(device_text(each.device), f"{each.value:g}") for each in reply.devices]
    otherwise = "you trust no device more than strangers; linnet trust add DEVICE changes that"
    session.say_table(reply, ("device", "trust "), rows, otherwise)


@with_examples("linnet trust remove ld1…")
def remove_trust(device: Device, session: Session) -> None:
    """Trust a device no more than a stranger. To refuse all contact with it: linnet block."""
    from linnet.overlay.gossip.commands import SetTrust

    named = _named(device)
    session.say(session.ask(SetTrust(named)), f"no longer trust {device_text(named)}")


def _named(device: str) -> PeerId:
    """Return the device alone: a copied address may have its host after the key."""
    from linnet.identity.addresses import parse_device

    return parse_device(device.partition("@")[0])


INTERSECTION_COLUMNS = ("peer", "runs ", "topics, at most ", "could ask about ", "in common ", "last")

_MOST = 700.0
"""The largest epsilon that is shown: beyond it, e^epsilon is no number for a machine."""

_CERTAIN = 1e6
"""Odds beyond which there is no difference."""


@with_examples("linnet privacy", "linnet privacy --json | jq .epsilon")
def privacy(session: Session) -> None:
    """Show what this node has revealed of its interests to others, and what that adds up to.

    This covers randomised filters, private intersections, announcements on local networks, proxies and
    addresses. It is counted on this device alone and told to nobody.
    """
    from linnet.overlay.gossip.commands import ExaminePrivacy

    reply = session.ask(ExaminePrivacy())
    session.say(reply, privacy_lines(reply))
    if reply.intersections and not session.as_json:
        say("")
        say_table(INTERSECTION_COLUMNS, intersection_rows(reply))


def privacy_lines(reply: BudgetIs) -> list[str]:
    """Describe in lines everything that was revealed."""
    return [
        *_filters(reply),
        *_intersections(reply),
        *_networks(reply),
        *_proxies(reply),
        *_addresses(reply),
        "members: whoever is in a topic with you knows so; that is not counted here",
    ]


def intersection_rows(reply: BudgetIs) -> list[tuple[object, ...]]:
    """The peers with which intersections were run, the latest first."""
    return [
        (device_text(each.peer), each.runs, each.bucket, each.tested, each.common, clock_text(each.last))
        for each in reversed(reply.intersections)
    ]


def odds_text(odds: float) -> str:
    """Return odds in words."""
    return "a million to 1 and more" if odds >= _CERTAIN else f"{odds:,.0f} to 1"


def sure_text(epsilon: float) -> str:
    """Say how sure an observer with even odds can become, rounded up: a promise must not be too good."""
    surest = 1 / (1 + exp(-epsilon))
    return "all but certain" if surest > 0.999 else f"{min(100.0, int(surest * 1000 + 1) / 10):g} % sure"


def _epsilon(told: FilterTold) -> float:
    """Return the epsilon of all releases of one week, with answers to searches."""
    return (told.epsilon_milli + told.answers_milli) / 1000


def _filters(reply: BudgetIs) -> list[str]:
    releases = sum(each.times for each in reply.filters) + reply.earlier.releases
    if not reply.filters:
        return ["filters: none was released; nobody could tell from one what you are interested in"]
    last = reply.filters[-1]
    is_answered = any(each.answers_milli for each in reply.filters)
    answered = ", and answers to searches, which are as noisy" if is_answered else ""
    said = [
        f"filters: {counted(releases, 'randomised filter')} of your topics{answered}; the last on "
        f"{clock_text(last.last)}; epsilon {reply.epsilon:g} in all",
        "  from those of the last week, whoever knows a public topic's name can tell with odds of at most "
        f"{odds_text(exp(_epsilon(last)))} whether you are in it (if it was even before: "
        f"{sure_text(_epsilon(last))})",
    ]
    if reply.epsilon > _epsilon(last):
        said.append(
            "  from all of them together, of a topic that you were in all the time: at most "
            f"{odds_text(exp(min(reply.epsilon, _MOST)))} (if it was even before: {sure_text(reply.epsilon)})"
        )
    said.append("  whoever cannot name a topic, such as a private room's, learns nothing of it")
    repeated = [each for each in reply.filters if each.times > 1]
    if repeated:
        said.append(f"  {counted(len(repeated), 'week')} saw more than one, which should not be")
    return said


def _intersections(reply: BudgetIs) -> list[str]:
    if not reply.runs:
        return ["intersections: none; nobody could test topics against yours"]
    peers = len(reply.intersections) + reply.earlier.peers
    tested = max((each.tested for each in reply.intersections), default=0)
    return [
        f"intersections: {counted(reply.runs, 'private intersection')} with {counted(peers, 'peer')}; "
        "each learned the topics that you have in common, and how many you have at most",
        f"  none could ask about more than {counted(tested, 'topic')}, each of which it had to know by name",
    ]


def _networks(reply: BudgetIs) -> list[str]:
    times = sum(each.times for each in reply.announcements) + reply.earlier.announcements
    if not times:
        return ["local networks: this node did not show itself on any"]
    networks = len(reply.announcements) + reply.earlier.networks
    return [
        f"local networks: shown on {counted(networks, 'network')}, {counted(times, 'time')}: that a node is "
        "there, and no topic"
    ]


def _proxies(reply: BudgetIs) -> list[str]:
    if not reply.proxies and not reply.earlier.proxies:
        return ["proxies: none serves this node"]
    said = [
        f"proxies: {device_text(each.proxy)} knows your address and {counted(each.topics, 'topic')} that it "
        "serves you, when you read and publish there, and nothing that is said in sealed streams and "
        "encrypted rooms"
        for each in reply.proxies
    ]
    if reply.earlier.proxies:
        said.append(f"proxies: {counted(reply.earlier.proxies, 'other proxy')} did before")
    return said


def _addresses(reply: BudgetIs) -> list[str]:
    own = sum(each.own > 0 for each in reply.addresses)
    others = sum(each.others > 0 for each in reply.addresses)
    if not reply.addresses and not reply.earlier.told:
        return ["addresses: nobody was told where you may be dialled, nor where others may"]
    said = [
        f"addresses: {counted(own, 'device')} in a topic with you learned where you may be dialled, and "
        f"{counted(others, 'device')} where others may who share a topic with them"
    ]
    if reply.earlier.told:
        said.append(f"addresses: {counted(reply.earlier.told, 'other device')} learned some before")
    return said
