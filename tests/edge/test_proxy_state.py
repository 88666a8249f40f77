"""What is known of one proxy."""

from __future__ import annotations

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.edge.edge_client import ProxyState

TEA, RAIN, SUN = (TopicId(letter * 32) for letter in (b"t", b"r", b"s"))


def proxy() -> ProxyState:
    made = ProxyState(Contact(PeerId(b"q" * 32), ("tls://q:1",)))
    made.used = made.up = True
    made.answers = {TEA: None, RAIN: Reason.TOO_MANY}
    made.pending = {7: (SUN,)}
    made.asked = dict.fromkeys((TEA, RAIN, SUN))
    made.told[TEA], made.seen[TEA], made.agreed[TEA] = {}, b"", b""
    return made


def test_what_it_said_tells_what_it_serves_and_what_it_was_asked() -> None:
    known = proxy()
    assert (known.served_topics, known.refused_topics) == ((TEA,), (RAIN,))
    assert [known.is_serving(topic) for topic in (TEA, RAIN, SUN)] == [True, False, False]
    assert [known.is_asked(topic) for topic in (TEA, RAIN, SUN)] == [True, True, True]
    assert not known.is_asked(TopicId(b"x" * 32))


def test_it_is_expected_until_it_is_missed_and_works_while_it_is_up() -> None:
    known = proxy()
    assert (known.is_usable, known.is_expected) == (True, True)
    known.up = False
    assert (known.is_usable, known.is_expected) == (False, True)
    known.is_missed = True
    assert not known.is_expected
    known.used, known.is_missed = False, False
    assert not known.is_expected


def test_when_it_goes_what_it_said_is_void_and_what_it_may_keep_is_remembered() -> None:
    known = proxy()
    assert known.end_service() == (TEA,)
    assert (known.answers, known.pending, known.seen, known.agreed) == ({}, {}, {}, {})
    assert known.asked == dict.fromkeys((TEA, RAIN, SUN))
    assert known.told == {TEA: {}}
    known.forget_stream(TEA)
    assert (known.told, TEA in known.asked) == ({}, False)
