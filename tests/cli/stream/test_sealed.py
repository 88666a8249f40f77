"""A sealed stream from end to end: three nodes, of which one only carries."""

from __future__ import annotations

from pathlib import Path

from tests.cli.shell import Linnet
from tests.cli.stream.conftest import Diary

from linnet.streams.stream_names import topic_of

SECRET = "under the third tree, eleven steps north"


def on_disk(home: Path) -> bytes:
    """Every byte of a home, the journal of its database included."""
    return b"".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())


def told(shell: Linnet, stream: str, *options: str) -> tuple[str, str, int]:
    result = shell.run("history", stream, *options)
    return result.stdout, result.stderr, result.exit_code


def test_whom_the_owner_lets_in_reads_and_who_carries_does_not(diary: Diary) -> None:
    ada, bea, hub, stream = diary.ada, diary.bea, diary.hub, diary.stream.replace("/diary", "/journal")
    ada.ok("declare", "me/journal", "--sealed")
    ada.ok("publish", "me/journal", "before bea", "--confirm", "10")
    out, err, status = told(bea, stream)
    assert (out, status) == ("", 1)
    assert "you are not let in" in err
    line = bea.ok("stream", "request", stream).strip()
    assert "let in bea" in ada.ok("stream", "allow", "me/journal", line, "--from-now")
    ada.ok("publish", "me/journal", SECRET, "--confirm", "10")
    diary.until(lambda: told(bea, stream)[0] == SECRET + "\n")
    out, err, status = told(bea, stream)
    assert (status, err.count("before you were let in")) == (1, 1)
    assert told(ada, stream)[0] == f"before bea\n{SECRET}\n"
    out, err, status = told(hub, stream)
    assert (out, status) == ("", 1)
    assert err.count("you are not let in") == 2
    for shell in (hub, bea, ada):
        assert SECRET.encode() not in on_disk(shell.home), shell.home.name
    assert bytes(topic_of(stream)) in on_disk(hub.home), "what is looked at is where events are kept"

    live = bea.run("subscribe", stream, "--count", "1", "--timeout", "1")
    assert live.exit_code == 1  # nothing was said meanwhile, and the count was not reached
    ada.ok("stream", "disallow", "me/journal", bea.json("status")["person"])
    ada.ok("publish", "me/journal", "after bea", "--confirm", "10")
    out, err, status = told(bea, stream)
    assert out == SECRET + "\n"
    assert err.count("you are not let in") == 1
    assert "stays so" in ada.fails(1, "declare", "me/journal")
