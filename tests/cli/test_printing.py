from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec
import pytest
import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.printing import Expired, Printer, history_text, time_limit
from linnet.node.control_types import (
    CaughtUpView,
    EndedView,
    EventView,
    HeartbeatView,
    ItemView,
    MissedView,
    SubscribedView,
    WarningView,
)
from linnet.node.known_people import Alarm

MISSED = MissedView("lt1", "lp1alice", "00", 4, 6, "gap_unfilled")


def event(text: str) -> EventView:
    return EventView("le1", "lt1", "lp1alice", "00", "message", 0, text.encode())


def test_events_go_out_and_the_rest_beside(capsys: pytest.CaptureFixture[str]) -> None:
    items: list[ItemView] = [SubscribedView(1, False), event("a"), HeartbeatView(), MISSED, event("b")]
    items += [EndedView(None)]
    with pytest.raises(typer.Exit) as exit:
        Printer(False, None, None).run(iter(items), None)
    assert exit.value.exit_code == 1, "something was missed"
    assert capsys.readouterr() == ("a\nb\n", "missed: number 4 to 6 of lp1alice: gap_unfilled\n")


def test_for_programs_both_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        Printer(True, None, None).run(iter([event("a"), MISSED]), None)
    out, err = capsys.readouterr()
    assert out.startswith('{"type":"event","id":"le1"')
    assert err.startswith('{"type":"missed"')


def test_it_ends_behind_the_last_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    items: Iterator[ItemView] = iter([event("a"), event("b"), event("c")])
    Printer(False, 2, None).run(items, None)
    assert capsys.readouterr().out == "a\nb\n"
    assert next(items) == event("c")


@pytest.mark.parametrize(
    ("reason", "code"), [("shutdown", ExitCode.NO_NODE), ("subscriber_slow", ExitCode.FAILED)]
)
def test_an_end_that_nobody_asked_for_is_told(reason: str, code: ExitCode) -> None:
    with pytest.raises(Failure, match=f"ended: {reason}") as failure:
        Printer(False, None, None).run(iter([EndedView(reason)]), None)
    assert failure.value.code is code


def test_where_a_history_begins() -> None:
    assert history_text(CaughtUpView(None, False, None), 0, 0) == "nothing is kept"
    assert history_text(CaughtUpView(None, False, "no_storage"), 0, 0) == (
        "nothing is kept; this is only what this node keeps: no storage node is known"
    )
    text = history_text(CaughtUpView(1_800_000_000.0, True, None), 2, 3)
    assert text.startswith("history begins 2027-01-")
    assert text.endswith("; older events were evicted; 2 of 5 events are shown")


def test_a_history_that_storage_nodes_did_not_answer_fails(capsys: pytest.CaptureFixture[str]) -> None:
    items: list[ItemView] = [event("a"), CaughtUpView(None, False, "timeout"), EndedView(None)]
    with pytest.raises(Failure, match="storage nodes are known, and none answered"):
        Printer(False, None, None, is_history=True).run(iter(items), None)
    Printer(False, None, None, is_history=True).run(iter([CaughtUpView(None, False, "no_storage")]), None)
    assert capsys.readouterr().out == "a\n"


def test_a_time_limit_interrupts_whatever_waits() -> None:
    with pytest.raises(Expired), time_limit(0.05):
        time.sleep(30)
    with time_limit(None):
        pass


def test_too_few_in_the_time_fails(capsys: pytest.CaptureFixture[str]) -> None:
    def slow() -> Iterator[ItemView]:
        yield event("a")
        time.sleep(30)

    with pytest.raises(Failure, match="1 of 2 events came"):
        Printer(False, 2, None).run(slow(), 0.05)


def test_a_warning_goes_beside_and_is_nothing_to_acknowledge(capsys: pytest.CaptureFixture[str]) -> None:
    class Told:
        items = 0

        def consumed(self, subscription: int, items: int) -> None:
            self.items += items

    warning = WarningView(Alarm.SAME_NAME, "lp1eve", "ada", "lp1ada")
    consumer = Told()
    items: list[ItemView] = [SubscribedView(1, True), warning, event("a"), warning, HeartbeatView()]
    Printer(False, None, consumer).run(iter(items), None)
    out, err = capsys.readouterr()
    assert (out, consumer.items) == ("a\n", 1)
    assert err.count("is called 'ada'") == 2
    Printer(True, None, None).run(iter([warning]), None)
    assert '{"type":"warning","alarm":"same_name","person":"lp1eve"' in capsys.readouterr().err


def test_what_is_sealed_and_cannot_be_read_is_told_beside_and_fails_unless_it_comes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sealed = msgspec.structs.replace(event(""), seq=4, unreadable="key_missing")
    Printer(False, 1, None).run(iter([sealed, event("rain")]), None)
    assert capsys.readouterr() == (
        "rain\n",
        "number 4 of lp1alice: cannot be read yet: its key is on the way\n",
    )
    with pytest.raises(typer.Exit) as exit:
        Printer(False, None, None).run(iter([sealed]), None)
    assert exit.value.exit_code == 1
    Printer(False, None, None, line=lambda each: each.unreadable or "").run(iter([sealed]), None)
    assert "key_missing" in capsys.readouterr().out
