"""Gap repair: what is asked for, of whom, when, and when it is given up."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.delivery.voices import TOPIC, Voice, asked, take

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, DeviceId, PeerId
from linnet.delivery.chain import Chain
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.gap_repair import GapDue, GapRepair
from linnet.delivery.messages import Resend
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

CONFIG = DeliveryConfig(gap_grace=0.5, gap_timeout=3.0, gap_tries=3, gap_backoff=1.0)
S1, S2, NEIGHBOR = PeerId(b"1" * 32), PeerId(b"2" * 32), PeerId(b"n" * 32)
HINTS = ("tls://s:1",)
PURPOSE = f"gaps {TOPIC.hex()[:16]}"


class Scene:
    """A chain that saw 0 and 3 of 0 to 3, and the repairs of its topic."""

    def __init__(self, *linked: PeerId, config: DeliveryConfig = CONFIG) -> None:
        self.links = dict.fromkeys(linked)
        self.out = Outbox()
        self.gaps = GapRepair(TOPIC, config, self.links, self.out)
        self.ann = Voice()
        self.units = self.ann.units(4)
        self.chain = self.ann.chain()
        take(self.chain, self.units[0])
        take(self.chain, self.units[3])
        self.now = 0.0

    def begin(self) -> list[Any]:
        return asked(self.out, self.gaps.review_chain, self.chain)

    def fire(self) -> list[Any]:
        self.out.clear()
        assert not self.gaps.ask_sources(self.chain, self.now)
        self.now += 1
        return self.out.take()

    def give_up(self) -> list[Any]:
        self.out.clear()
        assert self.gaps.ask_sources(self.chain, self.now)
        return self.out.take()

    @property
    def timer(self) -> GapDue:
        return GapDue(TOPIC, self.ann.key)

    def wait(self, seconds: float) -> SetTimer[GapDue]:
        return SetTimer(seconds, self.timer)

    def ask(self, peer: PeerId, first: int = 1, last: int = 2) -> Send[Resend]:
        author, device = self.ann.identity.author, self.ann.identity.card.device
        return Send(peer, Resend(TOPIC, author, device, first, last))


def test_a_gap_may_close_by_itself_within_the_grace_time() -> None:
    scene = Scene(S1)
    assert scene.begin() == [scene.wait(0.5)]
    take(scene.chain, scene.units[2])
    assert scene.begin() == []
    take(scene.chain, scene.units[1])
    filled = Record(Kind.RESYNC, TOPIC, device=scene.chain.device, note="gap filled")
    assert scene.begin() == [CancelTimer(scene.timer), filled]
    assert (scene.gaps.filled, len(scene.gaps.repairs)) == (1, 0)


def test_nothing_is_done_where_nothing_is_missing() -> None:
    scene = Scene(S1)
    ben = Voice("ben")
    assert asked(scene.out, scene.gaps.review_chain, ben.chain()) == []


def test_storage_is_asked_for_exactly_what_is_missing() -> None:
    scene = Scene(S1)
    scene.gaps.set_storage([Contact(S1, HINTS)])
    scene.begin()
    assert scene.fire() == [scene.ask(S1), scene.wait(3.0)]


def test_of_several_holes_each_is_asked_for_and_nothing_that_is_there() -> None:
    scene = Scene(S1)
    scene.gaps.set_storage([Contact(S1, HINTS)])
    take(scene.chain, scene.ann.units(2)[1])
    scene.begin()
    assert scene.fire() == [scene.ask(S1, 1, 2), scene.ask(S1, 4, 4), scene.wait(3.0)]


def test_a_link_to_storage_is_made_for_it_and_let_go() -> None:
    scene = Scene()
    scene.gaps.set_storage([Contact(S1, HINTS)])
    scene.begin()
    assert scene.fire() == [Hold(S1, HINTS, PURPOSE), scene.wait(1.0)]
    scene.links[S1] = None
    assert asked(scene.out, scene.gaps.handle_link_up, S1) == [scene.wait(0.0)]
    assert scene.fire() == [scene.ask(S1), scene.wait(3.0)]
    take(scene.chain, scene.units[1])
    take(scene.chain, scene.units[2])
    assert Release(S1, PURPOSE) in scene.begin()


def test_a_link_to_storage_is_made_even_if_a_neighbour_can_be_asked() -> None:
    """A neighbour that holds the chain may lack this part of it."""
    scene = Scene(NEIGHBOR)
    scene.gaps.set_storage([Contact(S1, HINTS)])
    scene.gaps.note_holder(NEIGHBOR, scene.ann.key)
    scene.begin()
    assert scene.fire() == [Hold(S1, HINTS, PURPOSE), scene.ask(NEIGHBOR), scene.wait(3.0)]


def test_with_a_link_to_one_storage_node_no_other_is_dialled() -> None:
    scene = Scene(S2)
    scene.gaps.set_storage([Contact(S1, HINTS), Contact(S2, HINTS)])
    scene.begin()
    assert scene.fire() == [scene.ask(S2), scene.wait(3.0)]
    assert not [each for each in scene.fire() if isinstance(each, Hold)], "not even if it does not answer"


def test_who_holds_another_chain_is_not_asked() -> None:
    scene = Scene(NEIGHBOR)
    scene.gaps.note_holder(NEIGHBOR, Voice("ben").key)
    scene.begin()
    assert scene.fire() == [scene.wait(1.0)]


def test_storage_first_then_neighbours_then_a_pause() -> None:
    scene = Scene(S1, S2, NEIGHBOR)
    scene.gaps.note_holder(NEIGHBOR, scene.ann.key)
    scene.gaps.set_storage([Contact(S1, HINTS), Contact(S2, HINTS)])
    scene.begin()
    for source in (S1, S2):
        assert scene.fire() == [scene.ask(source), scene.wait(3.0)]
        assert asked(scene.out, scene.gaps.handle_answer, source, scene.chain, done=True) == [scene.wait(0.0)]
    assert scene.fire() == [scene.ask(NEIGHBOR), scene.wait(3.0)]
    assert asked(scene.out, scene.gaps.handle_answer, NEIGHBOR, scene.chain, done=True) == [scene.wait(1.0)]
    assert scene.fire() == [scene.ask(S1), scene.wait(3.0)]


def test_who_does_not_answer_is_passed_over() -> None:
    scene = Scene(S1, S2)
    scene.gaps.set_storage([Contact(S1, HINTS), Contact(S2, HINTS)])
    scene.begin()
    assert scene.fire() == [scene.ask(S1), scene.wait(3.0)]
    assert scene.fire() == [scene.ask(S2), scene.wait(3.0)]


def test_who_had_some_is_asked_for_the_rest() -> None:
    scene = Scene(S1, S2)
    scene.gaps.set_storage([Contact(S1, HINTS), Contact(S2, HINTS)])
    scene.begin()
    scene.fire()
    take(scene.chain, scene.units[1])
    assert asked(scene.out, scene.gaps.handle_answer, S1, scene.chain, done=True) == [scene.wait(0.0)]
    assert scene.fire() == [scene.ask(S1, 2, 2), scene.wait(3.0)]


def test_the_pages_of_an_answer_are_awaited() -> None:
    scene = Scene(S1)
    scene.gaps.set_storage([Contact(S1, HINTS)])
    scene.begin()
    scene.fire()
    assert asked(scene.out, scene.gaps.handle_answer, S1, scene.chain, done=False) == [scene.wait(3.0)]


def test_several_holes_are_asked_for_once_each() -> None:
    """While answers are on their way nothing is asked for again."""
    scene = Scene(S1)
    later = scene.ann.units(3)
    take(scene.chain, later[1])
    scene.gaps.set_storage([Contact(S1, HINTS)])
    scene.begin()
    assert scene.fire() == [scene.ask(S1), scene.ask(S1, 4, 4), scene.wait(3.0)]
    assert asked(scene.out, scene.gaps.handle_answer, S1, scene.chain, done=True) == [scene.wait(3.0)]
    assert asked(scene.out, scene.gaps.handle_answer, S1, scene.chain, done=True) == [scene.wait(1.0)]


def test_an_answer_that_nobody_waits_for_changes_nothing() -> None:
    scene = Scene(S1)
    assert asked(scene.out, scene.gaps.handle_answer, S1, scene.chain, done=True) == []
    scene.begin()
    assert asked(scene.out, scene.gaps.handle_answer, S1, scene.chain, done=True) == []


def test_rounds_are_ever_further_apart_and_then_it_is_given_up() -> None:
    scene = Scene(S1)
    scene.gaps.set_storage([Contact(S1, HINTS)])
    scene.begin()
    for pause in (1.0, 2.0, 4.0):
        assert scene.fire() == [scene.ask(S1), scene.wait(3.0)]
        assert asked(scene.out, scene.gaps.handle_answer, S1, scene.chain, done=True) == [scene.wait(pause)]
    assert scene.give_up() == [CancelTimer(scene.timer)]
    assert (scene.gaps.lost, len(scene.gaps.repairs)) == (2, 0)


def test_many_holders_do_not_use_up_the_tries() -> None:
    """Giving up takes as long with ten sources as with one."""
    scene = Scene(S1, config=DeliveryConfig(gap_tries=2))
    scene.gaps.set_storage([Contact(S1, HINTS)])
    peers = [PeerId(bytes([n]) * 32) for n in range(10)]
    for peer in peers:
        scene.links[peer] = None
        scene.gaps.note_holder(peer, scene.ann.key)
    scene.begin()
    for _ in range(11):
        sent = scene.fire()[0]
        scene.gaps.handle_answer(sent.peer, scene.chain, done=True)
    assert len(scene.gaps.repairs) == 1
    assert scene.fire()[0] == scene.ask(S1)


def test_without_anyone_to_ask_it_is_given_up_after_the_same_rounds() -> None:
    scene = Scene()
    scene.begin()
    assert [scene.fire() for _ in range(3)] == [[scene.wait(1.0)], [scene.wait(2.0)], [scene.wait(4.0)]]
    scene.now = 9.0
    assert scene.give_up() == [CancelTimer(scene.timer)]


def test_a_peer_that_is_gone_is_not_asked() -> None:
    scene = Scene(NEIGHBOR)
    scene.gaps.note_holder(NEIGHBOR, scene.ann.key)
    scene.gaps.handle_link_down(NEIGHBOR)
    scene.begin()
    assert scene.fire() == [scene.wait(1.0)]


def test_storage_that_comes_to_be_known_is_asked_at_once() -> None:
    scene = Scene(S1)
    scene.begin()
    scene.fire()
    assert asked(scene.out, scene.gaps.set_storage, [Contact(S1, HINTS)]) == [scene.wait(0.0)]
    assert asked(scene.out, scene.gaps.set_storage, []) == []


def test_stopping_lets_everything_go() -> None:
    scene = Scene()
    scene.gaps.set_storage([Contact(S1, HINTS)])
    scene.begin()
    scene.fire()
    assert asked(scene.out, scene.gaps.stop) == [CancelTimer(scene.timer), Release(S1, PURPOSE)]
    assert scene.fire() == []


def test_a_chain_that_is_no_longer_followed_is_forgotten() -> None:
    scene = Scene()
    scene.begin()
    assert asked(scene.out, scene.gaps.forget_chain, scene.ann.key) == [CancelTimer(scene.timer)]
    assert asked(scene.out, scene.gaps.forget_chain, scene.ann.key) == []


def test_what_was_given_up_otherwise_needs_no_request() -> None:
    scene = Scene(S1)
    scene.gaps.set_storage([Contact(S1, HINTS)])
    scene.begin()
    scene.chain.forgo(1, 2)
    assert scene.fire() == [CancelTimer(scene.timer)]


def test_many_gaps_at_once_are_asked_for_in_the_measure_that_a_peer_may_speak() -> None:
    links = {S1: None}
    out = Outbox()
    gaps = GapRepair(TOPIC, CONFIG, links, out)
    gaps.set_storage([Contact(S1, HINTS)])
    chains: list[Chain] = []
    for number in range(300):
        voice = Voice(f"v{number % 4}")
        chain = Chain(voice.identity.author, number.to_bytes(8, "big"), 0, 10)  # type: ignore[arg-type]
        chain.announced = 0
        gaps.review_chain(chain)
        chains.append(chain)
    out.clear()
    for chain in chains:
        gaps.ask_sources(chain, 1.0)
    assert sum(isinstance(effect, Send) for effect in out.take()) == 200
    waiting = dict.fromkeys(chain.key for chain in chains[200:])
    by_key = {chain.key: chain for chain in chains}
    turns = [by_key[key] for key in gaps.take_turns(1.5)]
    assert turns == [], "the second is not over yet"
    for key in gaps.take_turns(2.0):
        gaps.ask_sources(by_key[key], 2.0)
        del waiting[key]
    assert waiting == {}
    assert sum(isinstance(effect, Send) for effect in out.take()) == 100
    assert list(gaps.take_turns(3.0)) == []


class Crowd:
    """Many chains that have gaps, and their repairs."""

    def __init__(self) -> None:
        self.out = Outbox()
        self.gaps = GapRepair(TOPIC, CONFIG, {S1: None}, self.out)
        self.gaps.set_storage([Contact(S1, HINTS)])
        self.chains: dict[bytes, Chain] = {}
        self.claimed: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.ann = Voice().identity.author

    def claim(self, who: str, chains: int, *, seen: bool = False) -> None:
        for _ in range(chains):
            number = len(self.chains)
            chain = Chain(self.ann, DeviceId(number.to_bytes(8, "big")), 0, 10)
            chain.announced = 1
            if seen:
                chain.seen.add(0, 0)
            self.gaps.review_chain(chain, None if seen else PeerId(who.encode() * 32))
            self.chains[chain.key] = chain
            self.claimed[who] += 1
        self.names = [who for who, count in self.claimed.items() for _ in range(count)]

    def begin(self) -> None:
        """The grace time of all is over."""
        for chain in self.chains.values():
            self.gaps.ask_sources(chain, 1.0)
        self.out.clear()

    def turn(self, now: float) -> Counter[str]:
        """Whose chains have their turn."""
        asked: Counter[str] = Counter()
        for key in self.gaps.take_turns(now):
            self.gaps.ask_sources(self.chains[key], now)
            asked[self.names[list(self.chains).index(key)]] += 1
        return asked

    def timers(self) -> int:
        """How many timers were set since this was asked last."""
        return sum(isinstance(effect, SetTimer) for effect in self.out.take())


def test_chains_that_wait_for_their_turn_cost_one_timer() -> None:
    crowd = Crowd()
    crowd.claim("m", 5000)
    crowd.begin()
    for second in range(2, 6):
        assert crowd.turn(float(second)) == {"m": 200}
        assert crowd.timers() == 201  # for the answers that are due, and for the next turn


def test_who_claims_many_chains_takes_no_turns_from_others() -> None:
    crowd = Crowd()
    crowd.claim("m", 2000)
    crowd.claim("h", 30)
    crowd.claim("s", 500, seen=True)
    crowd.begin()
    assert crowd.turn(2.0) == {"s": 150, "m": 25, "h": 25}
    assert crowd.turn(3.0) == {"s": 150, "m": 45, "h": 5}


def test_claimed_chains_have_all_turns_if_no_other_chain_waits() -> None:
    crowd = Crowd()
    crowd.claim("m", 600)
    crowd.begin()
    assert crowd.turn(2.0) == {"m": 200}
    assert crowd.turn(3.0) == {"m": 200}
    assert crowd.turn(4.0) == {}


def test_a_chain_whose_event_came_waits_no_longer_behind_claims() -> None:
    """Else who claims a real chain among many that do not exist would delay it for minutes."""
    crowd = Crowd()
    crowd.claim("m", 5000)
    crowd.begin()
    real = list(crowd.chains.values())[-1]
    real.seen.add(0, 0)
    real.announced = 2
    crowd.gaps.review_chain(real, PeerId(b"m" * 32))
    assert next(crowd.gaps.take_turns(2.0)) == real.key


def test_the_only_claimed_chain_that_waits_may_turn_out_to_be_real() -> None:
    crowd = Crowd()
    crowd.claim("s", 201, seen=True)
    crowd.claim("m", 1)
    crowd.begin()
    real = list(crowd.chains.values())[-1]
    real.seen.add(0, 0)
    real.announced = 2
    crowd.gaps.review_chain(real)
    assert crowd.turn(2.0) == {"s": 1, "m": 1}


def test_a_chain_that_is_forgotten_while_it_waits_has_no_turn() -> None:
    crowd = Crowd()
    crowd.claim("m", 203)
    crowd.begin()
    for key in list(crowd.chains)[-2:]:
        crowd.gaps.forget_chain(key)
    assert crowd.turn(2.0) == {"m": 1}


def test_a_clock_that_was_put_back_stops_no_turns() -> None:
    crowd = Crowd()
    crowd.claim("m", 300)
    crowd.begin()
    assert crowd.turn(-1000.0) == {"m": 100}


def test_who_waits_does_not_count_rounds_in_which_nobody_could_be_asked() -> None:
    scene = Scene(config=DeliveryConfig(gap_tries=3, gap_waits=True))
    scene.begin()
    again = SetTimer(8.0, GapDue(TOPIC, scene.chain.key))
    for _ in range(20):
        assert scene.fire() == [again]
    scene.links[S1] = None
    assert asked(scene.out, scene.gaps.set_storage, [Contact(S1, HINTS)]) == [
        SetTimer(0.0, GapDue(TOPIC, scene.chain.key))
    ]
    place = scene.ann.identity
    ask = Resend(TOPIC, place.author, place.card.device, 1, 2)
    assert Send(S1, ask) in scene.fire()


def test_who_does_not_answer_is_asked_after_others_and_then_more_are_asked_at_a_time() -> None:
    peers = [PeerId(bytes([n]) * 32) for n in range(1, 8)]
    scene = Scene(*peers)
    for peer in peers:
        scene.gaps.note_holder(peer, scene.ann.key)
    scene.begin()

    def asked_now() -> list[PeerId]:
        return [each.peer for each in scene.fire() if isinstance(each, Send)]

    assert [asked_now() for _ in range(3)] == [peers[:1], peers[1:3], peers[3:7]]
    assert asked_now() == [], "a round is over"
    scene.gaps.handle_link_down(peers[5])
    scene.gaps.note_holder(peers[5], scene.ann.key)
    assert asked_now()[0] == peers[5], "it has not been silent since it came back"


def test_an_answer_of_somebody_who_was_not_asked_ends_no_waiting() -> None:
    scene = Scene(S1, S2)
    scene.gaps.set_storage([Contact(S1, HINTS)])
    scene.begin()
    scene.fire()
    assert asked(scene.out, scene.gaps.handle_answer, S2, scene.chain, done=True) == []


def test_what_we_refuse_is_not_asked_of_others_in_the_same_round() -> None:
    scene = Scene(S1, S2)
    scene.gaps.set_storage([Contact(S1, HINTS), Contact(S2, HINTS)])
    scene.begin()
    scene.fire()
    told = asked(scene.out, scene.gaps.handle_answer, S1, scene.chain, done=True, is_refused=True)
    assert told == [scene.wait(1.0)]


def test_sources_that_come_and_go_do_not_keep_a_round_from_ending() -> None:
    scene = Scene(NEIGHBOR, config=DeliveryConfig(gap_tries=1))
    scene.gaps.note_holder(NEIGHBOR, scene.ann.key)
    scene.begin()
    asks = 0
    for number in range(200):
        stranger = PeerId(number.to_bytes(32, "big"))
        scene.links[stranger] = None
        scene.gaps.note_holder(stranger, scene.ann.key)
        if scene.gaps.repairs[scene.ann.key].rounds:
            break
        asks += sum(isinstance(each, Send) for each in scene.fire())
        scene.gaps.handle_link_down(stranger)
        del scene.links[stranger]
    assert 64 <= asks < 70
    scene.give_up()


def test_what_storage_nodes_did_not_answer_is_forgotten_with_them() -> None:
    scene = Scene()
    for number in range(40):
        peer = PeerId(number.to_bytes(32, "big"))
        scene.gaps.set_storage((Contact(peer, HINTS),))
        scene.links[peer] = None
        scene.begin()
        asked(scene.out, scene.gaps.ask_sources, scene.chain, scene.now)
        del scene.links[peer]
        scene.gaps.handle_link_down(peer)
        asked(scene.out, scene.gaps.ask_sources, scene.chain, scene.now)
        scene.gaps.forget_chain(scene.ann.key)
    assert len(scene.gaps._silent) <= 1
