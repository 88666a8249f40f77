"""Why does it not work? What `linnet doctor` looks at: the home, the running node, the way to a peer."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from linnet.core.counts import counted
from linnet.core.errors import LinnetError, Refused, RemoteError, StoreError
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import Contact
from linnet.core.stores import Damage
from linnet.identity.cards import Card, check_card
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, short, to_text
from linnet.net.check import check_connection
from linnet.net.clock import STEP_SECONDS
from linnet.net.config import NetConfig
from linnet.net.listener import listen
from linnet.node import descriptors
from linnet.node.config import NodeConfig
from linnet.node.control_types import Check
from linnet.node.disk_checks import disk_check
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
from linnet.node.ring_checks import ring_checks
from linnet.node.start_options import StartOptions, next_config, read_options
from linnet.node.store_checks import MENDING, named, quick_look
from linnet.overlay.config import Overlay
from linnet.overlay.trackerless.status import TrackerlessStatus
from linnet.peer.interface import NodeStatus
from linnet.peer.messages import PROTOCOLS
from linnet.store.mark import check_there
from linnet.store.sqlite import SqliteStore

EARLIEST = 1_767_225_600.0
"""2026-01-01: a clock before this has not been set."""

CLOCKS_APART = 60.0
"""Seconds by which two clocks may differ before one of them is called wrong: cards allow 300."""


def home_checks(path: Path | None, now: float) -> Iterator[Check]:
    """Look at a home without changing it: files and modes, configuration, card, clock, store, ports."""
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


def node_checks(
    status: NodeStatus,
    config: NodeConfig,
    clock_offset: float,
    store_failed: StoreError | None,
    trace_lost: int = 0,
    ring: TrackerlessStatus | None = None,
    damaged: tuple[Damage, ...] = (),
) -> Iterator[Check]:
    """What a running node knows about itself; `ring` is of one that finds others without trackers."""
    stepped = abs(clock_offset) > STEP_SECONDS
    detail = f"the wall clock is {clock_offset:+.3f} s from the node's own time"
    yield Check(
        "clock", not stepped, detail, "the clock was set while the node ran; restart it" if stepped else ""
    )
    if status.clocks:
        yield _clocks(status.clocks)
    failed = "" if store_failed is None else str(store_failed)
    yield Check(
        "store", not failed, failed or "written and read", "free space, then restart" if failed else ""
    )
    if damaged:
        count = f"{counted(len(damaged), 'unit')} of the store {'is' if len(damaged) == 1 else 'are'} damaged"
        yield Check("stored events", False, f"{count}: {named(damaged)}", MENDING)
    if trace_lost:
        yield Check(
            "trace", False, f"{counted(trace_lost, 'row')} could not be written", "free space on the disk"
        )
    listens = ", ".join(status.listens)
    yield Check("listening", True, listens or "nowhere: this node only dials")
    yield _reachability(status, config)
    yield from _trackers(status, config)
    if ring is not None:
        yield from ring_checks(status, config, ring)
    lost = sum(stream.gaps_lost for stream in status.streams)
    waiting = sum(stream.gaps_open for stream in status.streams)
    yield Check(
        "streams",
        lost == 0,
        f"{len(status.streams)} joined, {counted(waiting, 'gap')} open, {counted(lost, 'event')} lost",
        "a storage node keeps what late and returning nodes need: [[storage]]" if lost else "",
    )


async def connection_checks(contact: Contact, config: NetConfig) -> AsyncIterator[Check]:
    """Walk the steps of a connection to a peer, at each of its addresses until one of them answers."""
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
    """Whether the clock goes on where the store was written last."""
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


def _clocks(ahead: tuple[float, ...]) -> Check:
    """Ours beside those of peers: if most of them agree that it is another time, it is another time."""
    middle = ahead[len(ahead) // 2]
    count = f"{len(ahead)} peer" + ("s" if len(ahead) > 1 else "")
    if abs(middle) <= CLOCKS_APART:
        return Check("clocks of peers", True, f"{count}: {middle:+.1f} s from ours in the middle")
    advice = "set the clock of this machine, or that of the peer" if len(ahead) == 1 else "set the clock"
    return Check("clocks of peers", False, f"{count}: {middle:+.0f} s from ours in the middle", advice)


def _ports(home: Home) -> str:
    config = next_config(home)
    wanted = KeptPorts(home.ports).wanted(config.listens)
    try:
        listeners = listen(wanted, load_key(home.device_key, "device"))
    except Refused as error:
        advice = "stop what uses the port, or name another: linnet up --listen HOST:PORT"
        if wanted != config.listens:
            advice += "; a port that the system chose makes way for another at the next start"
        raise HomeError(f"{error.detail}; {advice}") from error
    hints = ", ".join(listener.hint for listener in listeners)
    for listener in listeners:
        listener.close()
    return f"can be had: {hints}" if hints else "nowhere: this node only dials"


def _reachability(status: NodeStatus, config: NodeConfig) -> Check:
    if status.reachable is None and not config.trackers:
        return Check("reachable", True, "not known: there is no tracker that could try")
    if status.reachable is None:
        return Check("reachable", True, "not known yet: no tracker has tried to dial us")
    if status.reachable:
        return Check("reachable", True, "a tracker could dial us")
    why = "" if status.reachable_reason is None else f": {status.reachable_reason}"
    advice = "others cannot dial us, so we dial them; to change it open the port, or set node.advertise"
    return Check("reachable", False, f"unreachable_inbound{why}", advice)


def _trackers(status: NodeStatus, config: NodeConfig) -> Iterator[Check]:
    links = {peer.peer: peer for peer in status.peers}
    contacts = [contact for contact in config.trackers if contact.peer != status.peer]
    if config.tracker.enabled:
        yield Check("tracker", True, f"this node tracks {counted(len(status.tracked), 'topic')}")
    elif not config.trackers and config.node.overlay is Overlay.TRACKER:
        yield Check("trackers", True, "none configured: streams reach only peers that are connected by hand")
    for contact in contacts:
        name = f"tracker {short(Sort.DEVICE, contact.peer)}"
        link = links.get(contact.peer)
        if link is not None and link.up:
            yield Check(name, True, "linked" if link.rtt is None else f"linked, {link.rtt * 1000:.1f} ms")
        elif link is None or link.last_failure is None:
            yield Check(name, True, "no link is needed at the moment")
        else:
            advice = f"linnet doctor {to_text(Sort.DEVICE, contact.peer)}@{','.join(contact.hints)}"
            yield Check(name, False, f"not linked: {link.last_failure}", advice)
