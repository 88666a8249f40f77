"""Whether all that a store holds is what was written: what `linnet doctor --store` looks at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from linnet.core.errors import LinnetError
from linnet.core.stores import Damage
from linnet.event.soundness import is_signed
from linnet.node.control_types import Check
from linnet.node.home import Home, HomeBusy, HomeError, held, home_path
from linnet.store.mark import check_there
from linnet.store.schema import BROKEN
from linnet.store.scrub import Scrubbed, note, scrub

NAMED = 5
"""Damaged units that are named one by one."""


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
        yield Check("file of the store", False, "; ".join(found.problems[:NAMED]), BROKEN)
    if not found.damaged:
        yield Check("all of the store", not found.problems, f"{found.units} units were read, all are sound")
        if not found.problems:
            _noted(home, {})
        return
    count = f"{len(found.damaged)} of {found.units} units are damaged"
    yield Check(
        "all of the store", False, f"{count}: {_named(found.damaged.values())}", _noted(home, found.damaged)
    )


def _noted(home: Home, damaged: dict[int, Damage]) -> str:
    try:
        with held(home):
            note(home.store, damaged)
    except HomeBusy:
        return "the node runs: it fetches again what it reads; for all of it stop the node and run this again"
    except HomeError as error:
        return f"they could not be noted for the node: {error}"
    return "they are noted: the node fetches them again from others as soon as it runs (linnet up)"


def _named(damaged: Iterable[Damage]) -> str:
    topics = Counter(each.topic for each in damaged)
    shown = ", ".join(f"{count} of {topic.hex()[:8]}…" for topic, count in topics.most_common(NAMED))
    return shown if len(topics) <= NAMED else f"{shown}, and {len(topics) - NAMED} topics more"
