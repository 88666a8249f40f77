"""The home of a node: one directory, private to its owner, with all of the node's files.

::

    person.key      the person's secret key, on the device that made it; others have only a card
    device.key      this device's secret key
    device.card     the person's signed statement that the device is theirs
    device.card.before  the previous card, in case a wrong clock dated this one
    linnet.toml     the configuration
    events.db       what survives a restart
    mark-of-events.db  how far the log was, so that its loss is noticed
    ports           the ports that the system chose at the first start
    start           the options of the last start that had any
    trace/          the trace files
    control.sock    where the command line reaches the running node
    control.token   the token for callers over TCP
    lock            held while a node runs
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from linnet.core.errors import LocalError, RemoteError
from linnet.core.reasons import Reason
from linnet.identity.cards import CARD_DAYS, Card, check_card, check_dates, is_good, issue_card
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, to_text
from linnet.node import config_file
from linnet.node.config import ControlSection, NodeConfig
from linnet.node.config_reference import new_file
from linnet.node.keyfiles import (
    PRIVATE_DIRECTORY,
    KeyFileError,
    check_private,
    load_card,
    load_key,
    read_private,
    save_card,
    save_key,
    sync_directory,
    write_private,
)
from linnet.peer.config import Identity

DAY = 86_400
RENEWAL_DAYS = 60
"""A card with fewer days left is renewed at the start of the node, if the person's key is there."""

CLOCK_LEEWAY = 3600
"""Seconds that a card begins before it is made: other clocks may be behind ours."""

MAX_SOCKET_PATH = 100
"""The most bytes in a Unix socket's path: the systems' own limits are 104 and 108."""

_TOKEN_BYTES = 32


class HomeError(LocalError):
    """The home directory cannot be used; the message says why and what to do."""


class HomeBusy(HomeError):
    """Another process runs a node in this home."""


class _Named:
    """The path of a file in a home."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, home: Home, kind: type[Home]) -> Path:
        return home.path / self._name


class Home(Struct, frozen=True):
    """The paths of a node's files."""

    path: Path

    person_key = _Named("person.key")
    """The person's secret key."""
    device_key = _Named("device.key")
    """The device's secret key."""
    card = _Named("device.card")
    """The device's card, signed by the person."""
    card_before = _Named("device.card.before")
    """The card before the device's card, if it was ever renewed."""
    config = _Named("linnet.toml")
    """The configuration."""
    store = _Named("events.db")
    """The event log and the values of the machines."""
    ports = _Named("ports")
    """The ports that the system chose."""
    start = _Named("start")
    """The options of the last start that had any."""
    trace = _Named("trace")
    """The directory of the trace."""
    token = _Named("control.token")
    """The token for callers over TCP."""
    lock = _Named("lock")
    """Held while a node runs."""

    def socket(self, control: ControlSection) -> Path:
        """Return the path of the control socket: as configured, else in the home, else a shorter one."""
        if control.socket:
            path = Path(control.socket).expanduser()
            path = path if path.is_absolute() else self.path / path
            if len(os.fsencode(path)) > MAX_SOCKET_PATH:
                raise HomeError(
                    f"control.socket: {path} has more than {MAX_SOCKET_PATH} bytes, "
                    "which is too long for a Unix socket; choose a shorter path"
                )
            return path
        path = self.path / "control.sock"
        if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
            return path
        name = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        return runtime_directory() / f"{name}.sock"


class Opened(Struct, frozen=True):
    """A home that was read and checked."""

    home: Home
    identity: Identity
    config: NodeConfig
    has_person_key: bool


def home_path(given: Path | None = None) -> Path:
    """Return the absolute path of the home: the given one, else ``LINNET_HOME``, else ``~/.linnet``."""
    path = given or Path(os.environ.get("LINNET_HOME") or "~/.linnet")
    return Path(os.path.abspath(path.expanduser()))


def init(
    path: Path,
    now: float,
    config: NodeConfig | None = None,
    person: SigningKey | None = None,
    keep_key: bool = True,
) -> Opened:
    """Make a home with new keys, or with a new device of this person; complete, or not at all.

    Without `keep_key` the person's key signs the device's card and is not written. Raises `HomeError` if the
    directory is not empty.
    """
    config = NodeConfig() if config is None else config
    person = SigningKey.generate(secrets.token_bytes) if person is None else person
    with new_home(path) as home:
        write_identity(home, person, now, config.node.label, keep_key)
        write_private(home.config, new_file(config).encode())
    return open_home(path, now)


def ask(path: Path, config: NodeConfig) -> bytes:
    """Make a home with a device's key and no card yet, for `accept`; return its public key.

    Raises `HomeError` if the directory is not empty.
    """
    device = SigningKey.generate(secrets.token_bytes)
    with new_home(path) as home:
        save_key(home.device_key, "device", device)
        write_private(home.config, new_file(config).encode())
    return device.public


def accept(path: Path, card: Card, now: float) -> Opened:
    """Put a card into a home, the first or the next one.

    Raises `HomeError` if it is for another device or person, not valid now, or ends before the present one.
    """
    home = Home(home_path(path))
    if not home.device_key.exists():
        raise HomeError(f"{home.path}: there is no device's key; make one with: linnet id ask")
    if card.device_key != load_key(home.device_key, "device").public:
        raise HomeError("this card is for another device; make one for the key that linnet id ask printed")
    try:
        check_card(card)
        check_dates(card, now)
    except RemoteError as error:
        raise HomeError(f"this card is not good: {error.reason}: {error.detail}; make a new one") from error
    if home.card.exists():
        present = load_card(home.card)
        if present.person != card.person:
            raise HomeError("this card is of another person than the one of this home")
        if present.not_after > card.not_after:
            raise HomeError("this card ends before the one that is here; nothing was changed")
    save_card(home.card, card)
    return open_home(path, now)


def write_identity(home: Home, person: SigningKey, now: float, label: str, keep_key: bool = True) -> None:
    """Write a new device's identity, and the person's key if it is kept, into a home under construction."""
    device = SigningKey.generate(secrets.token_bytes)
    if keep_key:
        save_key(home.person_key, "person", person)
    save_key(home.device_key, "device", device)
    save_card(home.card, new_card(person, device.public, now, label))


def new_card(person: SigningKey, device_key: bytes, now: float, label: str) -> Card:
    """Issue a card that is valid from now on, for the usual time."""
    begin = int(now) - CLOCK_LEEWAY
    return issue_card(person, device_key, begin, int(now) + CARD_DAYS * DAY, label)


def check_vacant(path: Path) -> None:
    """Raise `HomeError` if a new home cannot be made at a path that is in use."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise HomeError(f"{path}: is there already; choose another with --home or LINNET_HOME, or remove it")
    if os.path.ismount(path):
        # A home takes its place by one rename, complete or not at all, and nothing is renamed onto a mount.
        why = f"{path}: is a mount point, which cannot be made a home as a whole"
        raise HomeError(f"{why}; name a directory in it: --home {path / 'linnet'}")


@contextlib.contextmanager
def new_home(path: Path) -> Iterator[Home]:
    """Make a home, which takes its place only when the block ends without an error."""
    path = home_path(path)
    check_vacant(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise HomeError(f"{path}: cannot be made: {error.strerror or error}") from error
    try:
        part.chmod(PRIVATE_DIRECTORY)
        yield Home(part)
        part.rename(path)
        sync_directory(path.parent)
    except OSError as error:
        raise HomeError(f"{path}: cannot be made: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def open_home(path: Path | None, now: float) -> Opened:
    """Read and check a home. A card that is missing or ends soon is made anew with the person's key.

    Raises `HomeError`, `KeyFileError` or `ConfigError`.
    """
    home = Home(home_path(path))
    if not home.path.is_dir():
        raise HomeError(f"{home.path}: there is no home; make one with: linnet init")
    check_private(home.path, home.path.stat())
    config = config_file.load(home.config)
    device = load_key(home.device_key, "device")
    person = load_key(home.person_key, "person") if home.person_key.exists() else None
    if not home.card.exists() and person is not None:
        save_card(home.card, new_card(person, device.public, now, config.node.label))
    elif not home.card.exists():
        key = to_text(Sort.DEVICE, device.public)
        raise HomeError(
            f"{home.card}: there is no card yet; on a device that holds your key say: linnet id link {key}, "
            "and here: linnet id accept, with what it prints"
        )
    card = load_card(home.card)
    _check_pair(home, card, device, person)
    card = _good_card(home, card, person, now, config.node.label)
    return Opened(home, Identity(device, card), config, person is not None)


def control_token(home: Home) -> str:
    """Return the token for callers over TCP; it is made at the first call."""
    if not home.token.exists():
        with contextlib.suppress(FileExistsError):
            write_private(home.token, secrets.token_urlsafe(_TOKEN_BYTES).encode() + b"\n")
    return read_private(home.token).decode("ascii", errors="replace").strip()


@contextlib.contextmanager
def held(home: Home) -> Iterator[None]:
    """Hold the home's lock; raises `HomeBusy` if another process has it, `HomeError` if it is not writable.

    A crash releases it.
    """
    try:
        descriptor = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        why = f"{home.path}: cannot be written ({error.strerror})"
        raise HomeError(f"{why}; make it writable, or name another home") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(descriptor, 32, 0).decode("ascii", errors="replace").strip() or "unknown"
            raise HomeBusy(
                f"{home.path}: a node runs here already (process {owner}). If `linnet up` runs it, a program "
                f"beside it uses Node.attach({str(home.path)!r}), and people use the linnet commands"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def runtime_directory() -> Path:
    """Return a short private directory for the sockets of homes whose path is too long."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    path = Path(given) / "linnet" if given else Path(tempfile.gettempdir()) / f"linnet-{os.getuid()}"
    path.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    status = path.lstat()
    if status.st_uid != os.getuid():
        raise HomeError(f"{path}: belongs to somebody else; set control.socket to a short path of your own")
    check_private(path, status)
    return path


def _check_pair(home: Home, card: Card, device: SigningKey, person: SigningKey | None) -> None:
    if card.device_key != device.public:
        raise KeyFileError(f"{home.card}: is for another device than {home.device_key}")
    if person is not None and card.person != person.public:
        raise KeyFileError(f"{home.card}: was signed by another person than {home.person_key}")
    try:
        check_card(card)
    except RemoteError as error:
        raise KeyFileError(f"{home.card}: damaged: {error.detail}") from error


def _good_card(home: Home, card: Card, person: SigningKey | None, now: float, label: str) -> Card:
    """Return the home's card, renewed if need be. A card dated by a wrong clock is replaced by a good one."""
    if person is not None and (now > card.not_after - RENEWAL_DAYS * DAY or now < card.not_before):
        if now >= card.not_before:
            save_card(home.card_before, card)
        card = new_card(person, card.device_key, now, label)
        save_card(home.card, card)
    if not is_good(card, now):
        before = _card_before(home, card)
        if before is not None and is_good(before, now):
            return before
    check_own_dates(home, card, now)
    return card


def check_own_dates(home: Home, card: Card, now: float) -> None:
    """Raise `KeyFileError` if this home's card is not valid now; the message says how to renew it."""
    try:
        check_dates(card, now)
    except RemoteError as error:
        is_over = error.reason is Reason.CARD_EXPIRED
        end = f"ended at {shown(card.not_after)}" if is_over else f"begins at {shown(card.not_before)}"
        if home.person_key.exists():
            advice = "check this machine's clock; if it is right, the next start renews the card: linnet up"
        else:
            advice = (
                "check this machine's clock. To renew the card: linnet id renew "
                "--phrase-file FILE with your 24 words, or on a device that holds person.key: "
                f"linnet id link {to_text(Sort.DEVICE, card.device_key)}, and here: linnet id accept"
            )
        raise KeyFileError(f"{home.card}: {error.reason}: the card {end}; {advice}") from error


def shown(moment: float) -> str:
    """Return a time in words for people; the bare number if no calendar has it."""
    try:
        return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return f"{moment:.0f} s after 1970"


def _card_before(home: Home, card: Card) -> Card | None:
    """Return the previous card, if it is there, undamaged, and of this device."""
    try:
        before = load_card(home.card_before)
        check_card(before)
    except (KeyFileError, RemoteError, OSError):
        return None
    return before if (before.person, before.device_key) == (card.person, card.device_key) else None
