"""Marks from counts, and the hash of all."""

from __future__ import annotations

import hashlib

from pyspark.sql import Row

from linnet.lab.generate.marks import data_sha256, figures


def chat(name: str, members: int, messages: int, within: int, granularity: str = "min") -> Row:
    return Row(
        chat=name,
        members=members,
        messages=messages,
        granularity=granularity,
        texts=messages - 1,
        chars=7,
        duration_ms=2 * 86_400_000 + members,
        pauses_60s=within,
        pauses_120s=within + 1,
        sha256=f"{members:02x}",
    )


CHATS = [chat("c1", 2, 11, 5), chat("c2", 2, 21, 10, "s"), chat("c3", 31, 41, 15), chat("c4", 30, 31, 18)]


def test_marks_are_shares_of_what_was_counted() -> None:
    found = {figure.id: (figure.measured, figure.published) for figure in figures(CHATS)}
    assert found == {
        "chats": (4, 5_956),
        "messages": (104, 76_000_000),
        "members": (65, 117_000),
        "members.2": (50.0, 42.0),
        "members.30": (75.0, 83.0),
        "members.largest": (31, 252),
        "granularity.s": (25.0, 26.83),
        "pauses.60s": (48.0, 69.0),
        "pauses.120s": (52.0, 76.0),
        "kinds.text": (96.15, 89.0),
        "messages.largest": (41, None),
        "messages.smallest": (11, None),
        "days.longest": (2, None),
    }
    assert all(bool(figure.source) == (figure.published is not None) for figure in figures(CHATS))


def test_chats_without_a_pause_have_no_share_of_pauses() -> None:
    found = {figure.id: figure.measured for figure in figures([chat("c1", 2, 1, 0)])}
    assert found["pauses.60s"] is None


def test_the_hash_is_over_names_and_hashes_in_order() -> None:
    assert data_sha256(CHATS[:2]) == hashlib.sha256(b"c1 02\nc2 02\n").hexdigest()
    assert data_sha256(CHATS) != data_sha256(CHATS[::-1])
