"""A conversation in a room: what is typed, what comes in, and the marks of what was sent.

Reading blocks and looking at the ledger takes turns, so each has a thread and a client of its own.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.printing import LATE
from linnet.cli.room import ticks
from linnet.cli.room.alarms import alarm_text
from linnet.cli.room.names import Names
from linnet.cli.room.wording import event_line
from linnet.core.errors import LinnetError
from linnet.core.reasons import Reason
from linnet.node.control_types import (
    CaughtUpView,
    EndedView,
    EventView,
    InsertedView,
    ItemView,
    OverdueView,
    SubscribedView,
    WarningView,
)

if TYPE_CHECKING:
    from linnet.node.client import ControlClient
    from linnet.node.room_types import EventFatesView

LOOK_PERIOD = 1.0
"""Seconds between looks at the ledger, while something is under way."""

MARKED = 1000
"""Messages of ours whose marks are looked up when the conversation begins."""

LAST_WORDS = 5.0
"""Seconds that what was sent last has to come back before the conversation ends."""

_SHOWN_CHARS = 40
HELP = f"""\
/members       who is here
/invite        an invitation to hand over
/ledger        at whom your messages have arrived
/quit          leave the conversation; you stay in the room
//…            say something that begins with a slash
{ticks.KEY}
{LATE} came late: it belongs further up"""


class Conversation:
    """What happens between a screen and a room."""

    def __init__(
        self,
        open_client: Callable[[], ControlClient],
        room: str,
        own: str,
        show: Callable[[str], None],
        as_json: bool = False,
    ) -> None:
        self._room = room
        self._show = show
        self._as_json = as_json
        self._talking, self._reading, self._looking = (open_client() for _ in range(3))
        self._names = Names(self._talking.room_members(room).members, own)
        self._own = own
        self._is_over = threading.Event()
        self._is_reading = threading.Event()
        self._main = threading.get_ident()
        self._came = threading.Condition()
        self._sent: dict[str, str] = {}
        self._echoed: set[str] = set()
        self._marks: dict[str, str] = {}
        """What the ledger said last of our messages."""
        self._open: dict[str, None] = {}
        """Messages of ours on the screen that have not arrived at all."""
        self._is_live = False
        self._late: str | None = None
        self.error: LinnetError | None = None
        """Why the conversation ended, if that was not asked for."""

    def run(self, lines: Iterable[str], since: float | None) -> None:
        """Talk until the lines end; Ctrl-C ends it too."""
        threads = [
            threading.Thread(target=self._look, name="look at the ledger", daemon=True),
            threading.Thread(target=self._read, args=(since,), name="read a room", daemon=True),
        ]
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            # A shell has what it starts in the background ignore it; `_end` wakes us with it.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            if not self._as_json:
                with contextlib.suppress(LinnetError):  # The reader tells what is wrong.
                    known = self._talking.room_ledger(self._room, limit=MARKED).events
                    self._marks = {event.event: ticks.tick(event.members) for event in known}
            for thread in threads:
                thread.start()
            # What is said before the room is read would not be seen to come back.
            self._is_reading.wait(LAST_WORDS)
            for line in lines:
                if self._is_over.is_set() or not self._typed(line):
                    break
            self._wait_for_echo()
        except KeyboardInterrupt:
            pass
        finally:
            self._is_over.set()
            self._reading.cut()
            for thread in threads:
                if thread.ident is not None:
                    thread.join(LAST_WORDS)
            for client in (self._talking, self._reading, self._looking):
                client.close()

    def _typed(self, line: str) -> bool:
        """Do what a line says; False: leave."""
        if line.startswith("/") and not line.startswith("//"):
            word = line.strip().split()[0].lower()
            if word in ("/quit", "/q", "/exit"):
                return False
            self._tell(self._command(word))
            return True
        text = line.removeprefix("/") if line.startswith("//") else line
        if text.strip():
            try:
                reply = self._talking.send_to_room(self._room, [text.encode()])
            except LinnetError as error:
                self._show(f"! not sent: {error}")
            else:
                with self._came:
                    self._sent |= dict.fromkeys(reply.ids, text)
        return True

    def _tell(self, look: Callable[[], str]) -> None:
        try:
            self._show(look())
        except LinnetError as error:
            self._show(f"! {error}")

    def _command(self, word: str) -> Callable[[], str]:
        commands: dict[str, Callable[[], str]] = {
            "/help": lambda: HELP,
            "/members": self._members,
            "/invite": lambda: self._talking.invite_to_room(self._room).text,
            "/ledger": self._ledger,
        }
        return commands.get(word, lambda: f"there is no {word}; /help tells what there is")

    def _members(self) -> str:
        members = [
            member
            for member in self._talking.room_members(self._room).members
            if member.membership == "join" and not member.relay
        ]
        self._names.update(members)
        return "\n".join(
            f"{'●' if member.online else '○'} {self._names.of(member.person)}"
            + (" (verified)" if member.verified else "")
            for member in members
        )

    def _ledger(self) -> str:
        events = self._talking.room_ledger(self._room, limit=10).events
        return "\n".join(map(self._fate_line, events)) or "you have said nothing here yet"

    def _fate_line(self, event: EventFatesView) -> str:
        said = self._sent.get(event.event, event.event[:14] + "…")
        return f"{ticks.tick(event.members):2} {_short(said)}: {ticks.summary(event.members, self._names)}"

    def _read(self, since: float | None) -> None:
        try:
            for item in self._reading.read_room(self._room, since):
                self._item(item)
        except LinnetError as error:
            if not self._is_over.is_set():
                self._end(error)

    def _item(self, item: ItemView) -> None:
        match item:
            case EventView():
                self._show(self._line(item))
                with self._came:
                    self._echoed.add(item.id)
                    self._came.notify_all()
            case InsertedView(event):
                self._late = event
            case CaughtUpView():
                self._is_live = True
            case OverdueView(event, people):
                names = ", ".join(map(self._names.of, people))
                self._show(f"! {_short(self._sent.get(event, event[:14]))} has not arrived at {names}")
            case WarningView():
                self._show(msgspec.json.encode(item).decode() if self._as_json else alarm_text(item))
            case SubscribedView():
                self._is_reading.set()
            case EndedView(reason):
                if reason is not None:
                    code = ExitCode.NO_NODE if reason == Reason.SHUTDOWN else ExitCode.FAILED
                    self._end(Failure(f"the conversation ended: {reason}; look at: linnet status", code))
            case _:
                pass

    def _line(self, event: EventView) -> str:
        if self._as_json:
            return msgspec.json.encode(event).decode()
        mark = self._mark_of(event) if event.author == self._own and event.key is None else " "
        line = event_line(event, self._names, mark)
        return f"{LATE} {line}" if self._late == event.id else line

    def _mark_of(self, event: EventView) -> str:
        """As the ledger has it; of what was said long ago, or by another device of ours, it knows nothing."""
        mark = self._marks.get(event.id)
        if mark is None:
            mark = ticks.PENDING if self._is_live or event.id in self._sent else " "
        if mark not in (ticks.ALL, " "):
            with self._came:
                self._open[event.id] = None
        return mark

    def _end(self, error: LinnetError) -> None:
        """Nothing more comes: whoever waits for a line to be typed waits no longer."""
        self.error = error
        self._is_over.set()
        with self._came:
            self._came.notify_all()
        signal.pthread_kill(self._main, signal.SIGINT)

    def _look(self) -> None:
        """Tell when a message of ours has arrived at somebody more."""
        while not self._is_over.wait(LOOK_PERIOD) and not self._as_json:
            with self._came:
                open_ones = [event for event in self._open if self._marks.get(event) != ticks.ALL]
            if not open_ones:
                continue
            try:
                events = self._looking.room_ledger(self._room, limit=100).events
            except LinnetError:
                continue  # The reader tells if the node is gone.
            self._mark(events)

    def _mark(self, events: Iterable[EventFatesView]) -> None:
        for event in events:
            mark = ticks.tick(event.members)
            if event.event in self._echoed and mark != self._marks.get(event.event, ticks.PENDING):
                self._marks[event.event] = mark
                self._show("      " + self._fate_line(event))

    def _wait_for_echo(self) -> None:
        with self._came:
            self._came.wait_for(
                lambda: self._is_over.is_set() or self._sent.keys() <= self._echoed, LAST_WORDS
            )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
