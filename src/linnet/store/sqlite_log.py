"""The event log of a SQLite store: the database, overlaid by units that are not durable yet.

Reads ask the database first and then add the units that it did not have. The answer is complete whatever the
writer does meanwhile: groups become durable in the order of positions, and fresh units are dropped from
memory only in the machine's own thread. Units that were evicted are a prefix of their topic, so one position
tells which rows of the database no longer count. The summaries of topics and chains that were asked for are
kept, so that they need not be counted again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias

import msgspec

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.stores import ChainHead, Damage, Entry, Kept
from linnet.store.reader import Reader, entry_of
from linnet.store.schema import is_sound as is_sound_cell
from linnet.store.writer import Changes, Row


class ChainSummary:
    """The range of the held units of one author and device in one topic."""

    __slots__ = ("author", "device", "first", "head", "id", "last", "longest", "units")

    def __init__(self, key: int, author: AuthorId, device: DeviceId) -> None:
        self.id = key
        self.author = author
        self.device = device
        self.units = 0
        self.longest = 0
        """The most events of one unit: how far back an overlapping unit can begin."""
        self.first: int | None = None
        self.last: int | None = None
        self.head: EventId | None = None

    def add(self, unit: Entry) -> None:
        """Add a unit to the summary."""
        self.units += 1
        first = unit.first
        if first is None:
            return
        last = first + unit.count - 1
        if unit.count > self.longest:
            self.longest = unit.count
        if self.first is None or first < self.first:
            self.first = first
        if self.last is None or last > self.last:
            self.last = last
            self.head = unit.head

    def chain_head(self) -> ChainHead | None:
        """Return where the chain begins and ends; None if it has no numbered unit."""
        if self.first is None or self.last is None or self.head is None:
            return None
        return ChainHead(self.author, self.device, self.first, self.last, self.head)

    def row(self, topic: int) -> Row:
        """Return the chain's row in the table `chain`."""
        return (
            self.id,
            topic,
            self.author,
            self.device,
            self.units,
            self.longest,
            self.first,
            self.last,
            self.head,
        )


class TopicSummary:
    """How much of one topic is held, its chains, and its units that may not be durable yet."""

    __slots__ = (
        "bytes",
        "chains",
        "cut",
        "events",
        "fresh",
        "id",
        "newest",
        "oldest",
        "owners",
        "stepped",
        "topic",
        "units",
    )

    def __init__(self, key: int, topic: TopicId) -> None:
        self.id = key
        self.topic = topic
        self.units = 0
        self.events = 0
        self.bytes = 0
        self.stepped = False
        """Whether `stored_at` ever went back, so that the index by time does not follow positions."""
        self.oldest: float | None = None
        self.newest: float | None = None
        self.cut = 0
        """The position through which units are gone, though their rows may still be there."""
        self.chains: dict[tuple[AuthorId, DeviceId], ChainSummary] = {}
        self.owners: dict[int, ChainSummary] = {}
        """The chains by id."""
        self.fresh: deque[tuple[int, Entry]] = deque()
        """Units that may not be durable yet, oldest first."""

    def open_chain(self, key: int, author: AuthorId, device: DeviceId) -> ChainSummary:
        """Begin a chain."""
        chain = self.chains[author, device] = self.owners[key] = ChainSummary(key, author, device)
        return chain

    def close_chain(self, chain: ChainSummary) -> None:
        """Forget a chain that has no units left."""
        del self.chains[chain.author, chain.device], self.owners[chain.id]

    def add(self, position: int, unit: Entry) -> None:
        """Add a unit to the summary."""
        if self.units == 0:
            self.oldest = unit.stored_at
        elif self.newest is not None and unit.stored_at < self.newest:
            self.stepped = True
        self.newest = unit.stored_at
        self.units += 1
        self.events += unit.count
        self.bytes += len(unit.raw)
        self.fresh.append((position, unit))

    def remove(self, unit: Entry) -> None:
        """Take a unit out of the summary."""
        self.units -= 1
        self.events -= unit.count
        self.bytes -= len(unit.raw)
        self.chains[unit.author, unit.device].units -= 1

    def row(self) -> Row | None:
        """Return the topic's row in the table `topic`; None if it is empty."""
        if self.units == 0:
            return None
        return self.id, self.topic, self.units, self.events, self.bytes, int(self.stepped)


_EVICT_PAGE = 64
"""The units that an eviction looks at in one read."""

_COLUMNS = "position, chain, first, count, head, stored_at, raw"
_READ = f"SELECT {_COLUMNS} FROM unit WHERE topic = ? AND position > ? ORDER BY position LIMIT ?"  # noqa: S608
_CHAIN = f"""SELECT {_COLUMNS} FROM unit
    WHERE chain = ? AND first > ? AND first <= ? AND first + count > ? AND position > ?
    ORDER BY first, position LIMIT ?"""  # noqa: S608 - the columns are our own
_IN_CHAIN = """SELECT 1 FROM unit
    WHERE chain = ? AND first > ? AND first <= ? AND head = ? AND position > ? LIMIT 1"""
# 14 bits: the stretches of the index `unit_by_head`.
_BY_HEAD = """WITH RECURSIVE stretch (n) AS (
        SELECT min(position) >> 14 FROM unit
        UNION ALL SELECT n + 1 FROM stretch WHERE n < (SELECT max(position) >> 14 FROM unit)
    )
    SELECT position, topic.topic, author, device, unit.first, count, unit.head, stored_at, raw
    FROM stretch CROSS JOIN unit ON position >> 14 = n AND substr(unit.head, 1, 8) = ?
    JOIN chain ON chain.id = unit.chain JOIN topic ON topic.id = unit.topic
    WHERE unit.head = ?"""
_LOWEST = "SELECT first FROM unit WHERE chain = ? AND first >= 0 AND position > ? ORDER BY first LIMIT 1"
_NEWEST_FIRST = _LOWEST.replace("ORDER BY first", "ORDER BY first DESC")
_HIGHEST = """SELECT first + count - 1, position, head FROM unit
    WHERE chain = ? AND first > ? AND position > ? ORDER BY first + count DESC, position LIMIT 1"""
_OLDEST = "SELECT stored_at FROM unit WHERE topic = ? AND position > ? ORDER BY position LIMIT 1"
_NEWEST = "SELECT stored_at FROM unit WHERE topic = ? AND position > ? ORDER BY position DESC LIMIT 1"
_SINCE = """SELECT position FROM unit WHERE topic = ? AND stored_at < ? AND position > ?
    ORDER BY stored_at DESC, position DESC LIMIT 1"""
_SINCE_STEPPED = "SELECT max(position) FROM unit WHERE topic = ? AND stored_at < ? AND position > ?"


_NOTES = "damaged"
_NOTED = "SELECT key, value, checksum FROM cell WHERE space = ? ORDER BY key"
_decode_damage = msgspec.msgpack.Decoder(Damage).decode
_Place: TypeAlias = tuple[TopicId, AuthorId, DeviceId, int | bytes]


class SqliteLog:
    """The event log of a `SqliteStore`; see `linnet.core.stores.EventLog`."""

    def __init__(self, reader: Reader, is_sound: Callable[[Entry], bool] | None = None) -> None:
        """Units that `is_sound` finds damaged are left out of every answer, and returned by `take_damage`."""
        self._reader = reader
        self._is_sound = is_sound
        self.forget()

    def forget(self) -> None:
        """Start again from the durable units; the others are lost."""
        ask = self._reader.number
        newest, given = ask("SELECT max(position) FROM unit"), ask("SELECT position FROM log_end")
        self._end = max(newest, given)
        self.pending = Changes()
        self._last_topic = ask("SELECT max(id) FROM topic")
        self._last_chain = ask("SELECT max(id) FROM chain")
        self._topics: dict[TopicId, TopicSummary] = {}
        self._recent: dict[EventId, tuple[int, Entry]] = {}
        self._touched_topics: dict[int, TopicSummary] = {}
        self._touched_chains: dict[int, tuple[int, ChainSummary]] = {}
        self.left_out: tuple[Damage, ...] = ()
        self._damaged: dict[_Place, tuple[int, Damage]] = {}
        self._mended: dict[int, Entry] = {}
        for key, raw, checksum in self._reader.all(_NOTED, _NOTES):
            if not is_sound_cell(_NOTES, key, raw, checksum):
                raise self._reader.damaged("what was noted of a damaged unit is none")
            try:
                damage = _decode_damage(raw)
            except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
                raise self._reader.damaged(f"what was noted of a damaged unit is none: {error}") from error
            self._damaged[_place(damage)] = (int.from_bytes(key, "big"), damage)
        self._noted = {position: None for position, _ in self._damaged.values()}
        self._news: list[Damage] = [damage for _, damage in self._damaged.values()]

    def take_damage(self) -> list[Damage]:
        """Return the damage found since the last call, and that noted by an earlier check of the store."""
        news, self._news = self._news, []
        return news

    @property
    def damaged(self) -> tuple[Damage, ...]:
        """All damaged units that are known, and still held."""
        return tuple(each for _, each in self._damaged.values() if self.is_damaged(each))

    def is_damaged(self, damage: Damage) -> bool:
        """Return whether a unit is still damaged, and still held."""
        position, _ = self._damaged.get(_place(damage), (0, None))
        topic = self._topics.get(damage.topic)
        return position > (0 if topic is None else topic.cut)

    def append(self, entry: Entry) -> int | None:
        """Store a unit and return its position; None if a unit with this head is there already."""
        if entry.head in self._recent:
            return None
        if self._damaged and self._mend(entry):
            return None
        topic = self._topics.get(entry.topic) or self._load(entry.topic)
        chain = topic.chains.get((entry.author, entry.device))
        if chain is None:
            self._last_chain += 1
            chain = topic.open_chain(self._last_chain, entry.author, entry.device)
        elif self._is_stored(topic, chain, entry):
            return None
        self._end += 1
        position = self._end
        topic.add(position, entry)
        chain.add(entry)
        self._recent[entry.head] = (position, entry)
        self.pending.units.append((position, topic.id, chain.id, entry))
        self.pending.bytes += len(entry.raw)
        self._touched_topics[topic.id] = topic
        self._touched_chains[chain.id] = (topic.id, chain)
        return position

    def get(self, head: EventId) -> Entry | None:
        """Return the unit whose last event has this id; None if there is none."""
        recent = self._recent.get(head)
        if recent is not None:
            return recent[1]
        for position, *fields in self._reader.all(_BY_HEAD, head[:8], head):
            entry = self._mended.get(position) or entry_of(*fields)
            topic = self._topics.get(entry.topic)
            if (topic is None or position > topic.cut) and self._checked(position, entry):
                return entry
        return None

    def read(self, topic: TopicId, after: int, limit: int) -> list[tuple[int, Entry]]:
        """Return units of a topic past a position, oldest first."""
        held = self._topics.get(topic) or self._load(topic)
        units: list[tuple[int, Entry]] = []
        self.left_out = ()
        newest = max(after, held.cut)
        # Repeat for units that were left out: an answer below the limit means that there are no more.
        while (asked := limit - len(units)) > 0:
            found = self._stored(held, newest, asked)
            sound = [each for each in found if self._checked(*each)]
            if len(sound) < len(found):
                self.left_out += tuple(_damage(each[1]) for each in found if not self._checked(*each))
            units += sound
            newest = found[-1][0] if found else newest
            if len(found) < asked:
                break
        for position, entry in held.fresh:
            if len(units) >= limit:
                break
            if position > newest:
                units.append((position, entry))
        return units

    def _stored(self, held: TopicSummary, after: int, limit: int) -> list[tuple[int, Entry]]:
        """Return rows of the database as units, sound or not."""
        return self._units(held, self._reader.all(_READ, held.id, after, limit))

    def chain(
        self, topic: TopicId, author: AuthorId, device: DeviceId, first: int, last: int, limit: int
    ) -> list[Entry]:
        """Return units of one chain that overlap a range of sequence numbers, in its order."""
        held = self._topics.get(topic) or self._load(topic)
        chain = held.chains.get((author, device))
        if chain is None:
            return []
        more = limit
        while True:
            rows = self._reader.all(_CHAIN, chain.id, first - chain.longest, last, first, held.cut, more)
            units = [each for each in self._units(held, rows) if self._checked(*each)]
            if len(rows) < more or len(units) >= limit:
                break
            more += limit - len(units)
        found = {(begin, at): unit for begin, at, unit in _numbered(units, chain)}
        for begin, position, unit in _numbered(held.fresh, chain):
            if begin <= last and begin + unit.count > first:
                found[begin, position] = unit
        return [found[place] for place in sorted(found)[:limit]]

    def heads(self, topic: TopicId) -> list[ChainHead]:
        """Return the ends of every chain of a topic, in the order in which their first units came."""
        held = self._topics.get(topic) or self._load(topic)
        heads = (chain.chain_head() for chain in held.chains.values())
        return [head for head in heads if head is not None]

    def kept(self, topic: TopicId) -> Kept:
        """Return how much of a topic is held."""
        held = self._topics.get(topic) or self._load(topic)
        return Kept(held.units, held.events, held.bytes, held.oldest)

    def since(self, topic: TopicId, stored_at: float) -> int:
        """Return the position after which all units of a topic were stored at this time or later."""
        held = self._topics.get(topic) or self._load(topic)
        older = (position for position, unit in reversed(held.fresh) if unit.stored_at < stored_at)
        fresh = next(older, None)
        if fresh is not None:
            return fresh
        return self._reader.number(_SINCE_STEPPED if held.stepped else _SINCE, held.id, stored_at, held.cut)

    def end(self) -> int:
        """Return the last position given; 0 if none ever was."""
        return self._end

    def evict(self, topic: TopicId, before: float | None, max_bytes: int | None, limit: int) -> list[Entry]:
        """Remove the oldest units of a topic until none is older and its bytes fit; return them."""
        held = self._topics.get(topic) or self._load(topic)
        through = 0 if before is None else self.since(topic, before)
        evicted: list[Entry] = []
        while len(evicted) < limit and (
            through > held.cut or (max_bytes is not None and held.bytes > max_bytes)
        ):
            page = self._oldest(held, min(_EVICT_PAGE, limit - len(evicted)))
            for position, unit in page:
                if position > through and (max_bytes is None or held.bytes <= max_bytes):
                    break
                self._remove(held, position, unit)
                evicted.append(unit)
        if evicted:
            self._after_eviction(held, evicted)
        return evicted

    def seal(self) -> Changes:
        """Return the pending writes; the next writes are for the next commit."""
        changes, self.pending = self.pending, Changes()
        for topic in self._touched_topics.values():
            changes.topics[topic.id] = topic.row()
        for key, (topic_id, chain) in self._touched_chains.items():
            changes.chains[key] = chain.row(topic_id) if chain.units else None
        changes.end = self._end
        self._touched_topics = {}
        self._touched_chains = {}
        return changes

    def let_go(self, units: Iterable[tuple[int, int, int, Entry]]) -> None:
        """Drop durable units from memory; they are read from the database now."""
        for position, _, _, unit in units:
            recent = self._recent.get(unit.head)
            if recent is not None and recent[0] == position:
                del self._recent[unit.head]
            fresh = self._topics[unit.topic].fresh
            while fresh and fresh[0][0] <= position:
                fresh.popleft()

    def _load(self, topic: TopicId) -> TopicSummary:
        """Load the summary of a topic that this process has not touched yet, so all of it is durable."""
        row = self._reader.first("SELECT id, units, events, bytes, stepped FROM topic WHERE topic = ?", topic)
        if row is None:
            self._last_topic += 1
            held = self._topics[topic] = TopicSummary(self._last_topic, topic)
            return held
        if not all(isinstance(each, int) for each in row):
            raise self._reader.damaged(f"what is said of the topic {topic.hex()[:8]}… is none")
        held = self._topics[topic] = TopicSummary(row[0], topic)
        held.units, held.events, held.bytes, held.stepped = row[1], row[2], row[3], bool(row[4])
        self._load_ends(held)
        for key, author, device, *fields in self._reader.all(
            "SELECT id, author, device, units, longest, first, last, head FROM chain"
            " WHERE topic = ? ORDER BY id",
            held.id,
        ):
            if not _is_chain(author, device, fields):
                del self._topics[topic]
                raise self._reader.damaged(f"the chain {key} of the topic {topic.hex()[:8]}… is none")
            chain = held.open_chain(key, author, device)
            chain.units, chain.longest, chain.first, chain.last, chain.head = fields
        return held

    def _load_ends(self, held: TopicSummary) -> None:
        oldest = self._reader.first(_OLDEST, held.id, held.cut)
        newest = self._reader.first(_NEWEST, held.id, held.cut)
        held.oldest = None if oldest is None else oldest[0]
        held.newest = None if newest is None else newest[0]

    def _is_stored(self, topic: TopicSummary, chain: ChainSummary, entry: Entry) -> bool:
        """Return whether a unit with this head is in the database.

        A head is the hash of an event, which names its chain and number: a unit with the same head is in the
        same chain and ends at the same number. So a unit that extends a chain needs no search.
        """
        if entry.first is None:
            return self.get(entry.head) is not None
        last = entry.first + entry.count - 1
        if chain.last is None or last > chain.last:
            return False
        found = self._reader.first(_IN_CHAIN, chain.id, last - chain.longest, last, entry.head, topic.cut)
        return found is not None

    def _oldest(self, held: TopicSummary, limit: int) -> list[tuple[int, Entry]]:
        """Return the oldest units of a topic; damaged ones are evicted like the rest."""
        return self._stored(held, held.cut, limit) or list(islice(held.fresh, limit))

    def _checked(self, position: int, entry: Entry) -> bool:
        """Return whether a unit is as it was written; note the damage if not."""
        if self._is_sound is None or position in self._mended:
            return True
        if position not in self._noted and self._is_sound(entry):
            return True
        damage = _damage(entry)
        if _place(damage) not in self._damaged:
            self._damaged[_place(damage)] = (position, damage)
            self._news.append(damage)
        return False

    def _mend(self, entry: Entry) -> bool:
        """Put a unit in the place of its damaged copy; return whether there was one."""
        place = _place(_damage(entry))
        if place not in self._damaged:
            return False
        position, _ = self._damaged.pop(place)
        self._mended[position] = self.pending.mended[position] = entry
        return True

    def _units(self, topic: TopicSummary, rows: list[tuple[Any, ...]]) -> list[tuple[int, Entry]]:
        units = []
        for position, owner, *fields in rows:
            chain = topic.owners.get(owner)
            if chain is None:
                raise self._reader.damaged(f"the unit at position {position} belongs to no chain")
            unit = entry_of(topic.topic, chain.author, chain.device, *fields)
            units.append((position, self._mended.get(position, unit)))
        return units

    def _remove(self, topic: TopicSummary, position: int, unit: Entry) -> None:
        topic.remove(unit)
        topic.cut = position
        recent = self._recent.get(unit.head)
        if recent is not None and recent[0] == position:
            del self._recent[unit.head]
        while topic.fresh and topic.fresh[0][0] <= position:
            topic.fresh.popleft()

    def _after_eviction(self, topic: TopicSummary, evicted: list[Entry]) -> None:
        """Update the summaries of a topic and of the chains that lost units."""
        self.pending.cuts[topic.id] = topic.cut
        self._touched_topics[topic.id] = topic
        owners = {(unit.author, unit.device): None for unit in evicted}
        for chain in [topic.chains[owner] for owner in owners]:
            self._touched_chains[chain.id] = (topic.id, chain)
            if chain.units:
                self._measure(topic, chain)
            else:
                topic.close_chain(chain)
        if topic.units == 0:
            topic.stepped, topic.oldest, topic.newest = False, None, None
            return
        oldest = self._reader.first(_OLDEST, topic.id, topic.cut)
        topic.oldest = topic.fresh[0][1].stored_at if oldest is None else oldest[0]

    def _measure(self, topic: TopicSummary, chain: ChainSummary) -> None:
        """Find again where a chain begins and ends."""
        fresh = list(_numbered(topic.fresh, chain))
        firsts = [first for first, _, _ in fresh]
        ends = [(first + unit.count - 1, -position, unit.head) for first, position, unit in fresh]
        lowest = self._reader.first(_LOWEST, chain.id, topic.cut)
        if lowest is not None:
            newest = self._reader.number(_NEWEST_FIRST, chain.id, topic.cut)
            highest = self._reader.first(_HIGHEST, chain.id, newest - chain.longest, topic.cut)
            firsts.append(lowest[0])
            if highest is not None:
                ends.append((highest[0], -highest[1], highest[2]))
        chain.first = min(firsts, default=None)
        chain.last, _, chain.head = max(ends, default=(None, 0, None))


def _is_chain(author: object, device: object, fields: list[object]) -> bool:
    """Return whether the columns of a chain can be one: its owner, counts, numbers and head."""
    units, longest, first, last, head = fields
    return (
        isinstance(author, bytes)
        and isinstance(device, bytes)
        and isinstance(units, int)
        and isinstance(longest, int)
        and isinstance(first, int | None)
        and isinstance(last, int | None)
        and isinstance(head, bytes | None)
    )


def _place(damage: Damage) -> _Place:
    """Return the identity of a unit, which stays the same however its bytes were changed."""
    name = damage.head if damage.first is None else damage.first
    return damage.topic, damage.author, damage.device, name


def _damage(entry: Entry) -> Damage:
    return Damage(entry.topic, entry.author, entry.device, entry.first, entry.count, entry.head)


def _numbered(units: Iterable[tuple[int, Entry]], chain: ChainSummary) -> Iterator[tuple[int, int, Entry]]:
    """Yield (first, position, unit) for the units of a chain that have a sequence number."""
    for position, unit in units:
        if unit.first is not None and unit.author == chain.author and unit.device == chain.device:
            yield unit.first, position, unit
