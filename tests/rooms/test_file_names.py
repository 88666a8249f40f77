"""Names of files as strangers give them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from linnet.rooms.attachments import NAME_BYTES, safe_name


@pytest.mark.parametrize(
    "name",
    ["notes.txt", "Grüße aus Köln.pdf", "報告書.docx", "a b.tar.gz", "it's (1) [ok].png", "🐦.gif"],
)
def test_a_decent_name_stays(name: str) -> None:
    assert safe_name(name) == name


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "_.._etc_passwd"),
        ("/etc/passwd", "_etc_passwd"),
        ("C:\\Windows\\x.dll", "C__Windows_x.dll"),
        (".bashrc", "bashrc"),
        ("...", "unnamed"),
        ("", "unnamed"),
        (" . -rf", "rf"),
        ("a\x00b\nc\x1b[31m.txt", "abc[31m.txt"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("a\u2028b\u200bc", "abc"),
        ("a\u00a0b", "a b"),
        ("name. . ", "name"),
        ("what?*.txt", "what__.txt"),
        ("con", "_con"),
        ("NUL.txt", "_NUL.txt"),
        ("com1 .tar.gz", "_com1 .tar.gz"),
        ("console", "console"),
        ("a\ud800b", "ab"),
        ("e\u0301.txt", "\u00e9.txt"),
    ],
)
def test_what_could_lead_elsewhere_or_hide_is_replaced(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_a_long_name_keeps_its_ending() -> None:
    assert safe_name("a" * NAME_BYTES) == "a" * NAME_BYTES
    assert safe_name("a" * 300 + ".jpeg") == "a" * (NAME_BYTES - 5) + ".jpeg"
    assert safe_name("é" * 150) == "é" * (NAME_BYTES // 2)
    assert safe_name("a." + "b" * 300) == "a." + "b" * (NAME_BYTES - 2)


@given(st.one_of(st.text(max_size=300), st.text(alphabet="./\\ -conul1é\u0301\u202e", max_size=300)))
@example("con" + " " * 300 + ".txt")
@example("con." + "a" * 300)
def test_every_name_becomes_safe_and_stays_so(name: str) -> None:
    safe = safe_name(name)
    assert safe == safe_name(safe)
    assert 1 <= len(safe.encode()) <= NAME_BYTES
    assert not set(safe) & set('/\\<>:"|?*')
    assert not safe.startswith((".", "-", " "))
    assert not safe.endswith((".", " "))
    assert not any(unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") for letter in safe)
    assert safe.split(".")[0].rstrip(" ").lower() not in ("con", "nul", "com1")
