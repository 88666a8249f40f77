"""What happens in a place whose nodes are killed: how its plan went, and a verdict."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random

from tests.node.killed_course import KilledCourse
from tests.node.killed_world import until
from tests.node.lasting_reader import UNREACHED
from tests.node.place_plan import Act, Come, PlaceKill, PlaceSize, Put, Say, Talk, plan
from tests.node.place_world import HOST, Listener, PlaceWorld

from linnet.api.places import ExaminePlace, LostView, MessageView, ReadPlaceHistory
from linnet.cli.exits import Failure
from linnet.cli.play.nodes import LiveNode
from linnet.node.client import ControlError
from linnet.places.commands import Announce, Eject, ListGuests, PlaceIs, TalkTo

CALLS = 32
PATIENCE = 30.0
"""Seconds that somebody waits for its node to be up before it speaks."""
VARIABLES = 6


class PlaceCourse(KilledCourse[PlaceWorld, Act]):
    """Performs a plan over a world that is set up, and remembers what was acknowledged."""

    def __init__(self, world: PlaceWorld, size: PlaceSize, luck: Random) -> None:
        super().__init__(world, plan(world.guests, size, luck), size.quiet, CALLS)
        self.said: dict[int, str] = {}
        """Announcements that were acknowledged, by their number."""
        self.talked: dict[tuple[str, int], str] = {}
        """Requests that were acknowledged, by guest and number."""
        self.ejected: dict[str, int] = {}
        """Who was put out, and by which message."""
        self._goal = 0
        self._since: dict[str, int] = {}
        """The message with which each came in who was a guest at the beginning."""

    @property
    def present(self) -> list[str]:
        """Who is a guest now. Whoever was put out of a public place and does not know may come in again."""
        return [name for name in self._world.guests if self.since(name)]

    def run(self) -> None:
        """Everything; then all are started, and have time until everyone has everything."""
        self._since = {name: self.since(name) for name in self.present}
        super().run()

    def _perform(self, act: Act, number: int) -> None:
        match act:
            case Say() | Talk():
                self._calls.submit(self._speak, act, number)
            case Come() | Put():
                self._spawn(lambda: self._insist(act))
            case PlaceKill(who, _, last_word):
                if last_word:
                    word = Say(None) if who == HOST else Talk(who)
                    self._calls.submit(self._speak, word, number)
                    time.sleep(0.02)
                self._kill(act)

    def _speak(self, act: Say | Talk, number: int) -> None:
        place, words = self._world.place, f"words {number}"
        speaker = self._world.nodes[HOST if isinstance(act, Say) else act.who]
        until(lambda: _is_ready(speaker), PATIENCE)
        try:
            if isinstance(act, Say):
                state = {} if act.value is None else {f"_value_{number % VARIABLES}": act.value}
                said = self._world.host.control.ask(Announce(place, text=words, state=state))
                self.said[said.message] = words
            else:
                talked = self._world.nodes[act.who].control.ask(TalkTo(place, text=words, patience=10.0))
                self.talked[act.who, talked.request] = words
        except ControlError:
            self.declined += 1
        except UNREACHED:
            self.unanswered += 1

    def _insist(self, act: Come | Put) -> None:
        """Again until it is done: the host may be down."""
        end = time.monotonic() + 60.0
        while time.monotonic() < end:
            try:
                if isinstance(act, Come):
                    self._world.enter(act.who)
                elif not self._put(act.who):
                    continue
            except UNREACHED:
                time.sleep(0.2)
            else:
                return
        self.failures.append(f"{act} was not to be done in a minute")

    def _put(self, who: str) -> bool:
        """Put somebody out; an answer that a kill took away is found in who is in."""
        host, person = self._world.host.control, self._world.nodes[who].author
        try:
            self.ejected[who] = host.ask(Eject(self._world.place, person)).message
        except ControlError:
            present = {each.nym for each in host.ask(ListGuests(self._world.place)).guests}
            if person in present:
                return False
            self.ejected[who] = host.ask(ExaminePlace(self._world.place)).place.message
        return True

    # The end.

    def is_settled(self) -> bool:
        """Whether those who are in have everything."""
        return not self.unsettled()

    def unsettled(self) -> list[str]:
        """What keeps those who are in from having everything."""
        try:
            host = self._view(HOST)
            # Signs of life go on: whoever is where the host was when we looked last is not behind.
            goal, self._goal = self._goal or host.fragment, host.fragment
            found = [f"{HOST}: {host.missing} missing"] if host.missing else []
            for name in self.present:
                view = self._view(name)
                if view.fragment < goal or view.missing or view.state_hash != host.state_hash:
                    found.append(f"{name} is not where the host is: {view}")
        except UNREACHED as error:
            return [str(error)]
        return [*found, *self.lacking()]

    def _view(self, name: str) -> PlaceIs:
        return self._world.nodes[name].control.ask(ExaminePlace(self._world.place)).place

    def lacking(self) -> Iterator[str]:
        """Acknowledged words that somebody has not been handed to whom they were open."""
        for name in self.present:
            has = {heard.message: heard.text for heard in list(self._world.listeners[name].heard)}
            for number, words in sorted(self.said.items()):
                if number > self.since(name) and has.get(number) != words:
                    yield f"{name} has not {number}: {words}"
        people = {self._world.nodes[name].person: name for name in self._world.guests}
        requests = list(self._world.listeners[HOST].heard)
        heard = {(people.get(each.nym or "", ""), each.message) for each in requests}
        for who, number in self.talked:
            if (who, number) not in heard:
                yield f"the host has not request {number} of {who}"

    def since(self, name: str) -> int:
        """The message with which somebody came in; 0: it is no guest."""
        person = self._world.nodes[name].author
        guests = self._world.host.control.ask(ListGuests(self._world.place)).guests
        return next((each.since for each in guests if each.nym == person), 0)

    def problems(self) -> list[str]:
        """All that is wrong, in words; empty if all is as it must be. To be asked while all are up."""
        found = [*self.failures, *self.unsettled(), *self._world.last_words()]
        for name, number in self._since.items():
            if name not in self.ejected and self.since(name) != number:
                found.append(f"{name} was out for a while, or is, though nobody put it out")
        last = self._view(HOST).message
        told = self._history(HOST, 1, last)
        for name in self.present:
            since = self.since(name)
            if self._history(name, since, last) != [each for each in told if each[0] >= since]:
                found.append(f"{name}: its history is not that of the host")
            found += self._wrong(self._world.listeners[name], since)
        for name, number in self.ejected.items():
            heard = [each.message for each in self._world.listeners[name].heard]
            closed = range(number + 1, self.since(name) or last + 1)
            if any(each in closed for each in heard):
                found.append(f"{name} was put out by {number} and heard {heard}")
        found += self._wrong(self._world.listeners[HOST], 0)
        return found

    def _history(self, name: str, first: int, last: int) -> list[tuple[int, str, str | None]]:
        command = ReadPlaceHistory(0, self._world.place, first, last)
        items = self._world.nodes[name].control.lines(command)
        lines: list[tuple[int, str, str | None]] = []
        for item in items:
            if isinstance(item, MessageView):
                lines.append((item.message, item.method, item.text))
            elif isinstance(item, LostView):
                lines.append((item.first, "lost", item.reason))
        return lines

    def _wrong(self, listener: Listener, since: int) -> Iterator[str]:
        """What was handed twice in one life, again though it was handled, or told as lost."""
        seen: set[tuple[int, str | None, int]] = set()
        for heard in listener.heard:
            key = (heard.life, heard.nym, heard.message)
            if key in seen:
                yield f"{listener.node.name}: {heard.message} twice in life {heard.life}"
            seen.add(key)
            if listener.settled.get((heard.nym, heard.message), heard.life) < heard.life:
                yield f"{listener.node.name}: {heard.message} again, though it had been handled"
        for lost in listener.lost:
            if lost.last >= since:
                yield f"{listener.node.name}: lost {lost}"
        yield from (f"{listener.node.name}: {strange}" for strange in listener.strange)


def _is_ready(node: LiveNode) -> bool:
    try:
        return node.is_up and node.control is not None
    except Failure:
        return False
