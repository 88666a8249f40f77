"""Known answers: the same entropy makes the same bytes, and the same bytes are understood as ever.

`make_vectors` tells what is in the files. The bodies are taken apart here once more, by their description
(`linnet.groups.bodies`) and not with the code under test.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest
from tests.groups.make_vectors import FILES, Session, read, vector

from linnet.sim.seeded_random import SeededEntropy

DIRECT = {0: 125, 1: 117, 2: 121}
"""Bytes of a direct message beside its payload, by its first byte."""


class Told(SeededEntropy):
    """The entropy that stands in a file."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0, "")
        self.data = data

    def __call__(self, size: int) -> bytes:
        drawn, self.data = self.data[:size], self.data[size:]
        assert len(drawn) == size
        return drawn


class Replay(Session):
    """A session whose luck stands in its file."""

    def __init__(self, names: str, frozen: dict[str, Any]) -> None:
        self.frozen = frozen
        super().__init__(names, 0)

    def _entropy(self, seed: int, name: str) -> SeededEntropy:
        super()._entropy(seed, name)
        steps = (step for step in self.frozen["steps"] if step["by"] == name)
        return Told(bytes.fromhex("".join(step["entropy"] for step in steps)))


def names_of(frozen: dict[str, Any]) -> str:
    return "".join(frozen["devices"])


@pytest.mark.parametrize("name", FILES)
def test_the_same_entropy_makes_the_same_bytes(name: str) -> None:
    frozen = read(name)
    made = vector(names_of(frozen), frozen["script"])
    for known, step in zip(frozen["steps"], made["steps"], strict=True):
        assert step == known
    assert made == frozen


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_all_that_a_session_needs(name: str) -> None:
    frozen = read(name)
    world = Replay(names_of(frozen), frozen)
    for line in frozen["script"]:
        world.follow(line)
    bodies = [packet.body.hex() for packet in world.transcript]
    assert bodies == [step["body"] for step in frozen["steps"]]
    assert all(peer.entropy.data == b"" for peer in world.peers.values() if isinstance(peer.entropy, Told))


def after_directs(body: bytes, at: int, count: int, payload: int = 32, named: int = 0) -> int:
    """Where so many direct messages end, each with the id of its recipient before it or not."""
    for _ in range(count):
        at += named
        at += DIRECT[body[at]] + payload
    return at


def u16(body: bytes, at: int) -> int:
    return int.from_bytes(body[at : at + 2], "big")


def end_of(kind: int, body: bytes) -> int:
    """Where a body ends by its description."""
    match kind:
        case 1:
            count = u16(body, 74)
            return after_directs(body, 76 + 72 * count, count - 1)
        case 2:
            return after_directs(body, 60, u16(body, 58))
        case 3:
            at = 60 + 16 * u16(body, 58)
            return after_directs(body, at + 2, u16(body, at))
        case 4:
            at = after_directs(body, 26 + 32 + 40 + 32 + 16 + 32, 1, payload=64)
            return at + 4 + int.from_bytes(body[at : at + 4], "big")
        case 5:
            at = 28
            for _ in range(u16(body, 26)):
                assert body[at] in (1, 2)
                at = after_directs(body, at + 35, u16(body, at + 33), named=16)
            return at
        case 7:
            return 26
        case _:
            at = 26 + 32 + 4 + 8 + 8 + 32
            return at + 2 + 36 * u16(body, at)


@pytest.mark.parametrize("name", FILES)
def test_bodies_follow_their_description(name: str) -> None:
    kinds = {"create": 1, "update": 2, "remove": 3, "add": 4, "acks": 5, "leave": 7, "keys": 8}
    count: dict[bytes, int] = {}
    said: dict[bytes, tuple[int, int]] = {}
    for step in read(name)["steps"]:
        body = bytes.fromhex(step["body"])
        if "says" in step:
            version, member, epoch, index, _ = struct.unpack(">B16sII4s", bytes.fromhex(step["clear"]))
            before = said.get(member)
            assert (version, epoch <= count[member], len(body)) == (1, True, 64 + 16)
            assert index == (before[1] + 1 if before is not None and before[0] == epoch else 0)
            said[member] = (epoch, index)
            continue
        version, kind, member, number, messages = struct.unpack(">BB16sII", body[:26])
        assert (version, kind, end_of(kind, body)) == (1, kinds[step["operation"]], len(body))
        if kind != 8:
            count[member] = count.get(member, 0) + 1
            assert number == count[member]
            assert messages == (said[member][1] + 1 if member in said else 0)
            if step["epoch_sha256"] is not None:
                said.pop(member, None)
