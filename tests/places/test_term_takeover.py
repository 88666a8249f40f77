"""The voice of a place goes from one to another, and those who were away learn of the terms since."""

from __future__ import annotations

import msgspec
import pytest
from tests.places.malice import AnySend, MaliciousWorld, Twist
from tests.places.sharing import (
    COHOST,
    assert_one_line,
    everybody,
    heard,
    place_at,
    run,
    says,
    share,
    shared_place,
    split,
)

from linnet.core.effects import Hold, Send
from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data
from linnet.identity.keys import SigningKey
from linnet.machine.commands import Declined
from linnet.places.commands import Announce, Announced, AnnounceMore, WatchPlace
from linnet.places.deed import Policy, sign_deed
from linnet.places.host_terms import Turn, check_yield, sign_yield
from linnet.places.messages import Replayed, TermsAre, Yield, Yielded
from linnet.sim.clock import START
from linnet.sim.places.world import HOST, PlacesWorld
from linnet.testing.identities import known_identity
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind, Record


def test_the_host_hands_over_to_a_co_host_and_takes_the_voice_back() -> None:
    world = shared_place(4, seed=1)
    for number in range(6):
        says(world, HOST if number % 2 else COHOST, f"word {number}")
    run(world, 20)
    assert_one_line(world, [f"word {number}" for number in range(6)])
    assert world.status(HOST).term == 7
    assert not world.taken_back, "nothing was cut: each began where the other had stopped"


def handing_over(host: Twist) -> MaliciousWorld:
    """A place with a co-host, in which all is well so far."""
    world = MaliciousWorld(3, 1, {HOST: host})
    world.found()
    for name in world.guests:
        world.enter(name)
    share(world, COHOST)
    says(world, HOST, "one")
    run(world, 5)
    return world


class Losing(Twist):
    """Loses every fragment for as long as it is told to."""

    loses = False

    def sends(self, send: AnySend) -> list[AnySend]:
        return [] if self.loses and isinstance(send.message, Data) else [send]


def test_who_is_handed_the_voice_asks_for_the_last_words_that_were_lost() -> None:
    losing = Losing()
    world = handing_over(losing)
    losing.loses = True
    says(world, HOST, "two")
    losing.loses = False
    says(world, COHOST, "three")
    run(world, 20)
    assert_one_line(world, ["one", "two", "three"])
    assert not world.taken_back


class Overtaking(Twist):
    """Its word that it hands over comes before what it said last, as by the faster lane of a link."""

    is_slow = False

    def __init__(self) -> None:
        self._held: list[AnySend] = []

    def sends(self, send: AnySend) -> list[AnySend]:
        if self.is_slow and isinstance(send.message, Data):
            self._held.append(send)
            return []
        if not isinstance(send.message, Yielded):
            return [send]
        held, self._held = self._held, []
        return [send, *held]


def test_who_is_handed_the_voice_waits_for_the_last_words_that_are_on_their_way() -> None:
    overtaking = Overtaking()
    world = handing_over(overtaking)
    overtaking.is_slow = True
    says(world, HOST, "two")
    says(world, COHOST, "three")
    overtaking.is_slow = False
    run(world, 20)
    assert_one_line(world, ["one", "two", "three"])
    assert not world.taken_back


def test_both_speak_at_once_and_nothing_is_lost() -> None:
    world = shared_place(4, seed=2)
    for number in range(4):
        for name in (HOST, COHOST):
            body = f"{name} {number}".encode()
            world.ask(name, Announce(world.place, "_message", (), body))
        run(world, 0.2)
    run(world, 60)
    said = sorted(body.decode() for body in world.said["guest3"].values() if body)
    assert said == sorted(f"{name} {number}" for number in range(4) for name in (HOST, COHOST))
    for name in (HOST, COHOST):
        own = [body for _, body in sorted(world.said["guest3"].items()) if body.startswith(name.encode())]
        assert own == [f"{name} {number}".encode() for number in range(4)], "each in its order"


def test_a_voice_in_the_middle_of_a_message_refuses_and_that_binds_who_ranks_below() -> None:
    world = shared_place(3, seed=3)
    begun = world.obtain(HOST, Announce(world.place, "_file", body=b"a" * 100, more=True), Announced)
    declined = world.obtain(COHOST, Announce(world.place, "_message", body=b"me too"), Declined)
    assert declined.reason is Reason.IN_USE
    world.obtain(HOST, AnnounceMore(world.place, begun.message, b"b", False), Announced)
    says(world, COHOST, "now")
    run(world, 10)
    assert world.said["guest2"][begun.message] == b"a" * 100 + b"b"
    assert b"now" in world.said["guest2"].values()


def test_the_host_is_not_bound_by_a_refusal() -> None:
    world = shared_place(3, seed=4)
    begun = world.obtain(COHOST, Announce(world.place, "_file", body=b"a" * 100, more=True), Announced)
    run(world, 5)
    says(world, HOST, "enough")
    run(world, 5)
    declined = world.obtain(COHOST, AnnounceMore(world.place, begun.message, b"b", False), Declined)
    assert declined.reason is Reason.STALE
    assert b"enough" in world.said["guest2"].values()


@pytest.mark.parametrize("crashes", [False, True])
def test_whoever_handed_over_says_nothing_more_in_its_term_also_after_a_crash(crashes: bool) -> None:
    """The co-host is gone before anybody hears that it has the voice, so that nobody opens the next term."""
    world = shared_place(3, seed=5)
    says(world, HOST, "one")
    run(world, 5)
    term, cells = world.status(HOST).term, world.stores[HOST].cells
    world.ask(COHOST, Announce(world.place, "_message", (), b"two"))
    for _ in range(500):
        if cells.get("place yielded", world.place) is not None:
            break
        run(world, 0.01)
    world.crash(COHOST)
    assert world.status(HOST).term == term
    if crashes:
        world.crash(HOST)
        run(world, 20)
        world.restart(HOST)
        run(world, 60)
    says(world, HOST, "three")
    assert world.status(HOST).term > term
    world.restart(COHOST)
    run(world, 60)
    assert_one_line(world, ["one", "three"])


def test_without_an_answer_the_next_term_is_opened() -> None:
    world = shared_place(3, seed=6)
    says(world, HOST, "one")
    run(world, 5)
    world.network.crash(world.identities[HOST].peer, silent=True)
    before = world.network.elapsed
    says(world, COHOST, "two")
    waited = world.network.elapsed - before
    assert world.config.yield_timeout <= waited <= world.config.yield_timeout + 1
    run(world, 5)
    assert world.status(COHOST).term == 2


def test_a_voice_that_has_to_be_dialled_first_has_its_whole_time_to_answer() -> None:
    world = shared_place(2, seed=6)
    says(world, HOST, "one")
    run(world, 5)
    place, voice, now = place_at(world, COHOST), world.peer(HOST), world.network.now
    takeover, out, patience = place.host.takeover, place.parts.out, world.config.yield_timeout
    del place.parts.context.links[voice]
    takeover.want_turn(now)
    assert [each.peer for each in out.take() if isinstance(each, Hold)] == [voice]
    place.parts.context.links[voice] = None
    asked = now + patience - 1.0
    for again in (0.0, 0.5):
        takeover.ask_voice(asked + again)
        sent = [
            each.peer for each in out.take() if isinstance(each, Send) and isinstance(each.message, Yield)
        ]
        assert sent == ([] if again else [voice]), "it is asked once"
    assert takeover.turn(asked + patience - 0.1) is Turn.WAIT
    assert takeover.turn(asked + patience) is Turn.OPEN


def test_a_word_that_waits_for_its_turn_is_not_overtaken_by_the_next_one() -> None:
    """After a restart the host waits for word of another voice. That time ends before it next looks whether
    it may speak, and another word is asked for in between."""
    world = shared_place(2, seed=7)
    says(world, HOST, "before")
    run(world, 5)
    for name in everybody(world):
        world.crash(name)
    world.restart(HOST)
    unsure, patience = world.config.entry_timeout, world.config.yield_timeout
    run(world, unsure - patience / 2)
    first = world.ask(HOST, Announce(world.place, "_message", body=b"one"))
    run(world, patience * 3 / 4)
    assert world.network.answers.get(first) is None, "it waits"
    second = world.ask(HOST, Announce(world.place, "_message", body=b"two"))
    run(world, patience)
    for request in (first, second):
        assert isinstance(world.network.answers.get(request), Announced)
    assert heard(world, HOST) == ["before", "one", "two"]


ANNA, EVE = known_identity("anna"), known_identity("eve")
DEED = sign_deed(SigningKey(b"p" * 32), 1, Policy.PUBLIC, known_identity("bob").author, (ANNA.author,))


def refused(asked: Yield, link: PeerId = ANNA.peer) -> Reason:
    with pytest.raises(RemoteError) as raised:
        check_yield(asked, DEED, link, START)
    return raised.value.reason


def test_a_co_host_may_ask() -> None:
    check_yield(sign_yield(ANNA.device, ANNA.card, DEED.place, 3), DEED, ANNA.peer, START)


def test_others_may_not_and_nobody_for_somebody_else() -> None:
    asked = sign_yield(ANNA.device, ANNA.card, DEED.place, 3)
    assert refused(asked, EVE.peer) is Reason.REPLAYING
    assert refused(sign_yield(EVE.device, EVE.card, DEED.place, 3), EVE.peer) is Reason.NOT_A_PUBLISHER
    assert refused(sign_yield(EVE.device, ANNA.card, DEED.place, 3)) is Reason.BAD_SIGNATURE
    assert refused(msgspec.structs.replace(asked, term=4)) is Reason.BAD_SIGNATURE
    assert refused(msgspec.structs.replace(asked, place=ANNA.author)) is Reason.UNKNOWN


@pytest.mark.parametrize("seed", range(3))
def test_a_host_that_was_away_catches_up_and_speaks_again(seed: int) -> None:
    world = shared_place(4, seed)
    says(world, HOST, "by the host")
    run(world, 5)
    world.crash(HOST)
    run(world, 5)
    says(world, COHOST, "by the co-host")
    run(world, 5)
    world.restart(HOST)
    run(world, 60)
    assert heard(world, HOST) == ["by the host", "by the co-host"]
    assert world.status(HOST).voice == world.identities[COHOST].peer, (
        "it listens until it has something to say"
    )
    says(world, HOST, "by the host again")
    run(world, 60)
    assert_one_line(world, ["by the host", "by the co-host", "by the host again"])
    assert world.status(COHOST).voice == world.identities[HOST].peer
    assert world.status(COHOST).term == 3


def test_guests_who_stayed_with_the_old_voice_move_on_by_themselves() -> None:
    world = shared_place(5, seed=4)
    says(world, HOST, "before")
    run(world, 5)
    split(world, COHOST, "guest1", "guest2")
    run(world, 10)
    says(world, COHOST, "there")
    run(world, 60)
    world.network.heal()
    run(world, 400)
    assert_one_line(world, ["before", "there"])
    assert world.status("guest4").term == 2


def test_who_comes_later_can_check_what_a_former_co_host_said() -> None:
    world = PlacesWorld(4, seed=11)
    world.found(Policy.CLOSED)
    world.welcomes = True
    for name in ("guest0", "guest1"):
        world.enter(name)
    share(world, COHOST)
    says(world, HOST, "by the host")
    says(world, COHOST, "by the co-host")
    run(world, 10)
    share(world)
    run(world, 10)
    assert [each.term for each in world.status(HOST).deed.past] == [2]
    assert world.status(HOST).term == 3, "the host goes on: nobody else may"
    refused = world.answered(world.ask(COHOST, Announce(world.place, "_message", body=b"still me")))
    assert isinstance(refused, Declined)
    world.enter("guest3")
    run(world, 30)
    world.watch("guest3")
    run(world, 10)
    assert heard(world, "guest3") == ["by the host", "by the co-host"]


def test_what_is_read_later_names_who_said_it() -> None:
    world = shared_place(2, seed=12)
    said = [(name, says(world, name, f"by {name}")) for name in (HOST, COHOST)]
    run(world, 10)
    by_message = {message: world.identities[name].author for name, message in said}
    for name in (HOST, "guest1"):
        world.heads[name].clear()
        world.ask(name, WatchPlace(7, world.place, since=1, until=-1))
        run(world, 5)
        told = {each.message: each.author for each in world.heads[name] if each.message in by_message}
        assert told == by_message, name


class Muffled(Twist):
    """Holds messages of some kinds back."""

    kinds: tuple[type[Message], ...] = ()

    def sends(self, send: AnySend) -> list[AnySend]:
        return [] if isinstance(send.message, self.kinds) else [send]


def test_who_opens_a_term_takes_back_what_it_heard_behind_a_gap() -> None:
    muffled = Muffled()
    world = MaliciousWorld(3, 13, {HOST: muffled})
    world.found()
    for name in world.guests:
        world.enter(name)
    share(world, COHOST)
    says(world, HOST, "one")
    run(world, 5)
    muffled.kinds = (Data, Replayed)
    says(world, HOST, "nobody hears this")
    run(world, 1)
    muffled.kinds = (Replayed,)
    behind = says(world, HOST, "three")
    run(world, 1)
    muffled.kinds = (Data, Replayed)
    says(world, HOST, "nor this")
    run(world, 1)
    muffled.kinds = (Replayed,)
    says(world, HOST, "five")
    run(world, 1)
    assert heard(world, COHOST) == ["one", "three", "five"]
    world.crash(HOST)
    for heads in world.heads.values():
        heads.clear()
    texts = ["two", "three again", "four", "five again", "six"]
    for text in texts:
        says(world, COHOST, text)
    run(world, 60)
    for name in world.guests:
        assert heard(world, name) == ["one", *texts], name
        assert [each.messages for each in world.taken_back[name]] == [(behind, behind + 2)], name
        begun = [each.message for each in world.heads[name] if each.method == "_message"]
        assert begun == sorted(set(begun)), "what has a number anew is handed over once"
    statuses = world.statuses(world.guests)
    assert len({(each.term, each.missing, each.state_hash) for each in statuses}) == 1


def test_where_nothing_is_missing_nothing_is_dropped_when_a_term_is_opened() -> None:
    trace = ColumnTrace()
    world = PlacesWorld(2, seed=14, trace=trace)
    world.found()
    for name in world.guests:
        world.enter(name)
    share(world, COHOST)
    for number in range(4):
        says(world, HOST if number % 2 else COHOST, f"word {number}")
    run(world, 10)
    assert_one_line(world, [f"word {number}" for number in range(4)])
    orphaned = [each.note for each in trace.rows() if "orphaned" in (each.note or "")]
    assert orphaned == []


def test_terms_with_a_card_that_was_altered_change_nothing_and_name_who_brought_them() -> None:
    world = shared_place(2, seed=15)
    says(world, HOST, "one")
    run(world, 5)
    place, liar, now = place_at(world, "guest1"), world.identities[COHOST], world.network.now
    before, upstreams = place.parts.term, place.parts.tree.upstreams
    unit = place.parts.unit_of(place.parts.terms.line[-1].opening.event)
    assert unit is not None
    card = msgspec.structs.replace(liar.card, sig=bytes(64))
    terms = TermsAre(world.place, (unit,), (card,), True)
    assert not place.term_exchange.handle_terms(liar.peer, terms, now)
    assert (place.parts.term, place.parts.tree.upstreams) == (before, upstreams)
    (record,) = [each for each in place.parts.out.take() if isinstance(each, Record)]
    assert (record.kind, record.peer, record.reason) == (Kind.REJECTED, liar.peer, Reason.BAD_SIGNATURE)
