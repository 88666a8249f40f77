"""``linnet chat``: talk in a room, in a terminal or through a pipe.

Typed lines go to the room; the room's events, and the marks of sent messages, go to the screen. Reading
blocks and watching the ledger takes turns, so each has its own thread and client.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from linnet.api.items import (
    CaughtUpView,
    EndedView,
    EventView,
    InsertedView,
    ItemView,
    OverdueView,
    RelayFaultyView,
    SubscribedView,
    WarningView,
)
from linnet.api.rooms import InviteToRoom, ListMembers
from linnet.cli.exits import ExitCode, Failure
from linnet.cli.moments import clock_warning, parse_since, wall_clock
from linnet.cli.options import FromOption, with_examples
from linnet.cli.output import harmless, json_text, plain, say, warn
from linnet.cli.printers import LATE
from linnet.cli.room import ledger
from linnet.cli.room.arguments import RoomArgument, find_room
from linnet.cli.room.words import Names, alarm_text, event_line, relay_fault_text
from linnet.cli.running_node import Session
from linnet.core.errors import LinnetError
from linnet.core.reasons import Reason
from linnet.identity.text import event_text, person_text, topic_text
from linnet.rooms.commands import ExamineLedger, ReadRoom, SendToRoom

if TYPE_CHECKING:
    from linnet.core.ids import AuthorId, TopicId
    from linnet.node.client import ControlClient
    from linnet.rooms.commands import EventFates

LOOK_PERIOD = 1.0
"""Seconds between checks of the ledger, while messages are under way."""

MARKED = 1000
"""Our messages whose marks are looked up when the conversation begins."""

LAST_WORDS = 5.0
"""Seconds in which the last sent messages must come back before the conversation ends."""

_SHOWN_CHARS = 40
HELP = f"""\
/members       who is here
/invite        an invitation to hand over
/ledger        at whom your messages have arrived
/quit          leave the conversation; you stay in the room
//…            say something that begins with a slash
{ledger.KEY}
{LATE} came late: it belongs further up"""


class Conversation:
    """Carries lines from a screen to a room, and events and marks from the room to the screen."""

    def __init__(
        self,
        open_client: Callable[[], ControlClient],
        room: TopicId,
        own: AuthorId,
        show: Callable[[str], None],
        as_json: bool = False,
    ) -> None:
        self._room = room
        self._show = show
        self._as_json = as_json
        self._talking, self._reading, self._looking = (open_client() for _ in range(3))
        self._names = Names(self._talking.ask(ListMembers(room)).members, own)
        self._own = person_text(own)
        self._is_over = threading.Event()
        self._is_reading = threading.Event()
        self._main = threading.get_ident()
        self._came = threading.Condition()
        self._sent: dict[str, str] = {}
        self._echoed: set[str] = set()
        self._marks: dict[str, str] = {}
        """The latest mark of each of our messages, by the ledger."""
        self._open: dict[str, None] = {}
        """Our messages on the screen that have not reached everybody."""
        self._is_live = False
        self._late: str | None = None
        self.error: LinnetError | None = None
        """The error that ended the conversation; None if the user ended it."""

    def run(self, lines: Iterable[str], since: float | None) -> None:
        """Talk until the lines end; Ctrl-C ends it too."""
        threads = [
            threading.Thread(target=self._watch_ledger, name="look at the ledger", daemon=True),
            threading.Thread(target=self._read_room, args=(since,), name="read a room", daemon=True),
        ]
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            # A shell lets background processes ignore it, but `_end` needs it to wake us.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            if not self._as_json:
                with contextlib.suppress(LinnetError):  # The reader tells what is wrong.
                    known = self._talking.ask(ExamineLedger(self._room, limit=MARKED)).events
                    self._marks = {event_text(event.event): ledger.tick(event.members) for event in known}
            for thread in threads:
                thread.start()
            # Messages sent before the room is read would not be seen to come back.
            self._is_reading.wait(LAST_WORDS)
            for line in lines:
                if self._is_over.is_set() or not self._handle_line(line):
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

    def _handle_line(self, line: str) -> bool:
        """Act on a typed line; return False to leave."""
        if line.startswith("/") and not line.startswith("//"):
            word = line.strip().split()[0].lower()
            if word in ("/quit", "/q", "/exit"):
                return False
            self._show_answer(self._answer_of(word))
            return True
        text = line.removeprefix("/") if line.startswith("//") else line
        if text.strip():
            try:
                reply = self._talking.ask(SendToRoom(self._room, (text.encode(),)))
            except LinnetError as error:
                self._show(f"! not sent: {error}")
            else:
                with self._came:
                    self._sent |= dict.fromkeys(map(event_text, reply.ids), text)
        return True

    def _show_answer(self, look: Callable[[], str]) -> None:
        try:
            self._show(look())
        except LinnetError as error:
            self._show(f"! {error}")

    def _answer_of(self, word: str) -> Callable[[], str]:
        commands: dict[str, Callable[[], str]] = {
            "/help": lambda: HELP,
            "/members": self._members_text,
            "/invite": lambda: self._talking.ask(InviteToRoom(self._room)).text,
            "/ledger": self._ledger_text,
        }
        return commands.get(word, lambda: f"there is no {word}; /help tells what there is")

    def _members_text(self) -> str:
        members = [
            member
            for member in self._talking.ask(ListMembers(self._room)).members
            if member.membership == "join" and not member.relay
        ]
        self._names.update(members)
        return "\n".join(
            f"{'●' if member.online else '○'} {self._names.of(member.person)}"
            + (" (verified)" if member.verified else "")
            for member in members
        )

    def _ledger_text(self) -> str:
        events = self._talking.ask(ExamineLedger(self._room, limit=10)).events
        return "\n".join(map(self._fate_line, events)) or "you have said nothing here yet"

    def _fate_line(self, event: EventFates) -> str:
        text = event_text(event.event)
        said = self._sent.get(text, text[:14] + "…")
        return f"{ledger.tick(event.members):2} {_short(said)}: {ledger.summary(event.members, self._names)}"

    def _read_room(self, since: float | None) -> None:
        try:
            for item in self._reading.lines(ReadRoom(0, self._room, since)):
                self._handle_item(item)
        except LinnetError as error:
            if not self._is_over.is_set():
                self._end(error)

    def _handle_item(self, item: ItemView) -> None:
        match item:
            case EventView():
                self._show(self._line_of(item))
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
            case RelayFaultyView():
                self._show(json_text(item) if self._as_json else f"! {relay_fault_text(item)}")
            case WarningView():
                self._show(json_text(item) if self._as_json else alarm_text(item))
            case SubscribedView():
                self._is_reading.set()
            case EndedView(reason):
                if reason is not None:
                    code = ExitCode.NO_NODE if reason == Reason.SHUTDOWN else ExitCode.FAILED
                    self._end(Failure(f"the conversation ended: {reason}; look at: linnet status", code))
            case _:
                pass

    def _line_of(self, event: EventView) -> str:
        if self._as_json:
            return json_text(event)
        mark = self._mark_of(event) if event.author == self._own and event.key is None else " "
        line = event_line(event, self._names, mark)
        return f"{LATE} {line}" if self._late == event.id else line

    def _mark_of(self, event: EventView) -> str:
        """Return an event's mark; the ledger lacks old events and those of our other devices."""
        mark = self._marks.get(event.id)
        if mark is None:
            mark = ledger.PENDING if self._is_live or event.id in self._sent else " "
        if mark not in (ledger.ALL, " "):
            with self._came:
                self._open[event.id] = None
        return mark

    def _end(self, error: LinnetError) -> None:
        """End the conversation with an error, also if it is waiting for a line to be typed."""
        self.error = error
        self._is_over.set()
        with self._came:
            self._came.notify_all()
        signal.pthread_kill(self._main, signal.SIGINT)

    def _watch_ledger(self) -> None:
        """Show when a message of ours has reached more people."""
        while not self._is_over.wait(LOOK_PERIOD) and not self._as_json:
            with self._came:
                open_ones = [event for event in self._open if self._marks.get(event) != ledger.ALL]
            if not open_ones:
                continue
            try:
                events = self._looking.ask(ExamineLedger(self._room, limit=100)).events
            except LinnetError:
                continue  # The reader tells if the node is gone.
            self._update_marks(events)

    def _update_marks(self, events: Iterable[EventFates]) -> None:
        for event in events:
            mark, text = ledger.tick(event.members), event_text(event.event)
            if text in self._echoed and mark != self._marks.get(text, ledger.PENDING):
                self._marks[text] = mark
                self._show("      " + self._fate_line(event))

    def _wait_for_echo(self) -> None:
        with self._came:
            self._came.wait_for(
                lambda: self._is_over.is_set() or self._sent.keys() <= self._echoed, LAST_WORDS
            )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"


_CLEAR = "\r\x1b[K"
_LINE_BEFORE = "\x1b[1A\x1b[2K\r"


class Screen:
    """The terminal: several threads print lines, one reads them."""

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt
        self._is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self._lock = threading.Lock()
        self._is_asking = False

    def show(self, text: str) -> None:
        """Print a line above the one that is being typed."""
        with self._lock:
            if not self._is_asking:
                say(text)
                return
            sys.stdout.write(f"{_CLEAR}{harmless(text)}\n{self._prompt}{_typed()}")
            sys.stdout.flush()

    def lines(self) -> Iterator[str]:
        """Yield the lines that are typed, until the end of input or Ctrl-D."""
        if not self._is_terminal:
            for line in sys.stdin:
                yield line.rstrip("\r\n")
            return
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401 - gives `input` a line that can be edited
        while True:
            self._is_asking = True
            try:
                line = input(self._prompt)
            except EOFError:
                return
            finally:
                self._is_asking = False
            # The typed line comes back from the room, with its time and mark.
            sys.stdout.write(_LINE_BEFORE)
            yield line


def _typed() -> str:
    """Return the text of the line that is being edited."""
    readline = sys.modules.get("readline")
    return "" if readline is None else str(readline.get_line_buffer())


@with_examples("linnet chat tea", "linnet chat tea --from beginning", "echo hello | linnet chat tea")
def chat(room: RoomArgument, since: FromOption = "1h", *, session: Session) -> None:
    """Talk in a room. Each line that you type is sent; /help lists the commands.

    A mark before a message of yours shows how far it has come: · pending, ⌂ at a relay, ✓ arrived at some,
    ✓✓ arrived at all. A question mark behind a time says that it is doubtful; see linnet room read --help.
    Ctrl-C, Ctrl-D or /quit end the conversation; you stay in the room. With --json,
    what comes in is printed as JSON, without marks: see linnet room ledger.
    """
    from linnet.api.node_commands import ReportStatus

    begin = parse_since(since, wall_clock())
    with session.open_node() as node:
        found = find_room(node, room)
        status = node.ask(ReportStatus())
    if (words := clock_warning(status.clock_behind)) is not None:
        warn(words)
    screen = Screen(f"{plain(found.name or topic_text(found.room)[:10] + '…')}> ")
    conversation = Conversation(session.open_node, found.room, status.person, screen.show, session.as_json)
    conversation.run(screen.lines(), begin)
    if conversation.error is not None:
        raise conversation.error
