"""Two nodes without a tracker: what the command line shows of them, of trust and of privacy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp
from pathlib import Path

import pytest
from tests.cli.shell import Linnet
from tests.cli.village import LIMIT, up

from linnet.cli.overlay import facts, intersection_rows, odds_text, privacy_lines, ring_rows, sure_text
from linnet.core.ids import PeerId, TopicId
from linnet.identity.text import Sort, device_text, to_text, topic_text
from linnet.net.clock import Clock
from linnet.overlay.gossip.commands import RingStatus, TrackerlessStatus
from linnet.overlay.gossip.privacy_budget import PrivacyBudget
from linnet.store.memory import MemoryStore


def _until(look: Callable[[], bool]) -> None:
    clock = Clock()
    limit = clock.now() + LIMIT
    while not look():
        assert clock.now() < limit


def test_two_nodes_find_each_other_in_a_stream_and_say_so(tmp_path: Path) -> None:
    with (
        up(tmp_path / "ada", "--overlay", "ring", "--store", "tea") as ada,
        up(tmp_path / "bea", "--bootstrap", ada.address, "--store", "tea") as bea,
    ):
        own = {each: each.address.partition("@")[0] for each in (ada, bea)}
        _until(lambda: _neighbors(ada) == [own[bea]] and _neighbors(bea) == [own[ada]])
        said = ada.ok("overlay", "status")
        assert "known          1 node\n" in said
        (line,) = [each for each in said.splitlines() if each.startswith("tea ")]
        assert own[bea][:13] in line
        assert "overlay     ring, without trackers" in ada.ok("status")
        assert ada.json("status")["streams"][0]["overlay"] == "ring"
        checks = {check["name"]: check for check in ada.json("doctor")["checks"]}
        assert checks["ring"]["ok"]
        assert "trackers" not in checks
        ada.ok("publish", "tea", "hello")
        assert (
            bea.ok("subscribe", "tea", "--from", "beginning", "--count", "1", "--timeout", "20") == "hello\n"
        )


def test_one_that_knows_nobody_is_told_how_to_begin(tmp_path: Path) -> None:
    with up(tmp_path / "ada", "--overlay", "ring") as ada:
        assert "--bootstrap KEY@HOST:PORT" in ada.run("doctor").stdout
        assert "tracker" not in ada.ok("peers")
        assert "no tracker is known" in ada.fails(1, "stream", "overlay", "tea", "tracker")
        assert ada.ok("stream", "overlay", "tea", "ring") == "tea stays with overlay ring\n"
        assert ada.json("stream", "overlay", "tea", "default")["overlay"] == "ring"


def test_a_node_with_trackers_alone_has_none(running: Linnet) -> None:
    assert "linnet up --overlay ring" in running.fails(1, "overlay", "status")


def test_a_stranger_s_name_of_a_room_does_not_move_the_terminal() -> None:
    a, b, c, d = (PeerId(bytes([each]) * 32) for each in b"abcd")
    topic = TopicId(b"t" * 32)
    ring = RingStatus(topic, 3, (a,), (b, c), (d,), 1, "a\x1b[2Jb")
    reply = TrackerlessStatus(12, (a,), (b,), (c,), 4, 2, (ring, RingStatus(topic, 0, (), (), (), 0)), 5, 2)
    shown = [[device_text(each)[:13] for each in some] for some in ((c, b, a), (d,))]
    assert ring_rows(reply)[0] == (r"a\x1b[2Jb", 3, *shown, 1)
    assert ring_rows(reply)[1][0] == topic_text(topic)
    assert ("intersections", "5, 2 of them with nothing in common") in facts(reply)


def _neighbors(shell: Linnet) -> list[str]:
    return [peer for ring in shell.json("overlay", "status")["rings"] for peer in ring["neighbors"]]


FRIEND = to_text(Sort.DEVICE, b"f" * 32)


OTHER = to_text(Sort.DEVICE, b"o" * 32)


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Linnet]:
    with up(tmp_path_factory.mktemp("trust") / "ring", "--overlay", "ring") as shell:
        yield shell


def test_trust_is_added_listed_and_removed(ring: Linnet) -> None:
    assert "you trust no device" in ring.ok("trust", "list")
    assert ring.ok("trust", "add", f"{FRIEND}@192.0.2.7:1", "--value", "0.5") == f"trust {FRIEND} with 0.5\n"
    ring.ok("trust", "add", OTHER)
    assert ring.json("trust", "list") == {
        "devices": [{"device": OTHER, "value": 1.0}, {"device": FRIEND, "value": 0.5}]
    }
    shown = ring.ok("trust", "list").splitlines()[2:]
    assert [line.split() for line in shown] == [[OTHER, "1"], [FRIEND, "0.5"]]
    assert ring.ok("trust", "remove", OTHER) == f"no longer trust {OTHER}\n"
    assert ring.json("trust", "remove", FRIEND) == {"devices": []}


def test_what_is_wrong_is_told(ring: Linnet, running: Linnet, tmp_path: Path) -> None:
    assert "above 0, at most 1" in ring.fails(2, "trust", "add", FRIEND, "--value", "0")
    assert "above 0, at most 1" in ring.fails(2, "trust", "add", FRIEND, "--value", "nan")
    assert "some are missing" in ring.fails(2, "trust", "add", FRIEND[:-4])
    assert "no trust was set in this device" in ring.fails(1, "trust", "remove", OTHER)
    assert "linnet up --overlay ring" in running.fails(1, "trust", "list")
    assert "start one with: linnet up" in Linnet(tmp_path / "none").fails(69, "trust", "list")


A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)


def test_a_node_that_told_nothing_says_so_and_any_node_can_be_asked(running: Linnet) -> None:
    assert running.ok("privacy").splitlines() == [
        "filters: none was released; nobody could tell from one what you are interested in",
        "intersections: none; nobody could test topics against yours",
        "local networks: this node did not show itself on any",
        "proxies: none serves this node",
        "addresses: nobody was told where you may be dialled, nor where others may",
        "members: whoever is in a topic with you knows so; that is not counted here",
    ]
    assert running.json("privacy")["epsilon"] == 0


def test_all_that_was_told_in_plain_words() -> None:
    budget = PrivacyBudget(MemoryStore().cells)
    budget.enter_release(2952, 3.0, 1_800_000_000.0)
    first = privacy_lines(budget.report())
    assert "1 randomised filter of your topics" in first[0]
    assert "odds of at most 20 to 1 whether you are in it (if it was even before: 95.3 % sure)" in first[1]
    assert "learns nothing of it" in first[2]
    assert "answers to searches" not in first[0]
    budget.enter_answers(2952, 3.0, 1_800_000_100.0)
    answered = privacy_lines(budget.report())
    assert "and answers to searches, which are as noisy" in answered[0]
    assert (
        "odds of at most 403 to 1 whether you are in it (if it was even before: 99.8 % sure)" in answered[1]
    )
    budget.enter_release(2953, 3.0, 1_800_604_800.0)
    budget.enter_intersection(A, 5, 2, 30.0, tested=16)
    budget.enter_intersection(B, 20, 0, 31.0, tested=64)
    budget.enter_announcement(b"n", 40.0)
    budget.enter_service(B, TopicId(b"t" * 32), 50.0)
    budget.enter_address(A, True, 60.0)
    budget.enter_address(A, False, 61.0)
    budget.enter_address(B, True, 62.0)
    view = budget.report()
    said = "\n".join(privacy_lines(view))
    assert "2 randomised filters" in said
    assert "2 devices in a topic with you learned where you may be dialled, and 1 device where others" in said
    assert [(each.peer, each.own, each.others) for each in view.addresses] == [
        (A, 1, 1),
        (B, 1, 0),
    ]
    assert "epsilon 9 in all" in said
    assert "at most 8,103 to 1 (if it was even before: all but certain)" in said
    assert "2 private intersections with 2 peers" in said
    assert "none could ask about more than 64 topics" in said
    assert "shown on 1 network, 1 time: that a node is there, and no topic" in said
    assert f"{device_text(B)} knows your address and 1 topic that it serves you" in said
    assert [row[0] for row in intersection_rows(view)] == [device_text(B), device_text(A)]
    assert "more than one" not in said
    budget.enter_release(2953, 3.0, 1_800_604_801.0)
    assert "1 week saw more than one, which should not be" in "\n".join(privacy_lines(budget.report()))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3.0, 6.0])
def test_a_promise_is_never_too_good(epsilon: float) -> None:
    said = sure_text(epsilon)
    assert float(said.removesuffix(" % sure")) / 100 >= 1 / (1 + exp(-epsilon))


def test_what_is_certain_is_called_so() -> None:
    assert sure_text(10.0) == "all but certain"
    assert odds_text(exp(30.0)) == "a million to 1 and more"
