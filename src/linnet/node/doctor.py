"""The checks of `linnet doctor`: the home, the running node, the way to a peer."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path

from linnet.api.node_commands import Check
from linnet.core.counts import counted
from linnet.core.errors import LinnetError, Refused, RemoteError, StoreError
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import Contact
from linnet.core.spaces import count_by_words, is_expendable, is_needed
from linnet.core.stores import Damage
from linnet.event.signing import is_signed, is_sound
from linnet.identity.cards import Card, check_card
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, short, to_text
from linnet.net.check import check_connection
from linnet.net.config import NetConfig
from linnet.net.tls_transport import TlsTransport
from linnet.net.transport import listen
from linnet.node import descriptors
from linnet.node.home import (
    DAY,
    RENEWAL_DAYS,
    Home,
    HomeBusy,
    HomeError,
    check_own_dates,
    held,
    home_path,
    shown,
)
from linnet.node.keyfiles import check_private, load_card, load_key
from linnet.node.ports import KeptPorts
from linnet.node.start_options import StartOptions, next_config, read_options
from linnet.peer.messages import PROTOCOLS
from linnet.store.faults import BROKEN
from linnet.store.mark import check_there
from linnet.store.scrub import Scrubbed, note, scrub
from linnet.store.sqlite import SqliteStore

NEEDED_BYTES = 1024 * 1024
"""With less free space a write is expected to fail: the largest unit, and its pages in the write-ahead
log."""

LITTLE_BYTES = 64 * 1024 * 1024
"""With less free space there is a warning: the write-ahead log may grow to this, beside the trace."""

NEEDED_FILES = 8
"""Files that a start makes: store, its two logs, marks, locks, socket and trace."""

LITTLE_FILES = 1000
"""With room for fewer files there is a warning."""

ADVICE = "free space there, or move the home to a larger disk; then start the node again: linnet up"


def disk_check(path: Path) -> Check:
    """Check how much can still be written where this directory lies, in bytes and in files."""
    try:
        found = os.statvfs(path)
    except OSError as error:
        return Check("disk", False, f"{path}: {error.strerror or error}", "see that the disk is there")
    # Some file systems make inodes as they are needed, and say that they have none.
    files = found.f_favail if found.f_files else None
    return judge(path, found.f_bavail * found.f_frsize, files)


def judge(path: Path, free: int, files: int | None) -> Check:
    """Judge the number of free bytes and files; None where files are not counted."""
    told = f"{free / 1e6:,.1f} MB free where {path} lies"
    if free < NEEDED_BYTES:
        return Check("disk", False, f"is full: {told}", ADVICE)
    if files is not None and files < NEEDED_FILES:
        return Check("disk", False, f"takes no more files: room for {files} (inodes), {told}", ADVICE)
    if free < LITTLE_BYTES:
        return Check("disk", True, f"warning, little room: {told}; a node ends when there is none")
    if files is not None and files < LITTLE_FILES:
        return Check("disk", True, f"warning, room for {files} more files (inodes) alone: {told}")
    return Check("disk", True, told)


EARLIEST = 1_767_225_600.0
"""2026-01-01: a clock before this has not been set."""

CLOCKS_APART = 60.0
"""Seconds by which two clocks may differ before one of them is called wrong: cards allow 300."""


def home_checks(path: Path | None, now: float) -> Iterator[Check]:
    """Check a home without changing it: files and modes, configuration, card, clock, store, ports."""
    home = Home(home_path(path))
    if not home.path.is_dir():
        yield Check("home", False, f"{home.path} is not there", "make one: linnet init")
        return
    yield _tried("home", lambda: _private(home.path))
    yield disk_check(home.path)
    yield _clock_check(now)
    yield _tried("configuration", lambda: _configuration(home))
    yield _tried("device key", lambda: _key(home.device_key, "device"))
    if home.person_key.exists():
        yield _tried("person key", lambda: _key(home.person_key, "person"))
    else:
        yield Check(
            "person key", True, "is kept elsewhere; renew the card by linnet id renew or linnet id accept"
        )
    yield _tried("card", lambda: _card(home, now))
    try:
        with held(home):
            yield (store := _tried("store", lambda: _store(home)))
            if store.ok:
                yield _tried("stored events", lambda: quick_look(home.store))
                yield _tried("stored times", lambda: _times(home, now))
            yield _tried("listening", lambda: _ports(home))
    except HomeBusy as busy:
        yield Check("store", True, f"in use: {busy}")
    except HomeError as error:
        detail, _, advice = str(error).partition("; ")
        yield Check("store", False, detail, advice)
    yield _tried("descriptors", lambda: descriptors.told(next_config(home)))


async def connection_checks(contact: Contact, config: NetConfig) -> AsyncIterator[Check]:
    """Try each step of a connection to a peer, at each of its addresses until one of them answers."""
    # A key made for this, so that the peer does not take our running node's link for lost.
    key = SigningKey.generate(secrets.token_bytes)
    hello = Hello(WIRE_VERSION, WIRE_VERSION, PROTOCOLS, agent="linnet doctor")
    for hint in contact.hints:
        succeeded = False
        async for checked in check_connection(contact.peer, hint, key, hello, config):
            succeeded = checked.ok
            yield Check(f"{hint} {checked.step}", checked.ok, checked.detail, checked.advice)
        if succeeded:
            return


def _tried(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, True, look())
    except LinnetError as error:
        text, _, advice = str(error).partition("; ")
        return Check(name, False, text, advice)
    except OSError as error:
        return Check(name, False, f"{error.filename or ''}: {error.strerror or error}")


def _private(path: Path) -> str:
    check_private(path, path.stat())
    return f"{path} is private to its owner"


def _clock_check(now: float) -> Check:
    told = shown(now)
    if now < EARLIEST:
        return Check("clock", False, f"says {told}, which is past long ago", "set the clock of this machine")
    return Check("clock", True, told)


def _configuration(home: Home) -> str:
    config = next_config(home)
    told = f"{home.config} is right; control socket {home.socket(config.control)}"
    options = read_options(home)
    return told if options == StartOptions() else f"{told}; kept from the last start: {options}"


def _key(path: Path, sort: str) -> str:
    key = load_key(path, sort)
    return to_text(Sort.DEVICE if sort == "device" else Sort.PERSON, key.public)


def _card(home: Home, now: float) -> str:
    if home.person_key.exists() and not home.card.exists():
        return "is gone; the next start makes it anew, since the person's key is here"
    card = load_card(home.card)
    if card.device_key != load_key(home.device_key, "device").public:
        raise HomeError(f"{home.card} is for another device; restore the two from the same backup")
    try:
        check_card(card)
    except RemoteError as error:
        raise HomeError(f"{home.card}: damaged: {error.detail}; restore it from a backup") from error
    check_own_dates(home, card, now)
    return _card_text(card, now)


def _card_text(card: Card, now: float) -> str:
    days = int((card.not_after - now) / DAY)
    soon = ", renewed at the next start" if days < RENEWAL_DAYS else ""
    dates = f"from {shown(card.not_before)} to {shown(card.not_after)}"
    return f"of {short(Sort.PERSON, card.person)}, {dates}, good for {days} more days{soon}"


def _store(home: Home) -> str:
    check_there(home.store)
    if not home.store.exists():
        return "is made when the node first starts"
    SqliteStore(home.store).close()
    return f"{home.store} opens, {home.store.stat().st_size} bytes"


def _times(home: Home, now: float) -> str:
    """Check whether the clock goes on from where the store was last written."""
    if not home.store.exists():
        return "nothing is stored yet"
    with contextlib.closing(SqliteStore(home.store)) as store:
        last, latest = store.last_times()
    if last is None or latest is None:
        return "nothing is stored yet"
    if last > now + CLOCKS_APART:
        advice = "check the clock of this machine; if it was ahead then, the next event mends this"
        raise HomeError(f"the store was last written at {shown(last)}, which is still to come; {advice}")
    if latest > now + CLOCKS_APART:
        return f"last written at {shown(last)}; once the clock was ahead, at {shown(latest)}"
    return f"last written at {shown(last)}"


def _ports(home: Home) -> str:
    config = next_config(home)
    wanted = KeptPorts(home.ports).wanted(config.listens)
    try:
        transport = TlsTransport(load_key(home.device_key, "device"), config.net)
        listeners = listen(wanted, [transport])
    except Refused as error:
        advice = "stop what uses the port, or name another: linnet up --listen HOST:PORT"
        if wanted != config.listens:
            advice += "; a port that the system chose makes way for another at the next start"
        raise HomeError(f"{error.detail}; {advice}") from error
    hints = ", ".join(listener.hint for listener in listeners)
    for listener in listeners:
        listener.close()
    return f"can be had: {hints}" if hints else "nowhere: this node only dials"


NAMED = 5
"""The most topics with damaged units that are named."""


MENDING = (
    "the node asks others for what it found, while it runs; the rest is found and noted for it: stop the "
    "node, linnet doctor --store, linnet up"
)
"""Advice about damaged units that were found in passing."""

TELLING = (
    "readers are told which messages are damaged; to have these again put back a copy of the store, or ask a "
    "member to show them, in a room that shares its history: linnet room share"
)
"""Advice about damaged values that were found in passing, or do no harm to the rest."""

QUICK_BYTES = 16 * 1024 * 1024
"""A store up to this size is read whole by every `linnet doctor`: about a second."""


def quick_look(path: Path, most: int = QUICK_BYTES) -> str:
    """Describe the contents of a store that opens; raises `StoreError` if damage is seen at once."""
    if not path.exists():
        return "nothing is stored yet"
    if path.stat().st_size > most:
        return "there are many: linnet doctor --store reads all of them"
    found = scrub(path, lambda entry, card: is_sound(entry))
    if found.is_sound:
        return f"{_read(found)}, all are sound"
    wrong = [*found.problems[:1]]
    if found.astray:
        wrong.append(f"{found.astray} of {found.units} units belong to no chain")
    if found.damaged:
        count = f"{len(found.damaged)} of {found.units} units are damaged"
        wrong.append(f"{count}: {named(found.damaged.values())}")
    if found.damaged_cells:
        wrong.append(_damaged_cells(found))
    advice = "look through all of it, and have it mended where others can: linnet doctor --store"
    raise StoreError(f"{path}: {', '.join(wrong)}; {advice}")


def store_checks(path: Path | None, progress: Callable[[int, int], None] | None = None) -> Iterator[Check]:
    """Check the whole store of a home; damage is noted for the node, which fetches it again."""
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
    elif not found.astray and not found.damaged_cells:
        yield Check("all of the store", True, f"{_read(found)}, all are sound")
        if not found.problems:
            _noted(home, {})
    if found.damaged_cells:
        detail = f"{home.store} is damaged: {_damaged_cells(found)}"
        yield Check("values of the store", False, detail, advise_on_cells(found.damaged_cells))


def _read(found: Scrubbed) -> str:
    units = counted(found.units, "unit")
    if found.cells:
        return f"{units} and {counted(found.cells, 'value')} were read"
    return f"{units} {'was' if found.units == 1 else 'were'} read"


def _damaged_cells(found: Scrubbed) -> str:
    count = f"{len(found.damaged_cells)} of {found.cells} values are damaged"
    return f"{count}: {count_by_words(found.damaged_cells)}"


def advise_on_cells(spaces: Iterable[str]) -> str:
    """Return the advice about damaged values of these spaces."""
    spaces = tuple(spaces)
    if any(map(is_needed, spaces)):
        return BROKEN
    if all(map(is_expendable, spaces)):
        return "start the node: it forgets them, and gets them again from others (linnet up)"
    return TELLING


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
    """Return the topics with damaged units, and how many each has."""
    topics = Counter(each.topic for each in damaged)
    shown = ", ".join(f"{count} of {topic.hex()[:8]}…" for topic, count in topics.most_common(NAMED))
    return shown if len(topics) <= NAMED else f"{shown}, and {len(topics) - NAMED} topics more"
