"""Calls are counted as they are made, by whoever is watched."""

from __future__ import annotations

import sys
from collections import Counter

from linnet.groups.primitives import hpke_open, hpke_seal, key_pair
from linnet.lab.studies.groups import tallying
from linnet.lab.studies.groups.operations import Stage
from linnet.lab.studies.groups.tallying import TalliedCircle, tallied
from linnet.lab.studies.groups.workload import ADD, SINGLE, UPDATE, Case
from linnet.sim.seeded_random import SeededEntropy


def test_one_sealed_message_counted_by_hand() -> None:
    entropy = SeededEntropy(1, "tally")
    pair = key_pair(entropy)
    sealing, opening = Counter[str](), Counter[str]()
    with tallied(sealing):
        sealed = hpke_seal(pair.public, b"", b"text", entropy)
    with tallied(opening):
        hpke_open(pair.secret, b"", sealed)
    hkdf = 3  # shared secret, key, nonce
    assert sealing == {
        tallying.KEY_GENERATIONS: 1,
        tallying.AGREEMENTS: 1,
        tallying.EXPANSIONS: hkdf,
        tallying.SEALED: 1,
    }
    assert opening[tallying.AGREEMENTS] == opening[tallying.OPENED] == 1
    assert sys.getprofile() is None


def test_an_update_costs_its_sender_by_members_and_others_once() -> None:
    circle = TalliedCircle(6, 3, [0, 1])
    Stage(circle, Case(UPDATE, SINGLE, 1, 6, 0, 3)).run()
    sender, other = circle.tallies[0], circle.tallies[1]
    assert sender[tallying.AGREEMENTS] == sender[tallying.SEALED] == 5
    assert sender[tallying.KEY_GENERATIONS] == 3 * 5 + 1 + 16  # and the one-time prekeys after it
    assert (other[tallying.AGREEMENTS], other[tallying.OPENED]) == (1, 1)
    assert (sender[tallying.SIGNATURES], sender[tallying.CHECKS]) == (2, 5)
    assert (other[tallying.SIGNATURES], other[tallying.CHECKS]) == (1, 6)


def test_a_newcomer_is_told_by_everybody() -> None:
    circle = TalliedCircle(6, 3, [5])
    Stage(circle, Case(ADD, SINGLE, 1, 5, 0, 3)).run()
    newcomer = circle.tallies[5]
    assert newcomer[tallying.AGREEMENTS] == 4 * 5
    assert newcomer[tallying.OPENED] == 5 + 1  # and the blob
