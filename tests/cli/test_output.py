from __future__ import annotations

import io
import sys
import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.cli.output import (
    counted,
    file_bar,
    harmless,
    json_text,
    listed,
    paragraphs,
    plain,
    progress_bar,
    say,
    say_json,
    say_table,
    shown,
    size_text,
    warn,
)


def test_results_and_the_rest_go_apart(capsys: pytest.CaptureFixture[str]) -> None:
    say("result")
    say_json({"a": (1, 2.5)})
    warn("beside it")
    out, err = capsys.readouterr()
    assert (out, err) == ('result\n{"a":[1,2.5]}\n', "beside it\n")


def test_a_table_in_a_pipe_is_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    wide = "x" * 500
    say_table(("name", "count "), [(wide, 1234), ("[b]", None)])
    out = capsys.readouterr().out
    assert wide in out
    assert "1,234" in out
    assert "[b]" in out, "what others say is never taken for markup"


def test_cells_as_people_read_them() -> None:
    cells = [None, True, False, 1234567, 0.5, 1234.56, ("a", "b"), (), "", "text"]
    assert list(map(shown, cells)) == [
        "-",
        "yes",
        "no",
        "1,234,567",
        "0.500",
        "1,234.6",
        "a, b",
        "-",
        "-",
        "text",
    ]


def test_nouns_are_counted() -> None:
    assert [counted(n, "link") for n in (0, 1, 2000)] == ["0 links", "1 link", "2,000 links"]
    assert [counted(n, "branch", "branches") for n in (1, 2)] == ["1 branch", "2 branches"]
    assert [listed(("a", "b"), more) for more in (0, 3)] == ["a and b", "a, b and 3 more"]
    assert (listed(("a",)), listed(())) == ("a", "")


def test_what_a_stranger_says_is_only_shown() -> None:
    assert plain("grüße 👩\u200d🚀\u3000ok") == "grüße 👩\u200d🚀\u3000ok"
    assert plain("\x1b[2J\r\x07\x9b\u202e\u2066\x7f") == r"\x1b[2J\r\x07\x9b\u202e\u2066\x7f"
    assert plain("one\ntwo\t") == r"one\ntwo\t"
    assert plain(b"\x1b]52;c;eA==\x07 \xff\xc2\x9b") == r"\x1b]52;c;eA==\x07 \xff\x9b"
    assert paragraphs("one\r\ntwo\u2028") == "one\\r\ntwo\\u2028"


@given(st.text(st.characters(codec="utf-8")))
def test_nothing_that_is_printed_moves_a_terminal(text: str) -> None:
    for shown_text in (plain(text), harmless(text), paragraphs(text), json_text({"text": text})):
        signs = set(shown_text) - set("\n\t\u200c\u200d")
        categories = {unicodedata.category(sign) for sign in signs}
        assert not {each for each in categories if each[0] == "C" or each in ("Zl", "Zp")}
    assert "\n" not in plain(text)
    assert msgspec.json.decode(json_text({"text": text})) == {"text": text}


def test_what_leaves_a_command_is_harmless_wherever_it_came_from(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "a\x1b]0;owned\x07\rb\x9b2J"
    say(f"name\t{hostile}\nnext")
    warn(hostile)
    say_json({"x": hostile})
    say_table(("a",), [(hostile,), ("two\nlines",)])
    out, err = capsys.readouterr()
    assert not {"\x1b", "\x07", "\r", "\x9b"} & set(out + err)
    assert out.startswith("name\ta\\x1b]0;owned\\x07\\rb\\x9b2J\nnext\n")
    assert "two\\nlines" in out


def test_bytes_as_people_read_them() -> None:
    assert [size_text(size) for size in (0, 1, 999, 1000, 2_500_000, 3 * 10**9)] == [
        "0 bytes",
        "1 byte",
        "999 bytes",
        "1.0 kB",
        "2.5 MB",
        "3.0 GB",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_where_somebody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Terminal()
    monkeypatch.setattr(sys, "stderr", watched)
    with file_bar("cat.png", quiet=False) as progress:
        progress(5, 10)
    with progress_bar(quiet=False) as show:
        show(0.5, "half of it")
    assert "cat.png" in watched.getvalue()
    assert "half of it" in watched.getvalue()


@pytest.mark.parametrize("quiet", [True, False])
def test_nothing_where_nobody_does(quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    unseen = Terminal() if quiet else io.StringIO()
    monkeypatch.setattr(sys, "stderr", unseen)
    with file_bar("cat.png", quiet) as progress, progress_bar(quiet) as show:
        progress(5, 10)
        show(0.5, "half of it")
    assert unseen.getvalue() == ""
