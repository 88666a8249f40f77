"""What is consumed is gone, and what is too old goes with time."""

from __future__ import annotations

from msgspec.structs import replace
from tests.groups.group_world import GROUP, GroupWorld, Packet, Peer, act, start

from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.groups.agreement import Draft
from linnet.groups.chains import OLD_SECONDS
from linnet.groups.notes import Ignored
from linnet.groups.state import GroupConfig, encode_state
from linnet.groups.work import member_id, member_secrets


def secrets_in(peer: Peer) -> set[bytes]:
    """What of a state must not outlive its use: ratchets, channel keys, chain keys, shares."""
    state, found = peer.state, set(peer.state.ratchets.values())
    for channel in state.channels.values():
        found |= {*channel.own, *([channel.received] if channel.received else [])}
    found |= {chain.key for chains in state.chains.values() for chain in chains.chains}
    found |= {key for chains in state.chains.values() for c in chains.chains for key in c.skipped.values()}
    found |= {share for op in state.ops.values() for share in op.awaiting.values() if share}
    found |= {owed.secret for owed in state.owed if owed.secret}
    if state.sending is not None:
        found.add(state.sending.key)
    return found


class Recording(GroupWorld):
    """A world that remembers the seeds of all drafts."""

    def __init__(self, names: str) -> None:
        self.seeds: list[tuple[Packet, bytes]] = []
        super().__init__(names)

    def send(self, name: str, draft: Draft, quiet: bool = False) -> Packet:
        packet = super().send(name, draft, quiet)
        if draft.seed:
            self.seeds.append((packet, draft.seed))
        return packet


def test_no_state_holds_what_was_consumed() -> None:
    world = Recording("ABCD")
    world.create("A", "BC")
    world.settle()
    ever: dict[str, set[bytes]] = {name: set() for name in world.peers}

    def remember() -> None:
        for name, peer in world.peers.items():
            ever[name] |= secrets_in(peer)

    for round in range(3):
        remember()
        for name in "ABC":
            world.say(name, f"{name}{round}")
            remember()
        world.update("ABC"[round])
        remember()
        world.settle()
    world.add("B", "D")
    remember()
    world.settle()
    remember()
    for name in "ABCD":
        world.update(name)
        world.settle()
    for name, peer in world.peers.items():
        data = encode_state(peer.state)
        now = secrets_in(peer)
        consumed = [secret for secret in ever[name] if secret not in now]
        assert len(consumed) > 5
        assert not any(secret in data for secret in consumed)
        members = tuple(agreement.members(peer.state))
        for packet, seed in world.seeds:
            assert seed not in data
            shares = member_secrets(seed, GROUP, packet.id, members)
            assert not any(share in data for share in shares.values())


def test_a_member_is_another_with_each_nonce() -> None:
    device = GroupWorld("A").peers["A"].device
    ids = {
        member_id(GROUP, device, b"i" * 32, b"n" * 16),
        member_id(GROUP, device, b"i" * 32, b"m" * 16),
        member_id(GROUP, device, b"j" * 32, b"n" * 16),
        member_id(GROUP[::-1], device, b"i" * 32, b"n" * 16),
    }
    assert len(ids) == 4
    assert all(len(each) == 16 for each in ids)


def test_keys_of_old_epochs_go_with_time() -> None:
    world = start("AB")
    lost = world.say("A", "never comes")
    world.links["A", "B"].clear()
    world.update("A")
    world.settle()
    state = world.peers["B"].state
    assert agreement.forward_debt(state) == 1
    assert agreement.late_messages(state) == 1
    assert agreement.forward_debt(agreement.tend(state, world.now + OLD_SECONDS - 1)) == 1
    assert agreement.forward_debt(agreement.tend(state, world.now + OLD_SECONDS + 1)) == 0
    assert lost.id not in world.peers["B"].read


def test_of_a_removed_member_no_message_is_missed_that_nobody_knows_of() -> None:
    world = start("ABC")
    world.say("C", "one")
    world.say("C", "two")
    act(world, "* A-C *")
    state = world.peers["B"].state
    assert agreement.forward_debt(state) == 1  # A chain is kept for what may still come.
    assert agreement.late_messages(state) == 0


def test_a_removed_member_is_forgotten_after_a_while() -> None:
    world = start("ABX", config=GroupConfig(one_time=8, linger=1000.0))
    gone = world.peers["X"].id
    late = world.update("X")
    world.remove("A", "X")
    for sender, to in (("A", "B"), ("A", "X")):
        world.deliver(sender, to)
    world.acks("B")
    world.deliver("B", "A")
    state = world.peers["A"].state
    assert gone in state.closed
    kept = agreement.tend(state, world.now + 1990)
    assert kept.history.member(gone) is not None
    rid = agreement.tend(state, world.now + 6000)
    assert rid.history.member(gone) is None
    assert gone not in rid.clock
    assert rid.forgotten == (gone,)
    step = agreement.receive(rid, late.device, late.id, late.body, world.now + 6000)
    assert step.notes == (Ignored(Reason.UNKNOWN_MEMBER, "of a member that is long gone"),)
    assert replace(step.state) == rid
