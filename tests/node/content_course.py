"""What happens in content whose nodes are killed: a plan that follows from a seed, how it went, a verdict."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from random import Random
from typing import TypeAlias

from msgspec import Struct
from tests.node.content_world import BRISK, ContentCrashWorld, MatchReader
from tests.node.killed_course import CourseSize, Kill, KilledCourse
from tests.node.killed_world import until
from tests.node.lasting_reader import UNREACHED

from linnet.api.content import ContentSaid, SayContent
from linnet.content.commands import ListContent
from linnet.content.predicate import read_attributes
from linnet.identity.text import event_text
from linnet.node.client import ControlError

RETURN_SECONDS = 120.0


class ContentSize(CourseSize, frozen=True, kw_only=True):
    """How many of everything."""

    nodes: int
    events: int


class Say(Struct, frozen=True):
    """A node publishes."""

    who: str
    attributes: str


Act: TypeAlias = Say | Kill


def record(luck: Random) -> str:
    """A record of one of three feeds."""
    match luck.randrange(3):
        case 0:
            symbol = luck.choice(("LINN", "WREN"))
            return f'stock/symbol="{symbol}"/price={luck.randint(80, 110)}'
        case 1:
            station = luck.choice(("NORTH-1", "SOUTH-1"))
            return f'weather/station="{station}"/rain={luck.randint(0, 10)}/wind={luck.randint(0, 20)}'
        case _:
            return f"quake/strength={luck.randint(1, 8)}"


def plan(names: list[str], size: ContentSize, luck: Random) -> list[tuple[float, Act]]:
    """What is to happen at which second."""
    acts: list[tuple[float, Act]] = [
        (luck.uniform(0.0, size.seconds), Say(luck.choice(names), record(luck))) for _ in range(size.events)
    ]
    acts += [
        (luck.uniform(0.05, 0.95) * size.seconds, Kill(luck.choice(names), luck.uniform(0.0, 3.0)))
        for _ in range(size.kills)
    ]
    return sorted(acts, key=lambda act: act[0])


class ContentCourse(KilledCourse[ContentCrashWorld, Act]):
    """Performs a plan over a world that is set up, and remembers what publishers were told."""

    def __init__(self, world: ContentCrashWorld, size: ContentSize, luck: Random) -> None:
        super().__init__(world, plan(list(world.nodes), size, luck), size.quiet)
        self.said: dict[str, tuple[str, ContentSaid]] = {}
        """Events whose publishers were told what became of them: their attributes, and what was told."""
        self.pairs = self.told = 0
        self._away = threading.Semaphore(BRISK.content.backups)

    def _perform(self, act: Act, number: int) -> None:
        if isinstance(act, Say):
            self._calls.submit(self._say, act)
        else:
            self._spawn(lambda: self._kill_in_turn(act))

    def _kill_in_turn(self, act: Kill) -> None:
        """As soon as so few are away that nothing may be lost, also where starting takes long."""
        with self._away:
            self._world.kill(act.who)
            self._return(act, lambda: self._await_return(act.who))

    def _await_return(self, who: str) -> None:
        """Its subscription stands again, and others keep its filters."""
        with contextlib.suppress(*UNREACHED):  # it is the next to be killed
            if not until(lambda: self._world.nodes[who].control.ask(ListContent()).settled, RETURN_SECONDS):
                self.failures.append(f"{who} was not settled {RETURN_SECONDS:.0f} s after its return")

    def _say(self, act: Say) -> None:
        try:
            reply = self._world.nodes[act.who].control.ask(SayContent(act.attributes))
        except ControlError as error:
            self.declined += 1
            self.failures.append(f"{act.who} was declined: {error}")
        except UNREACHED:
            self.unanswered += 1
        else:
            self.said[event_text(reply.event)] = (act.attributes, reply)

    # The verdict.

    def is_settled(self) -> bool:
        """Whether nobody lacks anything."""
        return not any(True for _ in self.lacking())

    def lacking(self) -> Iterator[tuple[MatchReader, str, ContentSaid]]:
        """Who wants an event of which its publisher knows what became, and was not handed it."""
        heard = {name: {each.event for each in reader.heard} for name, reader in self._world.readers.items()}
        for event, (text, reply) in self.said.copy().items():
            attributes = read_attributes(text)
            for name, reader in self._world.readers.items():
                if reader.predicate.covers(attributes) and event not in heard[name]:
                    yield reader, event, reply

    def problems(self) -> list[str]:
        """All that must not be; empty if all is as it must be."""
        found = [*self.failures, *self._world.last_words()]
        for reader, event, reply in self.lacking():
            if reply.missed or any(fate.reason is not None for fate in reply.fates):
                self.told += 1
            else:
                found.append(f"{reader.name}: lacks {event[:12]}, of which nobody was told: {reply.fates}")
        for reader in self._world.readers.values():
            found += [f"{reader.name}: {what}" for what in reader.strange]
            found += self._repeated(reader)
            for each in reader.heard:
                if not reader.predicate.covers(read_attributes(each.attributes)):
                    found.append(f"{reader.name}: did not want {each.attributes}")
        self.pairs = sum(
            reader.predicate.covers(read_attributes(text))
            for text, _ in self.said.values()
            for reader in self._world.readers.values()
        )
        return found

    def _repeated(self, reader: MatchReader) -> Iterator[str]:
        """An event has one number for good, and once it was handled it does not come again."""
        numbers: dict[str, int] = {}
        events: dict[int, str] = {}
        lives: dict[tuple[str, int], int] = {}
        for each in reader.heard:
            if numbers.setdefault(each.event, each.number) != each.number:
                both = f"{numbers[each.event]} and {each.number}"
                yield f"{reader.name}: {each.event[:12]} came twice, as {both}"
            if events.setdefault(each.number, each.event) != each.event:
                yield f"{reader.name}: number {each.number} was given twice"
            if reader.settled.get(each.event, each.life) < each.life:
                yield f"{reader.name}: {each.event[:12]} came again after it was handled"
            place = (each.event, each.life)
            lives[place] = lives.get(place, 0) + 1
            if lives[place] > 1:
                yield f"{reader.name}: {each.event[:12]} came twice in one life"
