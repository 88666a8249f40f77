"""Small random traces, and what an audit must find in them, worked out in plain Python and by other means."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from random import Random

from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession

from linnet.core.ids import DeviceId, EventId, PeerId, TopicId
from linnet.lab.stages import schema_of
from linnet.lab.tables import TRACE
from linnet.trace.records import Kind, Record, Row, row_of

BEGIN = 1_700_000_000.0
GRACE_US = 10_000_000
NEVER = 1 << 60

Unit = tuple[TopicId, EventId, DeviceId, int, int]
Event = tuple[bytes, bytes, int]
"""Topic, device, place in its chain."""


def us(row: Row) -> int:
    return round(row.time * 1_000_000)


class Writer:
    """What a few nodes write down, with counters that begin anew in each run."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._counters: dict[bytes, int] = {}

    def write(self, node: bytes, record: Record, time: float) -> None:
        counter = self._counters.get(node, 0)
        self._counters[node] = counter + 1
        self.rows.append(row_of(record, round(time * 1_000_000) / 1_000_000, node, counter))

    def start(self, node: bytes, time: float) -> None:
        self._counters[node] = 0
        self.write(node, Record(Kind.ONLINE), time)


class Tale:
    """A random life of some nodes over two topics: one is a stream, the other a room."""

    def __init__(self, seed: int, nodes: int = 5, steps: int = 60) -> None:
        self.luck = Random(seed)
        self.writer = Writer()
        self.nodes = [PeerId(bytes([number]) * 32) for number in range(1, nodes + 1)]
        self.stream, self.room = TopicId(b"s" * 32), TopicId(b"r" * 32)
        self.seqs: dict[tuple[bytes, bytes], int] = {}
        self.up = dict.fromkeys(self.nodes, True)
        self.durable = {node: self.luck.random() < 0.5 for node in self.nodes}
        time = BEGIN
        for node in self.nodes:
            self.writer.start(node, time)
            self.writer.write(node, Record(Kind.LINK_UP, peer=self.nodes[0]), time)
            time += 0.1
            if self.luck.random() < 0.9:
                self.writer.write(node, Record(Kind.CONTROL, self.room, note="joined"), time)
        for step in range(steps):
            time += self.luck.choice((0.003, 0.4, 3.0))
            self.step(time, step)
        for node in self.nodes:
            if self.up[node] and self.luck.random() < 0.8:
                self.writer.write(node, Record(Kind.OFFLINE), time + self.luck.choice((0.5, 30.0)))

    @property
    def rows(self) -> list[Row]:
        return self.writer.rows

    def step(self, time: float, step: int) -> None:
        luck = self.luck
        node = luck.choice(self.nodes)
        what = luck.random()
        if not self.up[node]:
            if what < 0.6:
                self.writer.start(node, time)
                self.up[node] = True
        elif what < 0.06:
            if luck.random() < 0.5:
                self.writer.write(node, Record(Kind.OFFLINE), time)
            self.up[node] = False
        elif what < 0.3 or step < 4:
            note = "subscribed, durable" if self.durable[node] else "subscribed"
            self.writer.write(node, Record(Kind.CONTROL, self.stream, note=note), time)
        elif what < 0.36:
            topic, note = luck.choice(((self.stream, "unsubscribed"), (self.room, "left")))
            self.writer.write(node, Record(Kind.CONTROL, topic, note=note), time)
        elif what < 0.42:
            self.writer.write(node, Record(Kind.RESYNC, self.stream, events=2, peer=node), time)
            self.writer.write(node, Record(Kind.RESYNC, self.stream, note="gap filled"), time)
        else:
            self.publish(node, luck.choice((self.stream, self.room)), time)

    def publish(self, node: PeerId, topic: TopicId, time: float) -> None:
        luck = self.luck
        device = DeviceId(node[:8])
        seq = self.seqs.get((topic, node), 0)
        count = luck.choice((1, 1, 3)) if topic == self.stream else 1
        self.seqs[topic, node] = seq + count
        head = EventId(luck.randbytes(32))
        note = None if topic == self.stream else "message"
        place = (topic, head, device, seq, count)
        if topic == self.stream and luck.random() < 0.05:
            self.writer.write(node, Record(Kind.PUBLISHED, *place, note="policy"), time)
            return
        self.writer.write(node, Record(Kind.PUBLISHED, *place, note=note), time)
        if luck.random() < 0.05:
            self.writer.write(node, Record(Kind.EXPIRED, topic, head), time + 1)
        refuser = luck.choice(self.nodes) if luck.random() < 0.1 else None
        for other in self.nodes:
            if refuser is not None:
                if other == refuser and self.up[other]:
                    self.writer.write(other, Record(Kind.REJECTED, *place), time + 0.01)
            elif other != node or topic == self.stream:
                self.hear(other, place, time, note)

    def hear(self, node: PeerId, place: Unit, time: float, note: str | None) -> None:
        luck = self.luck
        if not self.up[node]:
            return
        topic, head, device, seq, count = place
        fate, later = luck.random(), time + luck.choice((-0.02, 0.005, 0.2, 2.0))
        hops = luck.choice((None, 1, 2))
        if fate < 0.75:
            self.writer.write(node, Record(Kind.DELIVERED, *place, hops=hops, note=note), later)
            if luck.random() < 0.2:
                self.writer.write(node, Record(Kind.DUPLICATE, topic, None, device, seq, count), later)
            if luck.random() < 0.1:
                self.writer.write(node, Record(Kind.DELIVERED, *place, note=note), later + 0.5)
        elif fate < 0.8 and count > 1:
            self.writer.write(node, Record(Kind.DELIVERED, topic, head, device, seq + 1, count - 1), later)
        elif fate < 0.85:
            self.writer.write(
                node, Record(Kind.DROPPED, topic, None, device, max(0, seq - 1), count + 1), later
            )
        elif fate < 0.9:
            self.writer.write(node, Record(Kind.STORED, *place), later)


def frame_of(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    return spark.createDataFrame([tuple(row) for row in rows], schema_of(TRACE))


class Found(Struct):
    """What became of one event at one reader."""

    topic: bytes
    receiver: bytes
    event: Event
    fate: str


class Oracle:
    """Everything about a trace that is small, looked at row by row."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.by_node: dict[bytes, list[Row]] = defaultdict(list)
        for row in rows:
            self.by_node[row.node].append(row)
        self.published: dict[Event, tuple[bytes, int, bytes | None]] = {}
        self.arrivals: dict[tuple[Event, bytes], list[tuple[int, int]]] = defaultdict(list)
        for row in rows:
            for event in events_of(row):
                if row.kind == "published" and row.note != "policy":
                    last = event[2] == (row.seq or 0) + row.events - 1
                    self.published[event] = (row.node, us(row), row.event if last else None)
                elif row.kind == "delivered":
                    self.arrivals[event, row.node].append((us(row), -1 if row.hops is None else row.hops))

    def readers(self) -> dict[tuple[bytes, bytes], tuple[int, int, bool, bool]]:
        """Begin, end, whether it lasts, whether it reads itself."""
        found = {}
        for node, rows in self.by_node.items():
            for topic in {row.topic for row in rows if row.topic is not None}:
                about = [row for row in rows if row.topic == topic]
                on = [us(row) for row in about if row.note in ("subscribed", "subscribed, durable", "joined")]
                handed = [row for row in about if row.kind == "delivered"]
                if not on and not handed:
                    continue
                notes = {row.note for row in about if row.kind == "control"}
                lasts = bool(notes & {"subscribed, durable", "joined", "left"}) or any(r.note for r in handed)
                begin = min(on) if on else min(map(us, about))
                state = self.state(node, topic, us(max(rows, key=us)))
                end = state[1] if state is not None and not state[0] else us(max(rows, key=us))
                mine = {row.device for row in about if row.kind == "published"}
                found[topic, node] = (begin, end, lasts, any(row.device in mine for row in handed))
        return found

    def state(self, node: bytes, topic: bytes, time: int) -> tuple[bool, int] | None:
        """What it did last before a time, and when; None if it said nothing of it."""
        notes = [row for row in self.by_node[node] if row.topic == topic and row.kind == "control"]
        durable = any(row.note == "subscribed, durable" for row in notes)
        member = any(row.note in ("joined", "left") for row in notes)
        switches = sorted((us(row), row.note not in ("unsubscribed", "left")) for row in notes)
        if durable:
            switches = [each for each in switches if each[1] or each == switches[-1]]
        elif switches and not member:
            switches = sorted(
                [*switches, *((us(r), False) for r in self.by_node[node] if r.kind == "online")]
            )
        before = [switch for switch in switches if switch[0] <= time]
        return (before[-1][1], before[-1][0]) if before else None

    def missing(self) -> dict[tuple[Event, bytes], str]:
        """The fate of each event that a reader was not handed."""
        found = {}
        for (topic, node), (begin, end, lasts, own) in self.readers().items():
            for event, (author, published, _) in self.published.items():
                if event[0] != topic or (event, node) in self.arrivals or (author == node and not own):
                    continue
                excuse = self.excuse(event, node, author)
                found[event, node] = excuse or self.fate(event, node, published, begin, end, lasts)
        return found

    def delays(self) -> dict[tuple[str, str], list[int]]:
        """Of everything owed to a reader, to a topic and to all, in order; `NEVER` if it did not come."""
        found: dict[tuple[str, str], list[int]] = defaultdict(list)
        readers = self.readers()
        owed = [
            (event[0], node, max(0, min(time for time, _ in came) - self.published[event][1]))
            for (event, node), came in self.arrivals.items()
            if event in self.published and self.published[event][1] >= readers[event[0], node][0]
        ]
        not_owed = ("before", "after", "away")
        owed += [
            (event[0], node, NEVER) for (event, node), fate in self.missing().items() if fate not in not_owed
        ]
        for topic, node, us_ in owed:
            for whose in (("", ""), (topic.hex(), ""), (topic.hex(), node.hex())):
                found[whose].append(us_)
        return {whose: sorted(all_) for whose, all_ in found.items()}

    def excuse(self, event: Event, node: bytes, author: bytes) -> str | None:
        served = any(each == event for each, _ in self.arrivals)
        id = self.published[event][2]
        kinds = set()
        for row in self.rows:
            named = event in events_of(row) or (
                row.topic == event[0] and row.event is not None and row.event == id
            )
            if not named:
                continue
            here = row.node == node and row.kind in ("rejected", "dropped", "expired", "evicted", "stored")
            there = (row.node == author or not served) and row.kind in ("rejected", "dropped", "expired")
            if here or there:
                kinds.add(row.kind)
        if not kinds:
            return None
        return "stored" if "stored" in kinds else "explained"

    def fate(self, event: Event, node: bytes, published: int, begin: int, end: int, lasts: bool) -> str:
        rows = self.by_node[node]
        last = us(max(rows, key=us))
        if published < begin:
            return "before"
        if published > end and end < last:
            return "after"
        starts = sorted(us(row) for row in rows if row.kind == "online")
        run = [
            row for row in rows if sum(s <= us(row) for s in starts) == sum(s <= published for s in starts)
        ]
        ended, back = max(map(us, run)), next((s for s in starts if s > published), None)
        away = published > ended
        due = back if away else published
        if due is None or due + GRACE_US > end:
            return "pending"
        killed = back is not None and not any(row.kind == "offline" for row in run)
        if killed and abs(published - ended) <= 2_000_000:
            return "cut"
        state = self.state(node, event[0], published)
        if (state is not None and not state[0]) or (away and not lasts):
            return "away"
        return "lost"


def events_of(row: Row) -> list[Event]:
    if row.topic is None or row.device is None or row.seq is None:
        return []
    return [(row.topic, row.device, row.seq + place) for place in range(row.events)]
