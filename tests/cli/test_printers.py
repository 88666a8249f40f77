"""What printers share, and what each prints of streams, rooms and content."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import msgspec
import pytest
import typer
from msgspec import Struct

from linnet.api.content import ContentItemView, InGroupsView, MatchView, OverflowView
from linnet.api.errors import ControlError, ErrorView
from linnet.api.items import (
    Alarm,
    CaughtUpView,
    EndedView,
    EventView,
    HeartbeatView,
    ItemView,
    MissedView,
    StorageDiffersView,
    StorageToldView,
    SubscribedView,
    WarningView,
)
from linnet.cli.exits import ExitCode, Failure
from linnet.cli.printers import (
    Acknowledger,
    EventPrinter,
    Expired,
    HistoryPrinter,
    ItemPrinter,
    MatchPrinter,
    groups_text,
    history_text,
    match_line,
    time_limit,
)
from linnet.delivery.commands import Consumed


class Consumer:
    """Stands where the control client does; waits with its first answer until it is let go."""

    def __init__(self, error: ControlError | None = None) -> None:
        self.asked: list[int] = []
        self.first = threading.Event()
        self.go = threading.Event()
        self.error = error

    def ask(self, command: Consumed) -> None:
        assert command.subscription == 7
        self.asked.append(command.items)
        self.first.set()
        assert self.go.wait(10)
        if self.error is not None:
            raise self.error


def test_what_is_handled_meanwhile_goes_together() -> None:
    consumer = Consumer()
    acknowledging = Acknowledger(consumer, 7)
    acknowledging.handled()
    assert consumer.first.wait(10)
    for _ in range(5):
        acknowledging.handled()
    consumer.go.set()
    acknowledging.finish()
    assert consumer.asked == [1, 5]


def test_what_could_not_be_acknowledged_is_raised() -> None:
    consumer = Consumer(ControlError(404, ErrorView("not_found", "closed")))
    consumer.go.set()
    acknowledging = Acknowledger(consumer, 7)
    acknowledging.handled()
    with pytest.raises(ControlError):
        acknowledging.finish()
    with pytest.raises(ControlError):
        acknowledging.handled()


def test_nothing_handled_is_nothing_asked() -> None:
    consumer = Consumer()
    Acknowledger(consumer, 7).finish()
    assert consumer.asked == []


class Word(Struct):
    text: str
    lost: int = 0


Item = Word | SubscribedView | EndedView


class WordPrinter(ItemPrinter[Item]):
    called = ("word", "words")
    look = "linnet words"

    def _print(self, item: Item) -> None:
        match item:
            case Word(text, lost):
                self._lost += lost
                self._shown(item, text)
            case SubscribedView(number):
                self._began(number)
            case EndedView(reason):
                self._ended(reason)


class Listener:
    """Remembers what was acknowledged."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int]] = []

    def ask(self, command: Consumed) -> None:
        self.told.append((command.subscription, command.items))


def words(*texts: str) -> Iterator[Item]:
    yield SubscribedView(7, False)
    for text in texts:
        yield Word(text)


def test_as_many_are_printed_and_acknowledged_as_were_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    consumer = Listener()
    WordPrinter(False, 2, consumer).run(words("a", "b", "c"))
    assert capsys.readouterr().out == "a\nb\n"
    assert sum(items for _, items in consumer.told) == 2
    assert {subscription for subscription, _ in consumer.told} == {7}


def test_a_reader_of_the_output_that_is_gone_ends_it_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(text: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("linnet.cli.printers.say", gone)
    WordPrinter(False).run(words("one", "two"))
    assert capsys.readouterr().out == ""


def test_what_was_lost_is_the_exit_status() -> None:
    with pytest.raises(typer.Exit) as ended:
        WordPrinter(True).run(iter([Word("a", lost=3)]))
    assert ended.value.exit_code == ExitCode.FAILED


def test_an_end_with_a_reason_says_where_to_look() -> None:
    WordPrinter(False).run(iter([EndedView(None)]))
    with pytest.raises(Failure, match="it ended: forgotten; look at: linnet words"):
        WordPrinter(False).run(iter([EndedView("forgotten")]))
    with pytest.raises(Failure) as stopped:
        WordPrinter(False).run(iter([EndedView("shutdown")]))
    assert stopped.value.code == ExitCode.NO_NODE


MISSED = MissedView("lt1", "lp1alice", "00", 4, 6, "gap_unfilled")


def event(text: str) -> EventView:
    return EventView("le1", "lt1", "lp1alice", "00", "message", 0, text.encode())


def test_what_only_peers_claim_is_said_to_be_their_claim_and_is_no_loss(
    capsys: pytest.CaptureFixture[str],
) -> None:
    claimed = MissedView("lt1", "lp1alice", "00", 1, 2**40, "gap_unfilled", 1)
    EventPrinter(False).run(iter([event("a"), claimed, EndedView(None)]))
    said = capsys.readouterr()
    assert said.out == "a\n"
    assert "may lack number 1 to 1099511627776 of lp1alice: 1 peer claims so, and nobody has it" in said.err


def test_events_go_out_and_the_rest_beside(capsys: pytest.CaptureFixture[str]) -> None:
    items: list[ItemView] = [SubscribedView(1, False), event("a"), HeartbeatView(), MISSED, event("b")]
    items += [EndedView(None)]
    with pytest.raises(typer.Exit) as exit:
        EventPrinter(False).run(iter(items))
    assert exit.value.exit_code == 1, "something was missed"
    assert capsys.readouterr() == ("a\nb\n", "missed: number 4 to 6 of lp1alice: gap_unfilled\n")


def test_who_differs_is_told_beside_and_is_no_loss(capsys: pytest.CaptureFixture[str]) -> None:
    told = (StorageToldView("ld1one", 50), StorageToldView("ld1two", 12), StorageToldView("ld1six", None))
    differs = StorageDiffersView("lt1", "lp1alice", "00", 50, told, 2)
    EventPrinter(False).run(iter([event("a"), differs, EndedView(None)]))
    said = "ld1one says up to 50, ld1two says up to 12, ld1six has nothing; up to 50 were shown"
    more = "they differ about 2 further chains"
    assert capsys.readouterr() == (
        "a\n",
        f"storage nodes differ about the events of lp1alice: {said}; {more}\n",
    )


def test_for_programs_both_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        EventPrinter(True, None, None).run(iter([event("a"), MISSED]), None)
    out, err = capsys.readouterr()
    assert out.startswith('{"type":"event","id":"le1"')
    assert err.startswith('{"type":"missed"')


def test_it_ends_behind_the_last_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    items: Iterator[ItemView] = iter([event("a"), event("b"), event("c")])
    EventPrinter(False, 2, None).run(items, None)
    assert capsys.readouterr().out == "a\nb\n"
    assert next(items) == event("c")


@pytest.mark.parametrize(
    ("reason", "code"), [("shutdown", ExitCode.NO_NODE), ("subscriber_slow", ExitCode.FAILED)]
)
def test_an_end_that_nobody_asked_for_is_told(reason: str, code: ExitCode) -> None:
    with pytest.raises(Failure, match=f"ended: {reason}") as failure:
        EventPrinter(False, None, None).run(iter([EndedView(reason)]), None)
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
        HistoryPrinter(False).run(iter(items))
    HistoryPrinter(False).run(iter([CaughtUpView(None, False, "no_storage")]))
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
        EventPrinter(False, 2, None).run(slow(), 0.05)


def test_a_warning_goes_beside_and_is_nothing_to_acknowledge(capsys: pytest.CaptureFixture[str]) -> None:
    class Told:
        items = 0

        def ask(self, command: Consumed) -> None:
            self.items += command.items

    warning = WarningView(Alarm.SAME_NAME, "lp1eve", "ada", "lp1ada")
    consumer = Told()
    items: list[ItemView] = [SubscribedView(1, True), warning, event("a"), warning, HeartbeatView()]
    EventPrinter(False, None, consumer).run(iter(items), None)
    out, err = capsys.readouterr()
    assert (out, consumer.items) == ("a\n", 1)
    assert err.count("is called 'ada'") == 2
    EventPrinter(True, None, None).run(iter([warning]), None)
    assert '{"type":"warning","alarm":"same_name","person":"lp1eve"' in capsys.readouterr().err


def test_what_is_sealed_and_cannot_be_read_is_told_beside_and_fails_unless_it_comes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sealed = msgspec.structs.replace(event(""), seq=4, unreadable="key_missing")
    EventPrinter(False, 1, None).run(iter([sealed, event("rain")]), None)
    assert capsys.readouterr() == (
        "rain\n",
        "number 4 of lp1alice: cannot be read yet: its key is on the way\n",
    )
    with pytest.raises(typer.Exit) as exit:
        EventPrinter(False, None, None).run(iter([sealed]), None)
    assert exit.value.exit_code == 1
    printer = EventPrinter(False)
    printer.line = lambda each: each.unreadable or ""
    printer.run(iter([sealed]))
    assert "key_missing" in capsys.readouterr().out


MATCH = MatchView(1, "le1x", "lp1x", "a=1/b", 0.0, 2, b"two\nlines", "two\nlines")


class MatchConsumer:
    """Counts what is acknowledged."""

    def __init__(self) -> None:
        self.items = 0

    def ask(self, command: Consumed) -> None:
        assert command.subscription == 7
        self.items += command.items


def test_matches_go_to_standard_output_and_the_rest_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    items: list[ContentItemView] = [SubscribedView(7, True), MATCH, HeartbeatView(), MATCH]
    consumer = MatchConsumer()
    MatchPrinter(False, None, consumer).run(iter(items))
    printed = capsys.readouterr()
    assert printed.out == "a=1/b\ttwo\\nlines\n" * 2
    assert printed.err == "resumed\n"
    assert consumer.items == 2


def test_what_was_lost_makes_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught:
        MatchPrinter(True).run(iter([OverflowView(1, 4, "queue_full")]))
    assert caught.value.exit_code == ExitCode.FAILED
    assert '"count":4' in capsys.readouterr().err


def test_an_end_that_nobody_asked_for_is_an_error() -> None:
    with pytest.raises(Failure, match="it ended: shutdown") as caught:
        MatchPrinter(False).run(iter([EndedView("shutdown")]))
    assert caught.value.code is ExitCode.NO_NODE


def test_a_line_shows_attributes_and_what_of_the_body_is_text() -> None:
    assert match_line(MatchView(1, "", "", "a", 0.0, 0, b"", "")) == "a"
    assert match_line(MatchView(1, "", "", "a", 0.0, 0, b"\xff\x00", None)) == "a\t2 bytes"
    assert match_line(MatchView(1, "", "", "a", 0.0, 0, b"\x1b[2J", "\x1b[2J")) == "a\t\\x1b[2J"


def test_who_is_in_no_group_is_told_so_and_what_comes_of_it() -> None:
    assert groups_text(InGroupsView(0, 0, 0, 60.0)) == (
        "in no group: nobody serves one for it; "
        "who opens one later is found and joined: this node looks again every 60 s"
    )
    assert groups_text(InGroupsView(2, 1, 1, 900.0)) == (
        "in 2 groups; 1 group did not take it; 1 board did not answer; "
        "who opens more later is found and joined: this node looks again every 900 s"
    )
