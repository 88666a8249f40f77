"""Random courses of operations, deliveries and partitions: in the end all agree, and have read all."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from tests.groups.group_world import GroupWorld, Packet, Peer

from linnet.core.errors import Refused
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.groups.labels import Device, MemberId
from linnet.groups.state import encode_state

RUNS = 1_000 if os.environ.get("LINNET_SOAK") else 12
NAMES = "ABCDEFGH"
FINE = {Reason.DUPLICATE, Reason.MISSING_PREKEYS, Reason.NEEDS_HEAL, Reason.NOT_ALLOWED}
"""Why an act may be refused here: somebody chose it by chance."""


class Course:
    """One random run."""

    def __init__(self, seed: int, steps: int = 60, restores: bool = False) -> None:
        self.rng = Random(seed)
        self.world = GroupWorld(NAMES, seed)
        self.world.restores = restores
        self.said: dict[EventId, tuple[Packet, dict[Device, MemberId]]] = {}
        self.sides = dict.fromkeys(NAMES, 0)
        self.world.create("A", NAMES[1 : self.rng.randint(2, 5)])
        if self.rng.random() < 0.7:
            self.world.settle(self.rng)
        for _ in range(steps):
            self.step()
        self.world.settle(self.rng)
        self.reconcile()

    def here(self) -> list[Peer]:
        return [peer for peer in self.world.peers.values() if agreement.is_member(peer.state)]

    def step(self) -> None:
        rng = self.rng
        if rng.random() < 0.1:
            self.sides = {name: rng.randint(0, 1) for name in NAMES}
        if rng.random() < 0.55:
            self.deliver()
        elif self.here():
            peer = rng.choice(self.here())
            self.world.acks(peer.name)
            try:
                self.act(peer)
            except Refused as refusal:
                assert refusal.reason in FINE  # noqa: PT017 - the refusal is no failure

    def deliver(self) -> None:
        sides = self.sides
        ready = [
            ends for ends, queue in self.world.links.items() if queue and sides[ends[0]] == sides[ends[1]]
        ]
        if ready:
            sender, to = self.rng.choice(ready)
            for _ in range(self.rng.randint(1, 3)):
                self.world.deliver(sender, to)
            if self.rng.random() < 0.7:
                self.world.acks(to)

    def act(self, peer: Peer) -> None:
        act, world = self.rng.random(), self.world
        members = agreement.members(peer.state)
        inside = [
            each for each in world.peers.values() if each.device in members.values() and each is not peer
        ]
        outside = [each for each in world.peers.values() if each is not peer and each not in inside]
        if act < 0.25:
            if agreement.needs_heal(peer.state):
                world.update(peer.name)
            packet = world.say(peer.name, f"{peer.name}{len(self.said)}")
            self.said[packet.id] = packet, {device: member for member, device in members.items()}
        elif act < 0.5:
            world.update(peer.name)
        elif act < 0.78 and outside:
            newcomer = self.rng.choice(outside)
            world.publish_keys(newcomer.name)
            world.add(peer.name, newcomer.name)
        elif inside:
            whom = self.rng.sample(inside, min(len(inside), self.rng.choice((1, 1, 2))))
            world.remove(peer.name, *(each.name for each in whom))

    def reconcile(self) -> None:
        """As a room does: whoever is listed and not there, or there twice, is removed."""
        stays = {peer.device: peer for peer in self.world.peers.values()}
        for peer in self.here():
            listed = agreement.members(peer.state)
            ghosts = [member for member, device in listed.items() if stays[device].state.me != member]
            if ghosts and agreement.is_member(peer.state):
                world = self.world
                draft = agreement.draft_remove(
                    peer.state,
                    ghosts,
                    world.means(peer),
                )
                world.send(peer.name, draft)
                world.settle(self.rng)

    def check(self) -> None:
        here = self.here()
        for peer in here:
            state, first = peer.state, here[0].state
            assert agreement.members(state) == agreement.members(first)
            assert set(agreement.members(state).values()) == {each.device for each in here}
            assert not agreement.is_desynced(state)
            assert agreement.pending_by_member(state) == {}
            for member in agreement.members(state):
                assert state.ratchets[member] == first.ratchets[member]
        for packet, view in self.said.values():
            for peer in self.world.peers.values():
                was_meant = peer.device in view and peer.name != packet.sender
                assert was_meant or packet.id not in peer.read
                now = agreement.members(peer.state)
                if was_meant and peer.state.me == view[peer.device] and view[packet.device] in now:
                    assert peer.read.get(packet.id) == packet.text


@pytest.mark.parametrize("seed", range(RUNS))
def test_all_agree_in_the_end_and_have_read_what_was_meant_for_them(seed: int) -> None:
    Course(seed, restores=seed % 4 == 0).check()


def fingerprint() -> str:
    course = Course(3)
    digest = hashlib.sha256()
    for packet in course.world.transcript:
        digest.update(packet.id + packet.clear + packet.body)
    for peer in course.world.peers.values():
        digest.update(encode_state(peer.state))
    return digest.hexdigest()


def test_a_seed_replays_in_another_process() -> None:
    here = str(Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {here!r}); import test_random_runs as t; print(t.fingerprint())"
    prints = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert prints == {fingerprint()}
