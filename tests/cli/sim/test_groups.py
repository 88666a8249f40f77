from __future__ import annotations

from tests.cli.shell import Linnet

WORDS = (
    "sim",
    "groups",
    "--members",
    "4",
    "--ops",
    "12",
    "--partitions",
    "1",
    "--thefts",
    "2",
    "--seed",
    "3",
)


def test_json_has_what_was_measured(shell: Linnet) -> None:
    found = shell.json(*WORDS)
    assert (found["diverged"], found["unreadable"], found["leaked"]) == (0, 0, 0)
    assert {"healed_after_ops", "bytes_per_update", "trace_sha256"} <= set(found)
    assert found["trace_sha256"] == shell.json(*WORDS)["trace_sha256"]


def test_a_table_for_people(shell: Linnet) -> None:
    said = shell.ok(*WORDS, "--patience", "1.0", "--messages", "0.5")
    assert "of them leaked" in said
    assert "trace_sha256" in said


def test_wrong_input_is_told_in_a_line(shell: Linnet) -> None:
    shell.fails(2, "sim", "groups", "--members", "1")
    shell.fails(2, "sim", "groups", "--patience", "1.5")
