"""Whether all that a store holds is what was written: what `linnet doctor --store` looks at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from linnet.core.counts import counted
from linnet.core.errors import LinnetError, StoreError
from linnet.core.stores import Damage
from linnet.event.soundness import is_signed, is_sound
from linnet.node.control_types import Check
from linnet.node.home import Home, HomeBusy, HomeError, held, home_path
from linnet.store.faults import BROKEN
from linnet.store.mark import check_there
from linnet.store.scrub import Scrubbed, note, scrub

NAMED = 5
"""Damaged units that are named one by one."""


MENDING = (
    "the node asks others for what it found, while it runs; the rest is found and noted for it: stop the "
    "node, linnet doctor --store, linnet up"
)
"""What to do about damaged units that were met in passing."""

QUICK_BYTES = 16 * 1024 * 1024
"""A store up to this size is read whole by every `linnet doctor`: about a second."""


def quick_look(path: Path, most: int = QUICK_BYTES) -> str:
    """What a store that opens holds; `StoreError` if it is damaged, as far as can be seen at once."""
    if not path.exists():
        return "nothing is stored yet"
    if path.stat().st_size > most:
        return "there are many: linnet doctor --store reads all of them"
    found = scrub(path, lambda entry, card: is_sound(entry))
    if found.is_sound:
        return f"{counted(found.units, 'unit')} were read, all are sound"
    wrong = [*found.problems[:1]]
    if found.astray:
        wrong.append(f"{found.astray} of {found.units} units belong to no chain")
    if found.damaged:
        count = f"{len(found.damaged)} of {found.units} units are damaged"
        wrong.append(f"{count}: {named(found.damaged.values())}")
    advice = "look through all of it, and have it mended where others can: linnet doctor --store"
    raise StoreError(f"{path}: {', '.join(wrong)}; {advice}")


def store_checks(path: Path | None, progress: Callable[[int, int], None] | None = None) -> Iterator[Check]:
    """Look through the store of a home; what is damaged is noted for the node, which fetches it again."""
    home = Home(home_path(path))
    try:
        check_there(home.store)
        if not home.store.exists():
            yield Check("all of the store", True, "is empty: it is made when the node first starts")
            return
        found = scrub(home.store, is_signed, progress)
    except LinnetError as error:
        text, _, advice = str(error).partition("; ")
        yield Check("all of the store", False, text, advice or BROKEN)
        return
    yield from _told(home, found)


def _told(home: Home, found: Scrubbed) -> Iterator[Check]:
    if found.problems:
        shown = ", ".join(found.problems[:NAMED])
        yield Check("file of the store", False, f"{home.store} is damaged: {shown}", BROKEN)
    if found.astray:
        count = f"{found.astray} of {found.units} units belong to no chain"
        yield Check("chains of the store", False, f"{home.store} is damaged: {count}", BROKEN)
    if found.damaged:
        count = f"{len(found.damaged)} of {found.units} units are damaged"
        shown = f"{count}: {named(found.damaged.values())}"
        yield Check("all of the store", False, shown, _noted(home, found.damaged))
    elif not found.astray:
        yield Check("all of the store", True, f"{found.units} units were read, all are sound")
        if not found.problems:
            _noted(home, {})


def _noted(home: Home, damaged: dict[int, Damage]) -> str:
    try:
        with held(home):
            note(home.store, damaged)
    except HomeBusy:
        return "the node runs: it fetches again what it reads; for all of it stop the node and run this again"
    except (HomeError, StoreError) as error:
        return f"they could not be noted for the node: {error}"
    return "they are noted: the node fetches them again from others as soon as it runs (linnet up)"


def named(damaged: Iterable[Damage]) -> str:
    """Of which topics units are damaged, and how many of each."""
    topics = Counter(each.topic for each in damaged)
    shown = ", ".join(f"{count} of {topic.hex()[:8]}…" for topic, count in topics.most_common(NAMED))
    return shown if len(topics) <= NAMED else f"{shown}, and {len(topics) - NAMED} topics more"
