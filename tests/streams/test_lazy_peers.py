"""Lazy peers: whom a node draws beside its neighbours, what they tell each other, and what bounds it."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from tests.delivery.voices import Voice, asked
from tests.rooms.chronicle import person_key
from tests.streams.stage import NOW, Staged, context_of

from linnet.core.effects import Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.messages import ChainPlace, Data, Heads, Resend, Resent, Revoked
from linnet.event.event import Event, Verified
from linnet.identity.cards import revoke
from linnet.identity.text import Sort, to_text
from linnet.machine.outbox import Notice, Outbox
from linnet.overlay.notices import MembersWanted
from linnet.streams.commands import Policy, Subscribe
from linnet.streams.config import StorageRule
from linnet.streams.lazy_peers import (
    CALM,
    FIRST_LOOK,
    FOLLOWERS,
    GRAFTS,
    HURRIED,
    UNSURE,
    LazyLinks,
    LookDue,
    NewsDue,
)
from linnet.streams.messages import Follow, PolicyIs, Wish
from linnet.testing.identities import known_identity
from linnet.trace.records import Kind, Record

NEIGHBOR = PeerId(b"n" * 32)
PEERS = [PeerId(sha256(b"peer %d" % number).digest()) for number in range(60)]
A, B, C = PEERS[:3]


def contacts(*peers: PeerId) -> tuple[Contact, ...]:
    return tuple(Contact(peer, ("tls://x:1",)) for peer in peers)


class Scene:
    """A stream that has a reader and one neighbour, and draws at most three lazy peers."""

    def __init__(self, lazy: int = 3, links: int = 128, *linked: PeerId) -> None:
        self.context = context_of(config=DeliveryConfig(lazy_peers=lazy, lazy_links=links))
        self.stream = stream = Staged("tea", self.context)
        self.ann = Voice(topic=stream.topic)
        self.now = NOW
        for peer in (NEIGHBOR, *linked):
            self.context.links[peer] = None
        stream.readers.add(Subscribe(1, "tea"), None, NOW)
        stream.handle_neighbor_up(NEIGHBOR, NOW)
        stream.lazy.begin()
        stream.out.clear()

    @property
    def purpose(self) -> str:
        return f"lazy {self.stream.topic.hex()[:16]}"

    def members(self, *peers: PeerId) -> list[Any]:
        return asked(
            self.stream.out, self.stream.push.note_members, contacts(*peers), self.stream.keeps, self.now
        )

    def link(self, peer: PeerId) -> list[Any]:
        self.context.links[peer] = None
        return asked(self.stream.out, self.stream.handle_link_up, peer, self.now)

    def follow(self, peer: PeerId, wish: Wish) -> list[Any]:
        self.context.links[peer] = None
        return asked(
            self.stream.out,
            self.stream.push.handle_follow,
            peer,
            Follow(self.stream.topic, wish),
            self.stream.keeps,
            self.now,
        )

    def look(self) -> tuple[list[Any], list[Notice], float]:
        """Return what a look asks for, tells the overlay, and the seconds until the next one."""
        out = self.stream.out
        out.clear()
        self.stream.push.look_around(self.stream.keeps, self.now)
        told = [notice for _, notice in out.notices]
        effects = out.take()
        pause = next(
            each.delay
            for each in effects
            if isinstance(each, SetTimer) and each.timer == LookDue(self.stream.topic)
        )
        return effects, told, pause

    def hear(self, unit: Verified, peer: PeerId = NEIGHBOR) -> list[Any]:
        data = Data(unit.unit, 1, 0, int(self.now * 1_000_000), self.ann.identity.card)
        return asked(self.stream.out, self.stream.handle_data, peer, data, self.now)

    def claim(self, last: int, peer: PeerId, due: int | None = 0) -> list[Any]:
        place = ChainPlace(self.ann.identity.author, self.ann.identity.card.device, 0, last, True)
        heads = Heads(self.stream.topic, (place,), 0, None if due is None else (due,))
        return asked(self.stream.out, self.stream.handle_heads, peer, heads, self.now)

    def resent(self, unit: Verified, peer: PeerId, age_ms: int = 500) -> list[Any]:
        number, card = unit.unit.seq or 0, self.ann.identity.card
        of = (unit.unit.author, unit.unit.device, number, number)
        page = Resent(self.stream.topic, *of, (unit.unit,), (card,), True, None, (age_ms,))
        return asked(self.stream.out, self.stream.handle_resent, peer, page, self.now)


def sent(effects: Iterable[object], kind: type) -> list[tuple[PeerId, Any]]:
    return [
        (each.peer, each.message)
        for each in effects
        if isinstance(each, Send) and isinstance(each.message, kind)
    ]


def held(effects: Iterable[object]) -> list[PeerId]:
    return [each.peer for each in effects if isinstance(each, Hold)]


def released(effects: Iterable[object]) -> list[PeerId]:
    return [each.peer for each in effects if isinstance(each, Release)]


# Drawing.


def test_soon_after_joining_members_are_asked_for_and_drawn() -> None:
    scene = Scene()
    out = Outbox()
    fresh = Staged("tea", context_of())
    fresh.out.clear()
    fresh.lazy.begin()
    fresh.lazy.begin()
    assert fresh.out.take() == [SetTimer(FIRST_LOOK, LookDue(fresh.topic))], "once"
    assert out.take() == []
    _, told, pause = scene.look()
    assert (told, pause) == ([MembersWanted(scene.stream.topic)], UNSURE)
    assert sorted(held(scene.members(*PEERS[:5]))) == sorted(PEERS[2:5]), "three of the five"


def test_a_drawn_member_is_followed_once_its_link_is_up() -> None:
    scene = Scene()
    assert scene.members(A) == [Hold(A, ("tls://x:1",), scene.purpose)]
    told = scene.link(A)
    assert told[0] == Send(A, Follow(scene.stream.topic, Wish.HEADS))
    assert [peer for peer, _ in sent(told, Heads)] == [A]
    assert sent(scene.link(A), Follow) == [], "once"


def test_one_that_is_linked_already_is_followed_at_once() -> None:
    scene = Scene(3, 128, A)
    told = scene.members(A)
    assert sent(told, Follow) == [(A, Follow(scene.stream.topic, Wish.HEADS))]
    assert [peer for peer, _ in sent(told, Heads)] == [A]


def test_neighbours_and_this_node_itself_are_not_drawn() -> None:
    scene = Scene()
    assert scene.members(NEIGHBOR, scene.context.peer) == []


def test_one_drawn_for_longest_gives_way_to_another_each_third_look() -> None:
    scene = Scene()
    scene.look()
    scene.members(A, B, C)
    for peer in (A, B, C):
        scene.link(peer)
    scene.hear(scene.ann.say())
    gone: list[PeerId] = []
    for _ in range(6):
        scene.now += 10.0
        scene.hear(scene.ann.say())
        scene.members(*PEERS[10:14])
        effects, _, pause = scene.look()
        assert pause == CALM
        gone += released(effects)
        for peer in released(effects):
            assert sent(effects, Follow) == [(peer, Follow(scene.stream.topic, Wish.NOTHING))]
        for peer in held(effects):
            scene.link(peer)
    assert gone == [C, B], "in the order in which they were drawn, one each half minute"


def test_without_others_nobody_gives_way() -> None:
    scene = Scene()
    scene.look()
    scene.members(A)
    scene.link(A)
    asked_at = []
    for number in range(40):
        scene.now += 1.0
        effects, told, _ = scene.look()
        assert released(effects) == []
        if told:
            asked_at.append(number)
            assert told == [MembersWanted(scene.stream.topic)], "there is room for more"
            scene.members(A, NEIGHBOR)
    assert asked_at == [0, 1, 3, 7, 15, 31], "ever more seldom: there is nobody new"
    scene.members(B)
    assert scene.look()[1] == []


def test_one_to_whom_no_link_comes_up_is_let_go() -> None:
    scene = Scene()
    scene.look()
    scene.members(A)
    scene.now += 9.0
    assert released(scene.look()[0]) == []
    scene.now += 2.0
    effects, _, _ = scene.look()
    assert released(effects) == [A]
    assert sent(effects, Follow) == [], "there is no link"


def test_a_link_that_is_lost_ends_it() -> None:
    scene = Scene()
    scene.members(A)
    scene.link(A)
    del scene.context.links[A]
    assert released(asked(scene.stream.out, scene.stream.handle_link_down, A, scene.now)) == [A]
    assert A not in scene.stream.lazy


def test_who_becomes_a_neighbour_is_one_no_longer() -> None:
    scene = Scene()
    scene.members(A)
    scene.link(A)
    told = asked(scene.stream.out, scene.stream.handle_neighbor_up, A, scene.now)
    assert released(told) == [A]
    assert sent(told, Follow) == []
    assert A not in scene.stream.lazy
    assert A in scene.stream.flood.neighbors


def test_a_node_that_lacks_what_others_claim_hurries() -> None:
    scene = Scene()
    scene.look()
    scene.hear(scene.ann.say())
    scene.now += 10.0
    scene.stream.lazy._unit_at = scene.now  # the stream is lively
    assert scene.look()[2] == CALM
    told = asked(scene.stream.out, scene.stream.lazy.hurry, scene.now)
    assert told == [SetTimer(HURRIED, LookDue(scene.stream.topic))]
    assert asked(scene.stream.out, scene.stream.lazy.hurry, scene.now) == [], "it hurries already"
    assert scene.look()[2] == HURRIED
    scene.now += 31.0
    scene.stream.lazy._unit_at = scene.now
    assert scene.look()[2] == CALM


def test_when_a_lively_stream_falls_quiet_a_node_draws_more_often() -> None:
    scene = Scene()
    scene.look()
    for _ in range(5):
        scene.now += 1.0
        scene.hear(scene.ann.say())
    assert scene.look()[2] == CALM
    scene.now += 7.0
    assert scene.look()[2] == CALM
    scene.now += 3.0
    assert scene.look()[2] == UNSURE
    scene.now += 60.0
    assert scene.look()[2] == CALM, "it was only lively before"


def test_who_begins_to_publish_draws_more_often_for_a_while() -> None:
    scene = Scene()
    scene.look()
    scene.hear(scene.ann.say())
    told = asked(scene.stream.out, scene.stream.lazy.note_published, scene.now)
    assert told == [SetTimer(UNSURE, LookDue(scene.stream.topic))]
    assert asked(scene.stream.out, scene.stream.lazy.note_published, scene.now + 1.0) == [], "it goes on"


def test_all_streams_share_the_links_and_the_dials() -> None:
    links = LazyLinks(3)
    assert [links.take(peer, False, NOW) for peer in PEERS[:5]] == [True, True, True, False, False]
    assert links.take(A, False, NOW), "a second stream with the same peer takes no link"
    assert links.take(PEERS[9], True, NOW), "nor does one that is linked anyway"
    links.give_back(A)
    links.give_back(A)
    links.give_back(B)
    links.give_back(PEERS[9])
    assert [links.take(peer, False, NOW) for peer in PEERS[5:8]] == [True, True, False]


def test_dials_are_few_in_a_second() -> None:
    links = LazyLinks(10_000)
    assert sum(links.take(peer, False, NOW) for peer in PEERS) == 32
    assert sum(links.take(peer, False, NOW + 5.0) for peer in PEERS[32:]) == 5
    assert sum(links.take(peer, False, NOW - 1000.0) for peer in PEERS[40:]) == 0, (
        "a clock set back gives none"
    )


# Those that follow this node.


def test_a_follower_is_told_at_once_and_again_when_there_is_news() -> None:
    scene = Scene()
    scene.hear(scene.ann.say())
    told = scene.follow(A, Wish.HEADS)
    ((peer, heads),) = sent(told, Heads)
    assert peer == A
    assert [(place.first, place.last, place.held) for place in heads.chains] == [(0, 0, True)]
    news = scene.hear(scene.ann.say())
    assert SetTimer(5.0, NewsDue(scene.stream.topic)) in news
    assert [peer for peer, _ in sent(news, Data)] == [], "it is not sent the unit"
    told = asked(scene.stream.out, scene.stream.push.tell_news, False, scene.now)
    assert [(peer, heads.chains[0].last) for peer, heads in sent(told, Heads)] == [(A, 1)]


def test_who_wants_units_is_sent_them_and_who_does_not_any_more_is_not() -> None:
    scene = Scene()
    scene.follow(A, Wish.UNITS)
    assert [peer for peer, _ in sent(scene.hear(scene.ann.say()), Data)] == [A]
    scene.follow(A, Wish.HEADS)
    assert sent(scene.hear(scene.ann.say()), Data) == []
    scene.follow(A, Wish.NOTHING)
    assert A not in scene.stream.lazy


def test_when_there_are_too_many_followers_one_gives_way_and_is_told() -> None:
    scene = Scene()
    for peer in PEERS[:FOLLOWERS]:
        scene.follow(peer, Wish.HEADS)
    told = scene.follow(PEERS[FOLLOWERS], Wish.HEADS)
    ((gone, word),) = sent(told, Follow)
    assert gone in PEERS[:FOLLOWERS]
    assert word.wish is Wish.NOTHING
    assert any(
        isinstance(each, Record) and each.reason is Reason.SURPLUS and each.peer == gone for each in told
    )
    assert PEERS[FOLLOWERS] in scene.stream.lazy
    assert gone not in scene.stream.lazy


def test_many_keys_of_one_network_leave_the_others_their_places() -> None:
    scene = Scene()
    mob = PEERS[1:]
    for peer in mob:
        scene.context.origins.note(peer, "192.0.2.0/24")
    scene.follow(A, Wish.HEADS)
    for peer in mob:
        scene.follow(peer, Wish.HEADS)
    assert A in scene.stream.lazy
    assert sum(peer in scene.stream.lazy for peer in mob) == FOLLOWERS - 1


def test_who_has_no_room_is_let_go() -> None:
    scene = Scene()
    scene.members(A)
    scene.link(A)
    told = scene.follow(A, Wish.NOTHING)
    assert released(told) == [A]


def test_a_node_that_draws_nobody_is_followed_by_nobody() -> None:
    """On a ring, a stranger that is sent every unit would take the place of a member."""
    for scene in (Scene(lazy=0), Scene()):
        scene.stream.lazy.stop()
        told = scene.follow(A, Wish.UNITS)
        assert told == [Send(A, Follow(scene.stream.topic, Wish.NOTHING))]
        assert A not in scene.stream.flood.neighbors
        assert scene.follow(A, Wish.NOTHING) == []


def test_a_neighbour_needs_not_follow() -> None:
    scene = Scene()
    assert scene.follow(NEIGHBOR, Wish.UNITS) == []
    assert NEIGHBOR not in scene.stream.lazy


def test_who_follows_a_node_that_leaves_is_told_so() -> None:
    """Or else it goes on sending every unit, and is cut off for that."""
    scene = Scene()
    scene.members(A)
    scene.link(A)
    scene.follow(A, Wish.HEADS)
    scene.follow(B, Wish.UNITS)
    told = asked(scene.stream.out, scene.stream.leave, scene.now)
    assert [(peer, word.wish) for peer, word in sent(told, Follow)] == [
        (A, Wish.NOTHING),
        (A, Wish.NOTHING),
        (B, Wish.NOTHING),
    ]
    assert released(told) == [A]


class Pair:
    """Two members of a stream who have drawn each other."""

    def __init__(self) -> None:
        self.one, self.other = Scene(), Scene()
        for scene, peer in ((self.one, B), (self.other, A)):
            scene.members(peer)
            scene.link(peer)
            scene.follow(peer, Wish.HEADS)

    def pass_on(self, effects: list[Any]) -> list[Any]:
        """Hand what A says about following to B; return what B says then."""
        words = [word for peer, word in sent(effects, Follow) if peer == B]
        return [each for word in words for each in self.other.follow(A, word.wish)]


def test_one_that_draws_another_is_followed_on() -> None:
    pair = Pair()
    asked(pair.other.stream.out, pair.other.stream.lazy.note_provided, A, NOW)
    pair.one.follow(B, Wish.UNITS)
    pair.one.look()
    pair.one.members(*PEERS[10:14])
    effects, _, _ = pair.one.look()
    assert B in released(effects)
    assert sent(pair.pass_on(effects), Follow) == []
    assert A in pair.other.stream.flood.grafted, "it provides what no neighbour did"
    assert B in pair.one.stream.flood.grafted


def test_one_that_makes_room_for_another_is_followed_no_longer() -> None:
    pair = Pair()
    for peer in PEERS[10 : 10 + FOLLOWERS - 1]:
        pair.one.follow(peer, Wish.HEADS)
    for peer in PEERS[10 : 10 + FOLLOWERS - 1]:
        pair.one.context.origins.note(peer, str(peer))
    for number in range(1000):
        told = pair.one.follow(PeerId(sha256(b"newcomer %d" % number).digest()), Wish.HEADS)
        if any(peer == B for peer, _ in sent(told, Follow)):
            break
    answers = pair.pass_on(told)
    assert released(answers) == [A]
    assert A not in pair.other.stream.lazy
    assert B not in pair.one.stream.lazy


def test_policy_and_revocations_reach_lazy_peers() -> None:
    """Neighbours may withhold them, too; without a policy all but the owner's events are refused."""
    owner, ben = Voice("ann"), Voice("ben")
    context = context_of()
    stream = Staged(f"{to_text(Sort.PERSON, owner.identity.author)}/tea", context)
    owner.topic = ben.topic = stream.topic
    stream.lazy.begin()
    tail = stream.governance.tail(Policy(publishers=(ben.identity.author,)), 1)
    for voice, unit in ((owner, owner.sign([tail])), (ben, ben.say())):
        data = Data(unit.unit, 1, 0, int(NOW * 1_000_000), voice.identity.card)
        stream.handle_data(NEIGHBOR, data, NOW)
    for peer in (A, B):
        context.links[peer] = None
    told = asked(
        stream.out, stream.push.handle_follow, A, Follow(stream.topic, Wish.HEADS), stream.keeps, NOW
    )
    assert [message.unit for _, message in sent(told, PolicyIs)] == [stream.governance.unit]
    assert [peer for peer, _ in sent(told, Message)] == [A, A], "heads come last"
    revocation = revoke(person_key("ben"), ben.identity.card.device, int(NOW))
    told = asked(stream.out, stream.handle_revoked, NEIGHBOR, revocation)
    assert sent(told, Revoked) == [(A, Revoked(stream.topic, revocation))]
    told = asked(
        stream.out, stream.push.handle_follow, B, Follow(stream.topic, Wish.HEADS), stream.keeps, NOW
    )
    assert sent(told, Revoked) == [(B, Revoked(stream.topic, revocation))]


# What neighbours did not send.


def test_what_only_a_lazy_peer_has_is_asked_for_handed_over_and_passed_on() -> None:
    scene = Scene()
    scene.members(A)
    scene.link(A)
    unit = scene.ann.say()
    scene.claim(0, A)
    scene.now += 1.0
    assert sent(asked(scene.stream.out, scene.stream.repair_gap, scene.ann.key, scene.now), Resend) == [
        (A, Resend(scene.stream.topic, unit.unit.author, unit.unit.device, 0, 0))
    ]
    told = scene.resent(unit, A)
    assert any(isinstance(item, Event) for each in told for item in getattr(each, "items", ()))
    assert [peer for peer, _ in sent(told, Data)] == [NEIGHBOR], "its neighbours may lack it, too"
    assert sent(told, Follow) == [(A, Follow(scene.stream.topic, Wish.UNITS))]
    assert any(isinstance(each, Record) and each.kind is Kind.OVERLAY and each.peer == A for each in told)
    assert A in scene.stream.flood.neighbors


def test_history_that_a_lazy_peer_has_says_nothing_about_the_neighbours() -> None:
    scene = Scene()
    scene.members(A)
    scene.link(A)
    unit = scene.ann.say()
    scene.claim(0, A)
    scene.now += 1.0
    asked(scene.stream.out, scene.stream.repair_gap, scene.ann.key, scene.now)
    told = scene.resent(unit, A, age_ms=60_000)
    assert sent(told, Follow) == []
    assert sent(told, Data) == []


def test_one_that_follows_us_may_provide_it_as_well() -> None:
    scene = Scene()
    scene.follow(B, Wish.HEADS)
    scene.claim(0, B)
    scene.now += 1.0
    asked(scene.stream.out, scene.stream.repair_gap, scene.ann.key, scene.now)
    told = scene.resent(scene.ann.say(), B)
    assert sent(told, Follow) == [(B, Follow(scene.stream.topic, Wish.UNITS))]
    assert held(told) == [B]


def test_a_few_send_every_unit_at_a_time_and_only_while_they_are_first() -> None:
    scene = Scene(lazy=GRAFTS + 2)
    scene.look()
    helpers = PEERS[: GRAFTS + 1]
    scene.members(*helpers)
    for peer in helpers:
        scene.link(peer)
        asked(scene.stream.out, scene.stream.lazy.note_provided, peer, scene.now)
    grafted = [peer for peer in helpers if peer in scene.stream.flood.neighbors]
    assert grafted == helpers[:GRAFTS]
    scene.now += 100.0
    scene.hear(scene.ann.say(), A)
    scene.now += 30.0
    effects, _, _ = scene.look()
    assert sorted(peer for peer, word in sent(effects, Follow) if word.wish is Wish.HEADS) == sorted(
        helpers[1:GRAFTS]
    )
    assert [peer for peer in helpers if peer in scene.stream.flood.neighbors] == [A]


def test_those_that_provide_something_keep_nobody_from_being_drawn() -> None:
    """Whoever hands over what it has published itself, and nobody else has, takes no place of others."""
    scene = Scene()
    scene.look()
    mob = PEERS[20:32]
    for peer in mob:
        scene.follow(peer, Wish.HEADS)
        asked(scene.stream.out, scene.stream.lazy.note_provided, peer, scene.now)
    assert scene.stream.lazy.linked == tuple(mob[:GRAFTS])
    assert sorted(held(scene.members(A, B, C))) == sorted((A, B, C))
    for peer in (A, B, C):
        scene.link(peer)
    scene.members(*PEERS[10:12])
    effects, _, pause = scene.look()
    assert pause == HURRIED
    assert sorted(released(effects)) == sorted((B, C)), "others are drawn as before"
    assert sorted(held(effects)) == sorted(PEERS[10:12])


def test_our_own_units_go_to_those_that_we_drew() -> None:
    scene = Scene()
    scene.members(A)
    scene.link(A)
    scene.follow(B, Wish.HEADS)
    out = Outbox()
    scene.stream.flood.spread(scene.ann.say(), scene.ann.identity.card, (), 1, 0, scene.now, out)
    assert sorted(peer for peer, _ in sent(out.take(), Data)) == sorted((NEIGHBOR, A))


def test_a_node_resends_what_came_last_though_it_keeps_nothing() -> None:
    scene = Scene()
    units = [scene.ann.say() for _ in range(3)]
    for unit in units:
        scene.hear(unit)
    stream = scene.stream
    request = Resend(stream.topic, units[0].unit.author, units[0].unit.device, 1, 2)
    chain = stream.ingest.chains[scene.ann.key]
    answer = stream.push.read_recent(
        request, stream.archive.read_range(request, scene.now + 2.0, chain), scene.now + 2.0
    )
    assert answer.units == (units[1].unit, units[2].unit)
    assert answer.cards == (scene.ann.identity.card,)
    assert answer.reason is None
    assert answer.ages_ms == (2000, 2000)
    beyond = Resend(stream.topic, units[0].unit.author, units[0].unit.device, 2, 9)
    partly = stream.push.read_recent(beyond, stream.archive.read_range(beyond, scene.now, chain), scene.now)
    assert (partly.units, partly.reason) == ((units[2].unit,), Reason.NOT_HELD)


def test_what_was_said_before_there_were_neighbours_says_nothing_about_them() -> None:
    scene = Scene()
    scene.members(A)
    scene.link(A)
    scene.claim(0, A)
    scene.now += 1.0
    asked(scene.stream.out, scene.stream.repair_gap, scene.ann.key, scene.now)
    told = scene.resent(scene.ann.say(), A, age_ms=2000)
    assert sent(told, Follow) == []
    assert sent(told, Data) == []


def test_what_neighbours_withhold_is_noticed_though_the_clock_is_set_back() -> None:
    scene = Scene()
    scene.members(A)
    scene.link(A)
    asked(scene.stream.out, scene.stream.handle_neighbor_down, NEIGHBOR, scene.now)
    scene.now += 7200.0
    asked(scene.stream.out, scene.stream.handle_neighbor_up, NEIGHBOR, scene.now)
    scene.now -= 3600.0
    told: list[Any] = []
    for number in range(2):
        scene.claim(number, A)
        scene.now += 1.0
        asked(scene.stream.out, scene.stream.repair_gap, scene.ann.key, scene.now)
        told = scene.resent(scene.ann.say(), A)
        scene.now += 10.0
    assert sent(told, Follow) == [(A, Follow(scene.stream.topic, Wish.UNITS))]


def test_what_was_said_while_only_a_lazy_peer_sent_units_says_nothing_about_new_neighbours() -> None:
    scene = Scene()
    scene.members(A, B)
    scene.link(A)
    scene.link(B)
    asked(scene.stream.out, scene.stream.lazy.note_provided, A, scene.now)
    asked(scene.stream.out, scene.stream.handle_neighbor_down, NEIGHBOR, scene.now)
    scene.now += 10.0
    asked(scene.stream.out, scene.stream.handle_neighbor_up, C, scene.now)
    scene.claim(0, B)
    scene.now += 0.6
    asked(scene.stream.out, scene.stream.repair_gap, scene.ann.key, scene.now)
    told = scene.resent(scene.ann.say(), B, age_ms=2000)
    assert sent(told, Follow) == []


def test_a_follower_that_becomes_a_neighbour_is_one_no_longer() -> None:
    scene = Scene()
    scene.follow(A, Wish.UNITS)
    asked(scene.stream.out, scene.stream.handle_neighbor_up, A, scene.now)
    assert A not in scene.stream.lazy
    assert A in scene.stream.flood.neighbors
    assert A not in scene.stream.flood.grafted


def keeper() -> tuple[Staged, Voice, Voice]:
    """A storage node that keeps an old chain of Ann's, and one of Ben's that had news just now."""
    context = context_of("keeper")
    stream = Staged("tea", context)
    ann, ben = Voice(topic=stream.topic), Voice("ben", topic=stream.topic)
    for voice in (ann, ben):
        context.cards.learn(voice.identity.card)
        stream.archive.keep(voice.say(), NOW - 1000.0)
    stream.keep(StorageRule("tea"))
    stream.lazy.begin()
    data = Data(ben.say().unit, 1, 0, int(NOW * 1_000_000), ben.identity.card)
    stream.handle_data(NEIGHBOR, data, NOW)
    return stream, ann, ben


def test_a_storage_node_names_all_that_it_keeps_of_a_chain() -> None:
    """What it does not name counts as removed, however little of it came lately."""
    stream, ann, ben = keeper()
    both = [(each.identity.author, 0, number) for number, each in ((0, ann), (1, ben))]

    def told(effects: list[Any]) -> list[tuple[bytes, int, int]]:
        ((_, heads),) = sent(effects, Heads)
        return sorted((place.author, place.first, place.last) for place in heads.chains)

    assert told(
        asked(stream.out, stream.push.handle_follow, A, Follow(stream.topic, Wish.HEADS), stream.keeps, NOW)
    ) == sorted(both)
    assert told(asked(stream.out, stream.push.tell_news, stream.keeps, NOW)) == [both[1]], (
        "then only what is new"
    )
    question = Heads(stream.topic, (), 1000, None)
    assert told(asked(stream.out, stream.handle_heads, A, question, NOW)) == sorted(both)
    asked(stream.out, stream.push.handle_follow, A, Follow(stream.topic, Wish.NOTHING), stream.keeps, NOW)
    assert told(
        asked(stream.out, stream.push.handle_follow, A, Follow(stream.topic, Wish.HEADS), stream.keeps, NOW)
    ) == sorted(both)


def test_in_doubt_a_storage_node_is_drawn_too_and_otherwise_not() -> None:
    scene = Scene()
    asked(scene.stream.out, scene.stream.set_storage, contacts(C), scene.now)
    scene.hear(scene.ann.say())
    scene.stream.lazy._looks = 1
    assert scene.look()[2] == CALM
    assert C not in scene.stream.lazy, "all is well: storage nodes have enough to do"
    scene.stream.lazy.hurry(scene.now)
    scene.look()
    assert C in scene.stream.lazy
    scene.members(A, B)
    scene.look()
    assert C in scene.stream.lazy, "it is drawn once"


def test_a_reader_learns_of_every_chain_from_a_storage_node_that_it_has_drawn() -> None:
    """It takes the first word of a storage node for a list of all chains."""
    stream, ann, ben = keeper()
    scene = Scene()
    keeping = known_identity("keeper").peer
    asked(scene.stream.out, scene.stream.set_storage, contacts(keeping), scene.now)
    scene.members(keeping)
    asked_for = [message for _, message in sent(scene.link(keeping), Message)]
    reader = scene.context.peer
    answers = [
        each
        for question in asked_for
        for each in asked(
            stream.out,
            *(
                (stream.push.handle_follow, reader, question, True, NOW)
                if isinstance(question, Follow)
                else (stream.handle_heads, reader, question, NOW)
            ),
        )
    ]
    ((_, first), *_) = sent(answers, Heads)
    assert {place.author for place in first.chains} == {ann.identity.author, ben.identity.author}


def test_strangers_that_provide_what_neighbours_did_not_are_not_held_without_end() -> None:
    scene = Scene(lazy=3)
    freed: list[PeerId] = []
    for peer in PEERS:
        scene.follow(peer, Wish.HEADS)
        scene.now += 121.0  # Nobody that has helped is grafted any more.
        scene.look()
        freed += released(asked(scene.stream.out, scene.stream.lazy.note_provided, peer, scene.now))
    drawn = [peer for peer in PEERS if peer in scene.stream.lazy.linked]
    assert len(drawn) == 3 + GRAFTS
    assert PEERS[-1] in drawn
    assert len(freed) > 20, "they are let go when others take their places"


def test_who_keeps_a_stream_resends_nothing_that_its_log_lacks() -> None:
    """It was evicted or refused, though it came last."""
    stream, _, ben = keeper()
    stream.archive.evict(0.0, None, NOW + 1.0)
    chain = stream.ingest.chains[ben.key]
    request = Resend(stream.topic, chain.author, chain.device, 1, 1)
    answer = stream.archive.read_range(request, NOW + 1.0, chain)
    assert stream.forks.recent.read_range(chain.author, chain.device, 1, 1) != []
    assert stream.push.read_recent(request, answer, NOW + 1.0).units == ()


def test_that_there_are_too_many_links_is_recorded_once() -> None:
    scene = Scene(3, 1)
    drawn = held(scene.members(A))
    told = [each for _ in range(3) for each in scene.members(B, C)]
    assert drawn == [A]
    assert held(told) == []
    (record,) = [each for each in told if isinstance(each, Record)]
    assert (record.kind, record.reason) == (Kind.OVERLAY, Reason.TOO_MANY_LINKS)
