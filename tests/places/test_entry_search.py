"""Whom a node of a place asks to send to it, and how often."""

from __future__ import annotations

import random

from msgspec.structs import replace
from tests.places.sealed.scene import NOW, Node

from linnet.core.effects import Hold, Release, Send
from linnet.core.ids import Contact, PeerId
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Outbox
from linnet.places.config import PlacesConfig
from linnet.places.deed import Policy, sign_deed
from linnet.places.entry import LONGEST_AT_DOOR, LONGEST_PAUSE, SOURCE_SECONDS, EntrySearch
from linnet.places.messages import Away, Enter
from linnet.places.place_setup import Parts
from linnet.testing.identities import known_identity

HOST, KEEPER, GUESTS = known_identity("host"), known_identity("keeper"), ("ann", "bob")
DEED = sign_deed(SigningKey.generate(random.Random(1).randbytes), 1, Policy.PUBLIC, HOST.author, (), ())
CONFIG = PlacesConfig()


def test_who_sends_a_voice_on_to_those_below_it_is_asked_ever_more_seldom() -> None:
    """A keeper that is sent what is said by the voice sends it on to guests, who are all below the voice."""
    out, node = Outbox(), Node("host")
    parts = Parts(DEED, node.context, CONFIG, out)
    contacts = [Contact(known_identity(name).peer, (f"tls://{name}:1",)) for name in GUESTS]
    for contact, name in zip(contacts, GUESTS, strict=True):
        parts.tree.connect_down(contact, known_identity(name).author)
    node.context.links[KEEPER.peer] = None
    search = EntrySearch(parts)
    search.enter((Contact(KEEPER.peer, ("tls://keeper:1",)),), (), b"", NOW)
    asked, now = 0, NOW
    while now < NOW + 600.0:
        sent = [each for each in out.take() if isinstance(each, Send) and isinstance(each.message, Enter)]
        for each in sent:
            asked += 1
            search.go_on_to(each.peer, contacts, now)
        now += CONFIG.entry_timeout
        search.look_around(now)
    assert asked <= 4 + 600.0 / (0.75 * LONGEST_PAUSE)
    assert asked >= 600.0 / (1.25 * LONGEST_PAUSE + CONFIG.entry_timeout), "it is not given up either"


def refuse_for(search: EntrySearch, out: Outbox, seconds: float, door: bool) -> list[float]:
    """When a guest was asked that always refuses, the host of the door always makes us wait."""
    asked, now = [], NOW
    while now < NOW + seconds:
        for each in out.take():
            if isinstance(each, Send) and isinstance(each.message, Enter):
                if each.peer == HOST.peer:
                    search.wait_at_door(each.peer, now) if door else search.handle_refusal(each.peer, now)
                else:
                    asked.append(now)
                    search.handle_refusal(each.peer, now)
        now += 1.0
        search.look_around(now)
    return asked


def test_guests_are_asked_ever_more_seldom_while_we_wait_at_the_door_of_the_host() -> None:
    counts = []
    for door in (True, False):
        out, node = Outbox(), Node("eve")
        guest = known_identity("ann").peer
        node.context.links[HOST.peer] = node.context.links[guest] = None
        search = EntrySearch(Parts(DEED, node.context, CONFIG, out))
        search.enter((Contact(HOST.peer), Contact(guest)), (), b"", NOW)
        counts.append(len(refuse_for(search, out, 900.0, door)))
    waiting, refused = counts
    assert 900.0 / (1.25 * LONGEST_AT_DOOR + 2.0) <= waiting <= 10 + 900.0 / (0.75 * LONGEST_AT_DOOR)
    assert refused >= 900.0 / (1.25 * LONGEST_PAUSE + 2.0), "who waits nowhere asks everybody soon again"


def test_guests_are_asked_soon_again_once_the_door_is_gone() -> None:
    out, node = Outbox(), Node("eve")
    guest = known_identity("ann").peer
    node.context.links[HOST.peer] = node.context.links[guest] = None
    search = EntrySearch(Parts(DEED, node.context, CONFIG, out))
    search.enter((Contact(HOST.peer), Contact(guest)), (), b"", NOW)
    refuse_for(search, out, 900.0, door=True)
    gone = NOW + 900.0
    del node.context.links[HOST.peer]
    search.drop_peer(HOST.peer, gone)
    out.take()
    now, asked_at = gone, None
    while asked_at is None:
        now += 1.0
        search.look_around(now)
        sent = [each for each in out.take() if isinstance(each, Send) and isinstance(each.message, Enter)]
        asked_at = now if any(each.peer == guest for each in sent) else None
    assert asked_at - gone <= LONGEST_PAUSE + 2.0


def asked_for_missing(parts: Parts, now: float) -> set[PeerId]:
    """Who is asked for so many missing fragments that everybody who may be is."""
    repair = parts.fragment_repair
    repair.note_number(parts.fragments.upto + 20, now)
    return {each.peer for each in repair.take_due(now + CONFIG.gap_delay)}


def test_an_upstream_too_many_is_left_once_nothing_is_missing_and_asked_for_nothing_from_then_on() -> None:
    for is_missing in (True, False):
        out, node = Outbox(), Node("eve")
        parts = Parts(DEED, node.context, replace(CONFIG, upstreams=1), out)
        search = EntrySearch(parts)
        search.enter((Contact(KEEPER.peer), Contact(HOST.peer)), (), b"", NOW)
        for peer in (KEEPER.peer, HOST.peer):
            node.context.links[peer] = None
            search.connect(peer, None, NOW)
        if is_missing:
            parts.fragment_repair.note_number(0, NOW)
        out.take()
        search.look_around(NOW + 1.0)
        effects = out.take()
        away = [each.peer for each in effects if isinstance(each, Send) and isinstance(each.message, Away)]
        assert away == ([] if is_missing else [KEEPER.peer])
        assert [each.peer for each in effects if isinstance(each, Release)] == away
        left = {HOST.peer, KEEPER.peer} - set(away)
        assert set(parts.tree.upstreams) == left
        assert asked_for_missing(parts, NOW + 2.0) == left


def test_who_only_sent_us_on_is_asked_for_what_is_missing_for_a_while() -> None:
    for passed, is_asked in ((SOURCE_SECONDS - 1.0, True), (SOURCE_SECONDS, False)):
        out, node = Outbox(), Node("eve")
        parts = Parts(DEED, node.context, replace(CONFIG, upstreams=1), out)
        node.context.links[HOST.peer] = node.context.links[KEEPER.peer] = None
        search = EntrySearch(parts)
        search.enter((Contact(KEEPER.peer),), (), b"", NOW)
        search.go_on_to(KEEPER.peer, [Contact(HOST.peer)], NOW)
        search.connect(HOST.peer, None, NOW)
        search.look_around(NOW + passed)
        assert (KEEPER.peer in asked_for_missing(parts, NOW + passed)) is is_asked


def test_who_leaves_lets_go_of_all_that_were_dialled_and_looks_for_nobody() -> None:
    out, node = Outbox(), Node("eve")
    search = EntrySearch(Parts(DEED, node.context, CONFIG, out))
    search.enter((Contact(HOST.peer), Contact(KEEPER.peer)), (), b"", NOW)
    held = {each.peer for each in out.take() if isinstance(each, Hold)}
    assert held
    search.leave()
    assert {each.peer for each in out.take() if isinstance(each, Release)} == held
    for passed in range(60):
        search.look_around(NOW + passed)
    assert not [each for each in out.take() if isinstance(each, Hold | Send)]
