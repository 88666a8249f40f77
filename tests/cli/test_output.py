from __future__ import annotations

import pytest

from linnet.cli.output import counted, plain, say, say_json, say_table, shown, size_text, warn


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


def test_what_a_stranger_says_is_only_shown() -> None:
    assert plain("grüße 👩\u200d🚀\n\tok") == "grüße 👩\u200d🚀\n\tok"
    assert plain("\x1b[2J\r\x07\x9b\u202e\u2066") == "\ufffd[2J\ufffd\ufffd\ufffd\ufffd\ufffd"


def test_bytes_as_people_read_them() -> None:
    assert [size_text(size) for size in (0, 1, 999, 1000, 2_500_000, 3 * 10**9)] == [
        "0 bytes",
        "1 byte",
        "999 bytes",
        "1.0 kB",
        "2.5 MB",
        "3.0 GB",
    ]
