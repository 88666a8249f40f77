"""A stream of real nodes in the open world: a tracker, a storage node, readers of every sort who publish."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from math import inf
from pathlib import Path
from random import Random

from msgspec import Struct
from msgspec.structs import replace
from tests.node.killed_world import configure
from tests.node.ring_world import BRISK
from tests.node.struck_world import SUBSCRIBES, Recorder, StruckWorld

from linnet.api.items import EventView, MissedView
from linnet.core.ids import DeviceId, EventId
from linnet.identity.text import Sort, from_text
from linnet.node.client import ControlClient
from linnet.node.config import NodeConfig, StorageSection, TrackerSection
from linnet.sim.judges.streams import Life, Publication, Reader, Receipt, judge_stream
from linnet.sim.judges.verdict import Complaint
from linnet.sim.nemesis.faults import Cast
from linnet.streams.commands import Publish, Subscribe

TRACKER, STORAGE = "tracker", "storage"
NODES = ("ann", "bob", "cid")
NEWCOMERS = ("dee",)
STREAM = "open/world"


class Saying(Struct):
    """Something that is published."""

    text: str
    publisher: str
    asked: float
    was_wrong: bool
    acked: float | None = None
    id: EventId = EventId(b"")
    seq: int = 0


class OpenStreams(StruckWorld):
    """One stream."""

    way = "streams"

    def __init__(self, directory: Path, seed: int) -> None:
        super().__init__(directory, (TRACKER, STORAGE, *NODES), NEWCOMERS, BRISK, seed)
        self.said: list[Saying] = []
        self._since: dict[str, float | None] = {}
        """From when on each application reads."""
        for name, node in self.nodes.items():
            configure(node, partial(self._configured, name))
        self._devices = {name: self.device(name) for name in self.nodes}

    @property
    def cast(self) -> Cast:
        """See `StruckWorld.cast`."""
        return Cast(
            nodes=(TRACKER, STORAGE, *NODES),
            anchors=(TRACKER, STORAGE),
            spared=(TRACKER, *NODES),
            fixed=(TRACKER,),
            newcomers=NEWCOMERS,
        )

    @property
    def acknowledged(self) -> int:
        """See `StruckWorld.acknowledged`."""
        return sum(saying.acked is not None for saying in self.said)

    def _configured(self, name: str, config: NodeConfig) -> NodeConfig:
        trackers = () if name == TRACKER else (self.contact(TRACKER),)
        return replace(
            config,
            node=replace(config.node, trackers=trackers),
            tracker=TrackerSection(enabled=name == TRACKER),
            storage=(StorageSection(STREAM),) if name == STORAGE else (),
        )

    def set_up(self) -> None:
        """All but the newcomers take part."""
        self.start_these((TRACKER, STORAGE, *NODES))
        for number, name in enumerate(NODES):
            self._subscribe(name, durable=number != 1, since=0.0 if number == 2 else None)
        for reader in self.readers:
            reader.await_subscription(SUBSCRIBES)

    def act(self) -> None:
        """Somebody publishes."""
        living = self.living(NODES)
        if living:
            name = self.luck.choice(living)
            self.call(lambda: self._publish(name))

    def change(self) -> None:
        """One more subscription at some node."""
        living = self.living(NODES)
        if living:
            since = self.luck.choice((None, None, 0.0))
            self._subscribe(self.luck.choice(living), durable=self.luck.random() < 0.5, since=since)

    def welcome(self, name: str) -> None:
        """Somebody subscribes who was not there, from now on."""
        self._subscribe(name, durable=True, since=None)

    def finish(self) -> None:
        """Everybody publishes once more."""
        for name in self.living((*NODES, *NEWCOMERS)):
            self.call(partial(self._publish, name))

    def _publish(self, name: str) -> None:
        text = f"{name}:{len(self.said)}:{self.luck.getrandbits(32):08x}"
        saying = Saying(text, name, time.monotonic(), bool(self.ahead[name]))
        self.said.append(saying)
        reply = self.nodes[name].control.ask(Publish(STREAM, (text.encode(),)))
        saying.id, saying.seq = reply.ids[0], reply.first
        saying.acked = time.monotonic()

    def _subscribe(self, name: str, durable: bool, since: float | None) -> None:
        called = f"reader {len(self.readers)}" if durable else None

        def subscribe(reading: ControlClient) -> Iterator[object]:
            return reading.lines(Subscribe(0, STREAM, since, called), manual=True)

        luck = Random(f"{self.seed} {len(self.readers)}")
        node = self.nodes[name]
        reader = self.read(Recorder(node, called or "live", subscribe, _event_of, luck, is_durable=durable))
        self._since[reader.name] = since

    def judge(self) -> list[Complaint]:
        """See `StruckWorld.judge`."""
        return judge_stream(self._publications(), filter(None, map(self._reader, list(self.readers))))

    def _publications(self) -> list[Publication]:
        """All that was acknowledged, and what was not but came about: a kill took the answer away."""
        spread: dict[str, float] = {}
        seen: dict[str, EventView] = {}
        for reader in self.readers:
            for taken in list(reader.taken):
                if isinstance(taken.item, EventView) and taken.item.text is not None:
                    text = taken.item.text
                    seen[text] = taken.item
                    if not text.startswith(f"{reader.node.name}:"):
                        spread[text] = min(spread.get(text, inf), taken.at)
        found = []
        for saying in list(self.said):
            view = seen.get(saying.text)
            if saying.acked is not None:
                event, seq, acked = saying.id, saying.seq, saying.acked
            elif view is not None:
                event, seq, acked = EventId(_event_of(view) or b""), view.seq or 0, inf
            else:
                continue
            found.append(
                Publication(
                    event,
                    self._devices[saying.publisher],
                    seq,
                    saying.publisher,
                    saying.asked,
                    acked,
                    is_owed=saying.acked is not None and saying.publisher not in self.dead,
                    was_wrong=saying.was_wrong,
                    spread=spread.get(saying.text, inf),
                )
            )
        return found

    def _reader(self, reader: Recorder) -> Reader | None:
        if reader.made is None:
            return None
        node = reader.node.name
        lives = tuple(
            Life(
                tuple(
                    Receipt(EventId(_event_of(view) or b""), _device_of(view), view.seq or 0)
                    for view in views
                    if isinstance(view, EventView)
                ),
                tuple(
                    (_device_of(view), view.first, view.last)
                    for view in views
                    if isinstance(view, MissedView)
                ),
                frozenset(EventId(each) for each in handled),
            )
            for views, handled in reader.by_life
        )
        # What is durable and from now on shares a log with what is read from the beginning beside it.
        is_beside = any(since == 0.0 and each.startswith(f"{node} ") for each, since in self._since.items())
        return Reader(
            reader.name,
            self._since[reader.name] is None and not is_beside,
            reader.asked,
            reader.made,
            lives,
            is_running=reader.ended is None and node not in self.dead,
            was_wrong=self.was_wrong,
        )


def _event_of(item: object) -> bytes | None:
    return from_text(Sort.EVENT, item.id) if isinstance(item, EventView) else None


def _device_of(view: EventView | MissedView) -> DeviceId:
    return DeviceId(bytes.fromhex(view.device))
