"""Real subscriptions, availability and latencies, found by their files; what is not there is drawn, and told.

The files are those of public sets in the layout that ``linnet lab ingest`` also reads:
``user_topics.txt`` (user, a tab, topics; SNAP ego-Twitter), ``user_artists.dat`` (user, artist, weight;
HetRec 2011 Last.fm), ``sessions_100.txt`` (weeks of phones) and ``city_pings.csv`` (WonderNetwork),
each plain or as ``.gz``.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from linnet.lab.errors import LabError
from linnet.lab.sources.availability import sessions
from linnet.lab.studies.overlay.parameters import LASTFM, TWITTER, TWITTER_SCALE
from linnet.sim.links import LatencyTable, aws_latency
from linnet.sim.overlay.scenario import Interests
from linnet.sim.seeded_random import named_luck

_FEWEST = 3
"""Members that a topic must have among the users taken: others cannot be shared by chance only."""
_REGIONS = 24
"""Cities that latencies are taken of."""
_PROFILE_TOPICS, _PROFILE = 2000, 40
"""Topics in all, and of one user, where filters are compared."""
WEEK_MS = 604_800_000


class Surroundings(Struct, frozen=True):
    """What overlays are simulated in."""

    interests: dict[str, tuple[tuple[int, ...], ...]]
    """By origin; those of real users, as far as there are any."""
    profiles: dict[str, tuple[tuple[int, ...], ...]]
    """The same with more topics for each: what filters are compared by."""
    weeks: tuple[tuple[tuple[int, int], ...], ...]
    """When phones were online, in milliseconds of a week; none: not known."""
    latency: LatencyTable
    latency_name: str
    missing: tuple[str, ...]
    """What was not found and is drawn instead."""


def read_surroundings(
    folder: str, nodes: int, topics: int, most: int, seed: int, users: int = 200, scale: int = 0
) -> Surroundings:
    """All that is found in a folder; with a `scale`, as many Twitter users and topics once more."""
    if not folder:
        missing = ("subscriptions of Twitter users", "subscriptions of Last.fm users", "phones", "cities")
        return Surroundings({}, {}, (), aws_latency(), "AWS, 16 regions", missing)
    root, absent = Path(folder), list[str]()
    interests: dict[str, Interests] = {}
    profiles: dict[str, Interests] = {}
    for name, file, read in (
        (TWITTER, "user_topics.txt", read_topics),
        (LASTFM, "user_artists.dat", read_artists),
    ):
        path = find(root, file)
        if path is None:
            absent.append(f"subscriptions of {name} users ({file})")
        else:
            found = read(path)
            interests[name] = taken(found, nodes, topics, most, seed)
            profiles[name] = taken(found, users, _PROFILE_TOPICS, _PROFILE, seed)
            if scale and name == TWITTER:
                interests[TWITTER_SCALE] = taken(found, scale, scale, most, seed)
    phones, cities = find(root, "sessions_100.txt"), find(root, "city_pings.csv")
    absent += ["phones (sessions_100.txt)"] if phones is None else []
    absent += ["cities (city_pings.csv)"] if cities is None else []
    return Surroundings(
        interests,
        profiles,
        () if phones is None else read_weeks(phones, nodes, seed),
        aws_latency() if cities is None else read_cities(cities, _REGIONS),
        "AWS, 16 regions" if cities is None else f"WonderNetwork, {_REGIONS} cities",
        tuple(absent),
    )


def find(root: Path, name: str) -> Path | None:
    """A file of this name below a folder, plain or compressed."""
    for pattern in (name, f"{name}.gz"):
        for path in sorted(root.rglob(pattern)):
            if path.is_file():
                return path
    return None


def _lines(path: Path) -> Iterator[str]:
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8") as file:
                yield from file
        else:
            with path.open(encoding="utf-8") as file:
                yield from file
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise LabError(f"{path.name}: it cannot be read: {error}") from error


def read_topics(path: Path) -> list[list[str]]:
    """Users in the order of the file, with their topics."""
    users = []
    for line in _lines(path):
        _, tab, topics = line.partition("\t")
        if not tab:
            raise LabError(f"{path.name}: a line is not USER<TAB>TOPIC TOPIC …: {line[:60]!r}")
        users.append(topics.split())
    return users


def read_artists(path: Path) -> list[list[str]]:
    """Users in the order of the file, with the artists that they listen to, most of all first."""
    lines = _lines(path)
    if next(lines, "").split() != ["userID", "artistID", "weight"]:
        raise LabError(f"{path.name}: its first line is not userID, artistID, weight")
    users: dict[str, list[str]] = {}
    for line in lines:
        fields = line.split()
        if len(fields) != 3:
            raise LabError(f"{path.name}: a line has not three fields: {line[:60]!r}")
        users.setdefault(fields[0], []).append(fields[1])
    return list(users.values())


def taken(users: list[list[str]], nodes: int, topics: int, most: int, seed: int) -> Interests:
    """The interests of so many users who follow each other in a file, in topics that several of them have.

    Files list users near those they know, so a stretch of one is a piece of its network. The most popular
    topics of the stretch count, and of each user at most so many, the rarer ones first: those say most.
    """
    if len(users) < nodes:
        raise LabError(f"there are {len(users)} users with subscriptions: give --nodes of no more than that")
    start = named_luck(seed, "stretch").randrange(len(users) - nodes + 1)
    size = min(2 * nodes, len(users) - start)
    stretch = users[start : start + size]
    counts: dict[str, int] = {}
    for own in stretch:
        for topic in dict.fromkeys(own):
            counts[topic] = counts.get(topic, 0) + 1
    popular = sorted((topic for topic in counts if counts[topic] >= _FEWEST), key=lambda t: (-counts[t], t))
    numbers = {topic: number for number, topic in enumerate(popular[:topics])}
    chosen = []
    for own in stretch:
        known = sorted({numbers[topic] for topic in own if topic in numbers}, reverse=True)
        if known:
            chosen.append(tuple(sorted(known[:most])))
    if len(chosen) < nodes:
        chosen += [(number % max(1, len(numbers)),) for number in range(nodes - len(chosen))]
    return tuple(chosen[:nodes])


def topic_count(interests: Interests) -> int:
    """How many topics there are, by the highest number."""
    return 1 + max(topic for own in interests for topic in own)


def read_weeks(path: Path, nodes: int, seed: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Weeks of so many phones that were seen for all of it, drawn from all."""
    weeks = []
    for line in _lines(path):
        fields = line.split()
        try:
            durations = [int(field) for field in fields[4:]]
        except ValueError as error:
            raise LabError(f"{path.name}: a duration is no number: {line[:60]!r}") from error
        if durations and sum(durations) == WEEK_MS:
            weeks.append((fields[1] == "1", durations))
    if not weeks:
        raise LabError(f"{path.name}: no line tells of a whole week")
    luck = named_luck(seed, "weeks")
    return tuple(tuple(sessions(*luck.choice(weeks))) for _ in range(nodes))


def read_cities(path: Path, regions: int) -> LatencyTable:
    """One-way delays between the cities with the most measurements."""
    delays: dict[tuple[str, str], float] = {}
    for row in csv.DictReader(_lines(path)):
        try:
            delays[row["from_city"], row["to_city"]] = float(row["rtt_avg_ms"]) / 2000
        except (KeyError, TypeError, ValueError) as error:
            raise LabError(f"{path.name}: a row has no from_city, to_city or rtt_avg_ms") from error
    names = dict.fromkeys(origin for origin, _ in delays)
    whole = list(names)
    step = max(1, len(whole) // regions)
    kept: list[str] = []
    for name in (*whole[::step], *whole):
        if len(kept) < regions and name not in kept and _all_known(delays, name, kept):
            kept.append(name)
    table = {(a, b): delays.get((a, b), 0.0005) for a in kept for b in kept}
    return LatencyTable(tuple(kept), table)


def _all_known(delays: dict[tuple[str, str], float], name: str, others: list[str]) -> bool:
    return all((name, other) in delays and (other, name) in delays for other in others)
