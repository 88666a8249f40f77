"""``linnet privacy``: what this node has told others of its interests."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

from linnet.cli.moments import clock_text
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import counted, say, say_json, say_table

if TYPE_CHECKING:
    from linnet.node.overlay_types import PrivacyReply

EPILOG = examples("linnet privacy", "linnet privacy --json | jq .epsilon")

COLUMNS = ("peer", "runs ", "topics, at most ", "could ask about ", "in common ", "last")
_CERTAIN = 1e6
"""Odds beyond which there is no more to know."""


def privacy(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show what this node has told others of its interests, and what that adds up to.

    Randomised filters, private intersections, announcements on local networks, proxies, and addresses. It is
    counted on this device alone and told to nobody.
    """
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.privacy()
    if as_json:
        say_json(reply)
        return
    for line in lines(reply):
        say(line)
    if reply.intersections:
        say("")
        say_table(COLUMNS, rows(reply))


def lines(reply: PrivacyReply) -> list[str]:
    """All of it in words."""
    return [
        *_filters(reply),
        *_intersections(reply),
        *_networks(reply),
        *_proxies(reply),
        *_addresses(reply),
        "members: whoever is in a topic with you knows so; that is not counted here",
    ]


def rows(reply: PrivacyReply) -> list[tuple[object, ...]]:
    """The peers with which intersections were run, the latest first."""
    return [
        (each.peer, each.runs, each.bucket, each.tested, each.common, clock_text(each.last))
        for each in reversed(reply.intersections)
    ]


def odds_text(odds: float) -> str:
    """Odds as people say them."""
    return "a million to 1 and more" if odds >= _CERTAIN else f"{odds:,.0f} to 1"


def sure_text(epsilon: float) -> str:
    """How sure someone can be who had even odds before, rounded up: a promise must not be too good."""
    surest = 1 / (1 + exp(-epsilon))
    return "all but certain" if surest > 0.999 else f"{min(100.0, int(surest * 1000 + 1) / 10):g} % sure"


def _filters(reply: PrivacyReply) -> list[str]:
    releases = sum(each.times for each in reply.filters) + reply.earlier.releases
    if not reply.filters:
        return ["filters: none was released; nobody could tell from one what you are interested in"]
    last = reply.filters[-1]
    is_answered = any(each.answers for each in reply.filters)
    answered = ", and answers to searches, which are as noisy" if is_answered else ""
    said = [
        f"filters: {counted(releases, 'randomised filter')} of your topics{answered}; the last on "
        f"{clock_text(last.last)}; epsilon {reply.epsilon:g} in all",
        "  from those of the last week, whoever knows a public topic's name can tell with odds of at most "
        f"{odds_text(exp(last.epsilon))} whether you are in it (if it was even before: "
        f"{sure_text(last.epsilon)})",
    ]
    if reply.epsilon > last.epsilon:
        said.append(
            "  from all of them together, of a topic that you were in all the time: at most "
            f"{odds_text(reply.odds)} (if it was even before: {sure_text(reply.epsilon)})"
        )
    said.append("  whoever cannot name a topic, such as a private room's, learns nothing of it")
    repeated = [each for each in reply.filters if each.times > 1]
    if repeated:
        said.append(f"  {counted(len(repeated), 'week')} saw more than one, which should not be")
    return said


def _intersections(reply: PrivacyReply) -> list[str]:
    if not reply.runs:
        return ["intersections: none; nobody could test topics against yours"]
    peers = len(reply.intersections) + reply.earlier.peers
    tested = max((each.tested for each in reply.intersections), default=0)
    return [
        f"intersections: {counted(reply.runs, 'private intersection')} with {counted(peers, 'peer')}; "
        "each learned the topics that you have in common, and how many you have at most",
        f"  none could ask about more than {counted(tested, 'topic')}, each of which it had to know by name",
    ]


def _networks(reply: PrivacyReply) -> list[str]:
    times = sum(each.times for each in reply.announcements) + reply.earlier.announcements
    if not times:
        return ["local networks: this node did not show itself on any"]
    networks = len(reply.announcements) + reply.earlier.networks
    return [
        f"local networks: shown on {counted(networks, 'network')}, {counted(times, 'time')}: that a node is "
        "there, and no topic"
    ]


def _proxies(reply: PrivacyReply) -> list[str]:
    if not reply.proxies and not reply.earlier.proxies:
        return ["proxies: none serves this node"]
    said = [
        f"proxies: {each.proxy} knows your address and {counted(each.topics, 'topic')} that it serves you, "
        "when you read and publish there, and nothing that is said in sealed streams and encrypted rooms"
        for each in reply.proxies
    ]
    if reply.earlier.proxies:
        said.append(f"proxies: {counted(reply.earlier.proxies, 'other proxy')} did before")
    return said


def _addresses(reply: PrivacyReply) -> list[str]:
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
