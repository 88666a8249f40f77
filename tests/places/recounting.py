"""The state of a place reckoned anew from what was said: by nobody who has part in it.

Nodes that lost the same thing agree with each other. So what they hold is compared with what follows from the
words themselves, in the order of the line, by a few rules that are written here once more on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from tests.places.sharing import heard

from linnet.places.channel.packet import Modifier
from linnet.places.commands import Announce, Look, ObjectsAre
from linnet.sim.places.world import HOST, PlacesWorld

Words = tuple[tuple[Modifier, ...], bool]
"""Modifiers of an announcement, and whether it begins anew."""


class Recount:
    """What was to be said, by its text, which is different each time."""

    def __init__(self, world: PlacesWorld) -> None:
        self._world = world
        self._words: dict[str, Words] = {}

    def announce(self, name: str, text: str, *modifiers: Modifier, reset: bool = False) -> int:
        """Give the command to say something; its number."""
        assert text not in self._words
        self._words[text] = modifiers, reset
        world = self._world
        return world.ask(name, Announce(world.place, "_message", modifiers, text.encode(), reset))

    def expected(self, line: Iterable[str]) -> dict[str, bytes]:
        """The state behind these, in this order."""
        state: dict[str, bytes] = {}
        for text in line:
            modifiers, reset = self._words[text]
            if reset:
                state.clear()
            for each in modifiers:
                state[each.name] = _changed(state.get(each.name, b""), each)
                if not state[each.name]:
                    del state[each.name]
        return state

    def check(self, *names: str) -> None:
        """These hold the state of the host's line."""
        expected = self.expected(heard(self._world, HOST))
        for name in names:
            assert objects(self._world, name) == expected, name


def objects(world: PlacesWorld, name: str) -> dict[str, bytes]:
    """What a node holds."""
    return dict(world.obtain(name, Look(world.place, ""), ObjectsAre).objects)


def set_to(name: str, value: str) -> Modifier:
    """A variable, and what it is from now on."""
    return Modifier("=", name, value.encode())


def drawn(luck: Random, text: str) -> tuple[tuple[Modifier, ...], bool]:
    """Some changes of a few objects, and now and then all of them anew."""
    names = luck.sample(("_name", "_topic", "_list", "_last"), luck.randint(0, 2))
    made = tuple(_modifier(luck, name, text) for name in names)
    return made, luck.random() < 0.1


def _modifier(luck: Random, name: str, text: str) -> Modifier:
    if name != "_list":
        return set_to(name, "" if luck.random() < 0.1 else text)
    item = f"item{luck.randint(0, 3)}"
    return Modifier(luck.choice("+-"), name, f"|{item}".encode())


def _changed(old: bytes, modifier: Modifier) -> bytes:
    if modifier.operator == "=":
        return modifier.value
    items = old.split(b"|")[1:]
    changed = modifier.value[1:]
    if modifier.operator == "+":
        items.append(changed)
    elif changed in items:
        items.remove(changed)
    return b"".join(b"|" + each for each in items)
