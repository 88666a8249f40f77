"""Messages from pieces, and what they say."""

from __future__ import annotations

from pyspark.sql import SparkSession
from tests.lab.studies.places.lines import taken_frame

from linnet.core.reasons import Reason
from linnet.lab.studies.places.reassembly import first_texts, messages_of, parse_text
from linnet.places.channel.packet import Header, encode_header
from linnet.places.multicast.fragmentation import Flag

FIRST, LAST, STATE = int(Flag.FIRST), int(Flag.LAST), int(Flag.STATE)


def test_pieces_are_put_together_up_to_the_first_hole(spark: SparkSession) -> None:
    rows: list[dict[str, object]] = [
        {"message": 1, "offset": 3, "flags": LAST, "body": b"def"},
        {"message": 1, "offset": 0, "flags": FIRST, "body": b"abc"},
        {"message": 2, "offset": 0, "flags": FIRST, "body": b"gh"},
        {"message": 2, "offset": 3, "flags": LAST, "body": b"j"},
        {"message": 3, "offset": 2, "flags": LAST, "body": b"x"},
        {"message": 4, "offset": 0, "flags": FIRST | STATE, "body": b"k"},
        {"message": 4, "offset": 1, "flags": LAST | STATE, "body": b""},
    ]
    taken = taken_frame(spark, rows).cache()
    found = {
        row.message: (row.pieces, row.upto, row.whole, bytes(row.text))
        for row in messages_of(taken).collect()
    }
    assert found == {
        1: (2, 6, True, b"abcdef"),
        2: (2, 2, False, b"gh"),
        3: (1, 0, False, b""),
        4: (2, 1, True, b"k"),
    }
    texts = [(row.message, bytes(row.text)) for row in first_texts(taken, STATE).collect()]
    assert texts == [(4, b"k")]


def test_a_text_is_read_as_soon_as_its_modifiers_are_there() -> None:
    section = b"=_a\t1\n:_b 2\tx\n\n_message_public\n"
    text = encode_header(Header(len(section), 3, b"h" * 32)) + section
    modifiers = [
        {"operator": "=", "name": "_a", "value": b"1"},
        {"operator": ":", "name": "_b", "value": b"x\n"},
    ]
    assert parse_text(text + b"body") == ("_message_public", 3, b"h" * 32, modifiers, None)
    assert parse_text(text[:-1]) is None
    assert parse_text(text[:4]) is None
    assert parse_text(b"") is None
    assert parse_text(b"\x09" + text[1:]) == (None, None, None, None, Reason.UNSUPPORTED.value)
    broken = encode_header(Header(3)) + b"!!\n"
    assert parse_text(broken) == (None, None, None, None, Reason.MALFORMED.value)
