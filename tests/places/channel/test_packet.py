"""The text form: what is rendered is parsed back, in pieces of any size, and faults name their offset."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import Refused, RemoteError
from linnet.core.reasons import Reason
from linnet.places.channel.packet import (
    OPERATORS,
    Header,
    Ignored,
    Modifier,
    Packet,
    Parser,
    check_transient,
    encode_header,
    is_text,
    parse,
    parse_section,
    read_header,
    render,
)
from linnet.places.config import PlacesConfig

_names = st.text("_abcXYZ019", min_size=1, max_size=12)
_values = st.binary(max_size=20) | st.sampled_from(
    [b"", b"\n", b"\t", b"a\tb", b"\n\n_m\n", b"5\t", b"\xff\x00"]
)
_modifiers = st.lists(st.builds(Modifier, st.sampled_from(OPERATORS), _names, _values), max_size=5)
_noise = st.lists(
    st.sampled_from([b":", b"=", b"?", b"_a", b"_m", b"\t", b" ", b"\n", b"3", b"x", b"-", b"\xff"])
)

Outcome = tuple[Packet | None, Reason | None, str]
_SMALL = PlacesConfig(value_bytes=1024, modifier_bytes=1024)


def _in_pieces(data: bytes, cuts: list[int], limits: PlacesConfig | None = None) -> Outcome:
    parser = Parser(limits)
    body = b""
    edges = [0, *sorted(cuts), len(data)]
    try:
        for start, end in pairwise(edges):
            parser.feed(data[start:end])
            body += parser.take()
        parser.finish()
    except RemoteError as error:
        return None, error.reason, error.detail
    modifiers, method = parser.head()
    return Packet(modifiers, method, body + parser.take(), parser.ignored), None, ""


def test_e1_transient_modifier_method_and_body() -> None:
    data = b":_volume\t100\n_message_public_shout\nHello,\nworld!"
    modifiers = (Modifier(":", "_volume", b"100"),)
    assert parse(data) == Packet(modifiers, "_message_public_shout", b"Hello,\nworld!")
    assert render(modifiers, "_message_public_shout") + b"Hello,\nworld!" == data


def test_e2_persistent_modifiers_and_no_body() -> None:
    data = b"=_location_planet\tEarth\n=_location_continent\tEurope\n_notice_profile_location"
    modifiers = (Modifier("=", "_location_planet", b"Earth"), Modifier("=", "_location_continent", b"Europe"))
    assert parse(data) == Packet(modifiers, "_notice_profile_location")
    assert render(modifiers, "_notice_profile_location") == data + b"\n"


def test_a_method_alone_is_a_message() -> None:
    assert parse(b"_m") == parse(b"_m\n") == Packet((), "_m")


def test_binary_values_go_by_their_length_and_text_stays_readable() -> None:
    modifiers = [Modifier("=", "_b", b"a\nb"), Modifier("=", "_t", b"a\tb"), Modifier("=", "_e", b"")]
    assert render(modifiers, "_m") == b"=_b 3\ta\nb\n=_t\ta\tb\n=_e\n_m\n"
    assert parse(b"=_e\t\n=_f 0\t\n_m").modifiers == (Modifier("=", "_e", b""), Modifier("=", "_f", b""))
    assert [is_text(value) for value in (b"", b"abc", b"a\tb", b"a\n", b"\xff")] == [
        True,
        True,
        True,
        False,
        False,
    ]


@given(_modifiers, _names, st.binary(max_size=30))
def test_render_and_parse_round_trip(modifiers: list[Modifier], method: str, body: bytes) -> None:
    section = render(modifiers, method)
    assert parse(section + body) == Packet(tuple(modifiers), method, body)
    assert parse_section(section) == Packet(tuple(modifiers), method)


@given(_modifiers, _names, st.binary(max_size=9), st.data())
def test_the_parser_in_pieces_equals_the_whole_for_every_split(
    modifiers: list[Modifier], method: str, body: bytes, data: st.DataObject
) -> None:
    text = render(modifiers, method) + body
    whole = (Packet(tuple(modifiers), method, body), None, "")
    assert all(_in_pieces(text, [cut]) == whole for cut in range(len(text) + 1))
    assert _in_pieces(text, list(range(len(text)))) == whole
    assert _in_pieces(text, data.draw(st.lists(st.integers(0, len(text)), max_size=5))) == whole


@given(_noise)
def test_faults_are_the_same_for_every_split_too(noise: list[bytes]) -> None:
    text = b"".join(noise)
    whole = _in_pieces(text, [])
    assert all(_in_pieces(text, [cut]) == whole for cut in range(len(text) + 1))
    assert _in_pieces(text, list(range(len(text)))) == whole


@given(st.integers(1000, 1030), st.booleans(), st.integers(0, 3), st.data())
def test_limits_are_the_same_for_every_split_too(
    size: int, counted: bool, more: int, data: st.DataObject
) -> None:
    value = b"x" * size
    line = b"=_a %d\t%b\n" % (size, value) if counted else b"=_a\t%b\n" % value
    text = line * more + b"_m\n"
    whole = _in_pieces(text, [], _SMALL)
    assert _in_pieces(text, data.draw(st.lists(st.integers(0, len(text)), max_size=4)), _SMALL) == whole
    assert _in_pieces(text, list(range(len(text))), _SMALL) == whole
    assert (whole[1] == Reason.TOO_LARGE) == (bool(more) and len(text) > 1024)


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b"", 0),
        (b"=_a\tb\n", 6),  # modifiers, and then nothing
        (b"=_a\tb", 0),
        (b"\nbody", 0),
        (b"=\tvalue\n_m", 1),
        (b"=_a\tb\n_m!\n", 8),
        (b"=_a 3\tabcd\n_m", 9),
        (b"=_a x\tabc\n_m", 4),
        (b"=_a!b\n_m", 3),
    ],
)
def test_a_message_without_a_method_or_with_a_fault_is_rejected_at_its_offset(
    data: bytes, offset: int
) -> None:
    with pytest.raises(RemoteError, match=rf"offset {offset}:") as caught:
        parse(data)
    assert caught.value.reason == Reason.MALFORMED


@pytest.mark.parametrize(
    "data",
    [
        b"=_a\t" + b"x" * 1025 + b"\n_m",
        b"=_a 1025\t",
        b"=_a 99999999999\t",
        b"=_a\t" + b"x" * 600 + b"\n=_b\t" + b"x" * 600 + b"\n_m",
        b"=" + b"_" * 257 + b"\n_m",
        b"_" * 257 + b"\n",
        b"_" * 257,
    ],
)
def test_what_is_too_large_is_refused_without_waiting_for_the_rest(data: bytes) -> None:
    with pytest.raises(RemoteError) as caught:
        parse(data, _SMALL)
    assert caught.value.reason == Reason.TOO_LARGE


def test_reserved_operators_are_left_out_with_a_reason() -> None:
    packet = parse(b"?_a\n:_b\t1\n@_c\t2\n!_d\n_m")
    assert packet.modifiers == (Modifier(":", "_b", b"1"),)
    assert packet.ignored == tuple(
        Ignored(modifier, Reason.UNSUPPORTED, "a reserved operator")
        for modifier in (Modifier("?", "_a", b""), Modifier("@", "_c", b"2"), Modifier("!", "_d", b""))
    )


def test_the_method_is_known_before_the_body_is_complete_and_data_follows_with_right_offsets() -> None:
    section = render([Modifier(":", "_a", b"1")], "_m")
    message = encode_header(Header(len(section))) + section + b"abc"
    read = read_header(message)
    assert read is not None
    header, at = read
    parser = Parser()
    parser.feed(message[at : at + header.modifier_bytes - 1])
    assert parser.packet_head is None
    assert parser.take() == b""
    parser.feed(message[at + header.modifier_bytes - 1 : -1])
    assert parser.packet_head == ((Modifier(":", "_a", b"1"),), "_m")
    assert parser.offset == header.modifier_bytes
    assert parser.take() == b"ab"
    parser.feed(b"c")
    assert parser.offset - header.modifier_bytes == 2
    assert parser.take() == b"c"


def test_a_section_that_ends_before_its_length_is_refused() -> None:
    with pytest.raises(RemoteError, match="offset 3: "):
        parse_section(b"_m\nx")


def test_a_request_with_a_persistent_modifier_is_refused() -> None:
    check_transient([Modifier(":", "_a", b"1")])
    for operator in "=+-":
        with pytest.raises(RemoteError) as caught:
            check_transient([Modifier(":", "_a", b"1"), Modifier(operator, "_b", b"1")])
        assert caught.value.reason == Reason.NOT_ALLOWED


@pytest.mark.parametrize(
    ("modifier", "method", "reason"),
    [
        (Modifier("?", "_a", b""), "_m", Reason.UNSUPPORTED),
        (Modifier("=", "", b""), "_m", Reason.MALFORMED),
        (Modifier("=", "_a\tb", b""), "_m", Reason.MALFORMED),
        (Modifier("=", "_a", b""), "_m\n", Reason.MALFORMED),
        (Modifier("=", "_a", b""), "", Reason.MALFORMED),
    ],
)
def test_nothing_is_rendered_that_would_not_be_parsed_back(
    modifier: Modifier, method: str, reason: Reason
) -> None:
    with pytest.raises(Refused) as caught:
        render([modifier], method)
    assert caught.value.reason == reason
