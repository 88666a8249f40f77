"""Write tests/groups/vectors/*.json: scripted sessions of a group, for us and for other programs.

Run it only when the format changes, which is a new version of the wire:
``.venv/bin/python -m tests.groups.make_vectors``; with ``--print`` it shows what it would write.

A file has the script of its session, and then what each step of a device was: the entropy that it drew in
this order, the body of the event (of a message: the clear bytes, and the sealed ones), the SHA-256 of the key
with which its epoch begins or, of a message, of its 44 bytes of key and nonce. The SHA-256 of all states are
at the end. Ids of events are made up, the group's id and the devices are given. A new file begins with a
script and the names of its devices.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from tests.groups.group_world import GROUP, START, GroupWorld, Packet, Peer

from linnet.groups import agreement
from linnet.groups.chains import message_key
from linnet.groups.state import GroupConfig, encode_state
from linnet.sim.seeded_random import SeededEntropy

VECTORS = Path(__file__).parent / "vectors"
ONE_TIME = 3
"""One-time prekeys of each device."""
FILES = {path.stem: path for path in sorted(VECTORS.glob("*.json"))}


def read(name: str) -> dict[str, Any]:
    """A file, by its name."""
    found: dict[str, Any] = json.loads(FILES[name].read_text())
    return found


class Noted(SeededEntropy):
    """Entropy that remembers what was drawn."""

    def __init__(self, seed: int, name: str) -> None:
        super().__init__(seed, name)
        self._drawn: list[bytes] = []

    def __call__(self, size: int) -> bytes:
        drawn = super().__call__(size)
        self._drawn.append(drawn)
        return drawn

    def take(self) -> str:
        """All that was drawn since this was asked last."""
        drawn, self._drawn = b"".join(self._drawn), []
        return drawn.hex()


class Session(GroupWorld):
    """A world that follows a script and writes down what its devices did."""

    renews = False

    def __init__(self, names: str, seed: int) -> None:
        self.steps: list[dict[str, Any]] = []
        self.luck: dict[str, Noted] = {}
        super().__init__(names, seed, GroupConfig(one_time=ONE_TIME))

    def _entropy(self, seed: int, name: str) -> SeededEntropy:
        self.luck[name] = Noted(seed, name)
        return self.luck[name]

    def send(self, name: str, draft: agreement.Draft, quiet: bool = False) -> Packet:
        """See `GroupWorld.send`."""
        packet = super().send(name, draft, quiet)
        chain = self.peers[name].state.sending
        begins = chain is not None and chain.epoch == self.peers[name].state.cseq
        self.steps.append(
            {
                "by": name,
                "operation": type(draft.content).__name__.lower(),
                "id": packet.id.hex(),
                "entropy": self.luck[name].take(),
                "body": packet.body.hex(),
                "epoch_sha256": _sha256(chain.key) if chain is not None and begins else None,
            }
        )
        return packet

    def say(self, name: str, text: str) -> Packet:
        """See `GroupWorld.say`."""
        key = next_key(self.peers[name])
        packet = super().say(name, text)
        self.steps.append(
            {
                "by": name,
                "says": text,
                "id": packet.id.hex(),
                "entropy": self.luck[name].take(),
                "clear": packet.clear.hex(),
                "body": packet.body.hex(),
                "key_sha256": _sha256(key),
            }
        )
        return packet

    def follow(self, line: str) -> None:
        """One line of a script."""
        what, *how = line.split()
        match what, how:
            case "create", [name, others]:
                self.create(name, others)
            case "add", [name, who]:
                self.add(name, who)
            case "remove", [name, *whom]:
                self.remove(name, *whom)
            case "update", [name]:
                self.update(name)
            case "acks", [name]:
                self.acks(name)
            case "leave", [name]:
                self.send(name, agreement.draft_leave(self.peers[name].state))
            case "keys", [name]:
                self.publish_keys(name)
            case "say", [name, text]:
                self.say(name, text)
            case "deliver", [sender, to]:
                self.deliver(sender, to)
            case "settle", []:
                self.settle()
            case _:
                raise ValueError(line)


def next_key(peer: Peer) -> bytes:
    """Key and nonce of the next message of a device."""
    chain = peer.state.sending
    assert chain is not None
    return message_key(GROUP, peer.id, chain.epoch, chain.index, chain.key)[0]


def vector(names: str, script: list[str]) -> dict[str, Any]:
    """What the file of a script should hold."""
    world = Session(names, seed=1)
    for line in script:
        world.follow(line)
    return {
        "group": GROUP.hex(),
        "time": START,
        "one_time": ONE_TIME,
        "devices": {
            name: [peer.device.author.hex(), peer.device.device.hex()] for name, peer in world.peers.items()
        },
        "script": script,
        "steps": world.steps,
        "read": {name: list(peer.read.values()) for name, peer in world.peers.items()},
        "state_sha256": {name: _sha256(encode_state(peer.state)) for name, peer in world.peers.items()},
    }


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def main() -> None:
    """Write all files, or show them."""
    for name, path in FILES.items():
        known = read(name)
        text = json.dumps(vector("".join(known["devices"]), known["script"]), indent=1) + "\n"
        if "--print" in sys.argv[1:]:
            sys.stdout.write(text)
        else:
            path.write_text(text)


if __name__ == "__main__":
    main()
