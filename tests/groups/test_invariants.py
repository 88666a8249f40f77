"""What holds of a group whatever happens in it: a machine of Hypothesis makes it happen.

====  ==========================================================================================
P1    the same operations make the same view, by the definition and in any order: `check_views`
P2    nobody who was removed is in a view again: `nobody_comes_back`
P3    whom a sender addressed is its own view, by the definition: `check_views`
P4    all who follow a member's ratchet have the same one: `check_ratchets`
P5    at rest so have all members of all members: `check_rest`
P6    at rest no share is pending: `check_rest`
P7    a message is opened by all who are members for its sender and still are: `check_reading`
P8    and by nobody else: `check_reading`
P9    what one tells another is opened, in order: `check_rest` (nobody lost anybody)
P10   no key opens two direct messages: `check_keys`
P11   no key of a message is used twice, also after crashes: `check_keys` and the rule `crash`
P12   what fails changes nothing: the rules `forge` and `add_without_prekeys`
P13   what comes again changes nothing: the rule `again`
P14   any order that keeps to the causes ends alike: every run of this machine, `check_rest`
P15   what comes before its causes waits: the rule `too_early`
P16   states survive their bytes, which are canonical: `states_are_bytes`
P17   no changed bit is accepted: the rule `forge`. That is for messages; a changed operation would be another
      event, which the signature of its author does not cover
P18   what is safe is unreadable, P19 also to the removed, P21 no used secret stays: `test_thefts`
P20   once all have acknowledged, all have seen: `check_rest`
P22   bodies have the sizes that the format says: `check_sizes`
P23   (how many public-key operations each step takes is measured by the lab, not here)
P24   floods leave a state small: `test_a_flood_of_operations_out_of_order_leaves_the_state_as_it_is`
P25   groups do not touch each other: `test_what_was_sent_in_one_group_means_nothing_in_another`
P26   every stay has an id of its own: `check_views`
P27   without prekeys an operation fails as a whole: the rule `add_without_prekeys`
P28   a newcomer begins with its adder's view and itself: `check_newcomers`
====  ==========================================================================================
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from linnet.core.errors import Refused, RemoteError
from linnet.core.reasons import Reason
from linnet.groups import agreement, message_crypto
from linnet.groups.bodies import HEAD_BYTES, Acks, Add, Create, Remove, Update, decode_body
from linnet.groups.labels import MemberId
from linnet.groups.notes import Waits
from linnet.groups.state import decode_state, encode_state
from linnet.groups.two_party import direct_length
from linnet.sim.attacks.group_attacker import Attacker
from linnet.sim.groups.ledger import Ledger
from linnet.sim.groups.scenario import Course, GroupScenario, divergences, reading
from linnet.sim.groups.world import GROUP, GroupNet, Machine

SOAK = bool(os.environ.get("LINNET_SOAK"))
EXAMPLES, STEPS = (400, 60) if SOAK else (30, 40)
DEVICES = 6
WHO = st.integers(0, DEVICES - 1)
PICK = st.integers(0, 10_000)


class Group(RuleBasedStateMachine):
    """Six devices, four of them in the group at first."""

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.course = Course(
            GroupScenario(members=4, ops=1, partitions=0, thefts=0, seed=seed), keep_all=True
        )
        self.net: GroupNet = self.course.net
        self.net.create(0, (1, 2, 3))
        self.gone: dict[tuple[int, MemberId], set[MemberId]] = {}

    def able(self, who: int) -> Machine | None:
        """A device that may act, with all its acknowledgements out."""
        machine = self.net.machines[who]
        if machine.state.me is None or machine.state.me in machine.state.leaving:
            return None
        self.net.acks(who)
        return machine

    # What devices do.

    @rule(who=WHO)
    def update(self, who: int) -> None:
        machine = self.able(who)
        if machine is not None and not self.course.tidy(who):
            self.net.update(who)

    @rule(who=WHO, other=WHO)
    def add(self, who: int, other: int) -> None:
        machine = self.able(who)
        newcomer = self.net.machines[other].state
        if machine is None or newcomer.me is not None:
            return
        self.net.publish_keys(other)
        if newcomer.ours in agreement.members(machine.state).values():
            return
        bundle = self.net.directory(newcomer.ours)
        known = {member.identity for member in machine.state.history.members}
        if bundle is not None and bundle.identity in known:
            # It was here, and has not heard that it is out.
            with pytest.raises(Refused, match=Reason.MISSING_PREKEYS):
                self.net.add(who, other)
        else:
            self.net.add(who, other)

    @rule(who=WHO, picks=st.lists(PICK, min_size=1, max_size=2))
    def remove(self, who: int, picks: list[int]) -> None:
        machine = self.able(who)
        others = [] if machine is None else sorted(agreement.members(machine.state))
        others = [member for member in others if machine is not None and member != machine.state.me]
        if others and not self.course.tidy(who):
            self.net.remove(who, {others[pick % len(others)]: None for pick in picks})

    @rule(who=WHO)
    def leave(self, who: int) -> None:
        machine = self.able(who)
        if machine is not None and len(agreement.members(machine.state)) > 2:
            self.net.leave(who)

    @rule(who=WHO)
    def say(self, who: int) -> None:
        machine = self.able(who)
        if machine is None:
            return
        if agreement.needs_heal(machine.state):
            with pytest.raises(Refused, match=Reason.NEEDS_HEAL):
                self.net.say(who, "too early")
            if not self.course.tidy(who):
                self.net.update(who)
        self.net.say(who, f"message {len(self.net.said)}")

    @rule(who=WHO)
    def acknowledge(self, who: int) -> None:
        self.net.acks(who)

    @rule(to=WHO, picks=st.lists(PICK, min_size=1, max_size=12))
    def deliver(self, to: int, picks: list[int]) -> None:
        for pick in picks:
            ready = self.net.reachable(to)
            if ready:
                self.net.deliver(ready[pick % len(ready)], to)

    @rule(sides=st.lists(st.integers(0, 1), min_size=DEVICES, max_size=DEVICES))
    def cut(self, sides: list[int]) -> None:
        self.net.sides = sides

    @rule()
    def meet(self) -> None:
        self.net.sides = [0] * DEVICES
        self.course.settle()

    # What must not matter.

    @rule(who=WHO)
    def crash(self, who: int) -> None:
        machine = self.net.machines[who]
        machine.state = decode_state(encode_state(machine.state))

    @rule(who=WHO, pick=PICK)
    def again(self, who: int, pick: int) -> None:
        machine = self.net.machines[who]
        numbers = [number for number in machine.heard if number not in machine.waiting]
        if machine.state.me is None or not numbers:
            return
        heard = self.net.overheard[numbers[pick % len(numbers)]]
        if heard.clear:
            if (machine.state.me, heard.id) in machine.opened:
                with pytest.raises(RemoteError):
                    message_crypto.open_message(
                        machine.state, heard.device, heard.clear, heard.bound, heard.body
                    )
        elif heard.id in machine.log:
            step = agreement.receive(machine.state, heard.device, heard.id, heard.body, self.net.now)
            assert encode_state(step.state) == encode_state(machine.state)

    @rule(who=WHO, pick=PICK)
    def too_early(self, who: int, pick: int) -> None:
        state = self.net.machines[who].state
        later = []
        for heard in () if state.me is None else self.net.overheard:
            content = None if heard.clear else decode_body(heard.body)
            if isinstance(content, Update | Remove | Add | Acks):
                head = content.head
                if head.sender != state.me and head.cseq > state.clock.get(head.sender, 0) + 1:
                    later.append(heard)
        if later:
            heard = later[pick % len(later)]
            step = agreement.receive(state, heard.device, heard.id, heard.body, self.net.now)
            assert any(isinstance(note, Waits) for note in step.notes)
            assert encode_state(step.state) == encode_state(state)

    @rule(who=WHO, pick=PICK, bit=PICK)
    def forge(self, who: int, pick: int, bit: int) -> None:
        state, said = self.net.machines[who].state, [each for each in self.net.overheard if each.clear]
        if not said:
            return
        heard = said[pick % len(said)]
        clear, sealed, bound = (bytearray(part) for part in (heard.clear, heard.body, heard.bound))
        part = (clear, sealed, bound)[bit % 3]
        part[bit // 24 % len(part)] ^= 1 << bit // 3 % 8
        before = encode_state(state)
        with pytest.raises(RemoteError):
            message_crypto.open_message(state, heard.device, bytes(clear), bytes(bound), bytes(sealed))
        assert encode_state(state) == before

    @rule(who=WHO, other=WHO)
    def add_without_prekeys(self, who: int, other: int) -> None:
        machine = self.able(who)
        device = self.net.machines[other].state.ours
        if machine is None or device in agreement.members(machine.state).values():
            return
        before, entropy = encode_state(machine.state), machine.entropy
        with pytest.raises(Refused, match=Reason.MISSING_PREKEYS):
            agreement.draft_add(
                machine.state,
                device,
                self.net.bundles[device][0],
                agreement.Means(lambda device: None, lambda device: True, entropy, self.net.now),
            )
        assert encode_state(machine.state) == before

    # What always holds.

    @invariant()
    def states_are_bytes(self) -> None:
        for machine in self.net.machines:
            data = encode_state(machine.state)
            assert encode_state(decode_state(data)) == data

    @invariant()
    def nobody_comes_back(self) -> None:
        for place, machine in enumerate(self.net.machines):
            state = machine.state
            if state.me is None:
                continue
            view = set(state.history.view_ids(None))
            gone = self.gone.setdefault((place, state.me), set())
            assert not view & gone
            gone |= {member.id for member in state.history.members} - view

    # What holds in the end.

    def teardown(self) -> None:
        if not hasattr(self, "net"):
            return
        self.meet()
        while sum(self.course.tidy(place) for place in self.course.able()):
            self.course.settle()
        ledger = Ledger(GROUP, self.net.overheard)
        check_rest(self.net)
        check_views(self.net, ledger)
        check_ratchets(self.net)
        check_newcomers(self.net, ledger)
        check_sizes(self.net)
        check_reading(self.net)
        check_keys(self.net, ledger)


def check_rest(net: GroupNet) -> None:
    assert list(divergences(net)) == []
    for place in net.members():
        state = net.machines[place].state
        assert net.machines[place].troubles == []
        assert agreement.pending_by_member(state) == {}
        assert not any(known.awaiting for known in state.ops.values())
        everybody = state.history.view(None)
        seen = [each.seen for each in state.history.additions]
        seen += (each.seen for each in state.history.removals)
        assert not any(everybody & ~bits for bits in seen)


def check_views(net: GroupNet, ledger: Ledger) -> None:
    """The ledger has its own notion of who is in, and it refuses seeds to others than those."""
    everything = (1 << len(ledger.operations)) - 1
    for place in net.members():
        state = net.machines[place].state
        assert state.history.view_ids(None) == ledger.view(everything)
    named = sum(
        len(op.content.members) if isinstance(op.content, Create) else isinstance(op.content, Add)
        for op in ledger.operations
    )
    assert len(ledger.members) == named


def check_ratchets(net: GroupNet) -> None:
    known: dict[tuple[MemberId, int], bytes] = {}
    for machine in net.machines:
        for state in machine.kept:
            for member, ratchet in state.ratchets.items():
                assert known.setdefault((member, state.clock[member]), ratchet) == ratchet


def check_newcomers(net: GroupNet, ledger: Ledger) -> None:
    for machine in net.machines:
        seen: set[MemberId] = set()
        for state in machine.kept:
            if state.me is None or state.me in seen:
                continue
            seen.add(state.me)
            joined = ledger.operations[ledger.members[state.me].added]
            assert state.history.view_ids(None) == ledger.view(joined.past)


def check_sizes(net: GroupNet) -> None:
    for heard in net.overheard:
        content = None if heard.clear else decode_body(heard.body)
        if isinstance(content, Update):
            expected = HEAD_BYTES + 34 + sum(map(direct_length, content.directs))
        elif isinstance(content, Remove):
            named = 16 * len(content.targets)
            expected = HEAD_BYTES + 36 + named + sum(map(direct_length, content.directs))
        elif isinstance(content, Create):
            named = 72 * len(content.members)
            expected = HEAD_BYTES + 50 + named + sum(map(direct_length, content.directs))
        elif isinstance(content, Acks):
            directs = [direct for item in content.items for _, direct in item.directs]
            expected = HEAD_BYTES + 2 + 35 * len(content.items) + 16 * len(directs)
            expected += sum(map(direct_length, directs))
        else:
            continue
        assert len(heard.body) == expected


def check_reading(net: GroupNet) -> None:
    counts = reading(net)
    assert (counts["unreadable"], counts["misread"]) == (0, 0)


def check_keys(net: GroupNet, ledger: Ledger) -> None:
    """By one who has all states of all, and so knows every key that was used."""
    attacker = Attacker(ledger)
    for machine in net.machines:
        for state in machine.kept:
            attacker.steal(encode_state(state))
    assert attacker.read().keys() == net.said.keys()
    assert len(set(attacker.used.values())) == len(attacker.used)
    places = [message_crypto.read_clear(each.clear) for each in ledger.messages]
    assert len(set(places)) == len(places)
    keys = [key for place in places for key in set(attacker.keys_of(*place))]
    assert len(set(keys)) == len(keys) == len(places)


TestGroup = Group.TestCase
TestGroup.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_a_flood_of_operations_out_of_order_leaves_the_state_as_it_is() -> None:
    course = Course(GroupScenario(members=3, ops=1, partitions=0, thefts=0, seed=1))
    net = course.net
    net.create(0, (1, 2))
    course.settle()
    for _ in range(600 if SOAK else 240):
        net.update(0)
    state = net.machines[1].state
    size = len(encode_state(state))
    flood = [heard for heard in net.overheard if isinstance(decode_body(heard.body), Update)]
    for heard in flood[-200:]:
        step = agreement.receive(state, heard.device, heard.id, heard.body, net.now)
        assert any(isinstance(note, Waits) for note in step.notes)
        state = step.state
    assert len(encode_state(state)) == size
    course.settle()
    ops = net.machines[1].state.ops
    assert ops == {}
    assert len(net.machines[0].state.inband) == 1


def test_what_was_sent_in_one_group_means_nothing_in_another() -> None:
    one, other = (
        Course(GroupScenario(members=3, ops=1, partitions=0, thefts=0, seed=seed)).net for seed in (1, 1)
    )
    machine = other.machines[1]
    machine.state = replace(machine.state, group=bytes(32))
    one.create(0, (1, 2))
    heard = next(each for each in one.overheard if isinstance(decode_body(each.body), Create))
    before = encode_state(machine.state)
    with pytest.raises(RemoteError):
        agreement.receive(machine.state, heard.device, heard.id, heard.body, other.now)
    assert encode_state(machine.state) == before
    step = agreement.receive(one.machines[1].state, heard.device, heard.id, heard.body, one.now)
    assert agreement.is_member(step.state)
