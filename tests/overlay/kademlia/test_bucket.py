"""A k-bucket: who has a place, who waits, who goes."""

from __future__ import annotations

from tests.overlay.kademlia.people import contact

from linnet.overlay.kademlia.bucket import Bucket

A, B, C, D, E, F = map(contact, range(6))


def full() -> Bucket:
    bucket = Bucket(3, 2, 2)
    assert [bucket.seen(each) for each in (A, B, C)] == [None] * 3
    return bucket


def test_the_least_recently_seen_comes_first() -> None:
    bucket = full()
    bucket.seen(A)
    assert bucket.contacts == (B, C, A)
    assert (bucket.held(A.peer), bucket.held(D.peer)) == (A, None)


def test_a_newcomer_waits_until_the_oldest_does_not_answer() -> None:
    bucket = full()
    assert bucket.seen(D) == A, "whom to ping"
    assert (bucket.contacts, bucket.waiting) == ((A, B, C), (D,))
    bucket.seen(A)
    assert (bucket.contacts, bucket.waiting) == ((B, C, A), (D,)), "it answered, and stays"
    assert bucket.seen(E) == B
    assert bucket.failed(B.peer, lambda _: True) == (True, E), "the last one seen of those who wait"
    assert (bucket.contacts, bucket.waiting) == ((C, A, E), (D,))


def test_only_so_many_wait() -> None:
    bucket = full()
    for each in (D, E, F):
        bucket.seen(each)
    assert bucket.waiting == (E, F)


def test_where_nobody_waits_a_place_is_kept_for_a_while() -> None:
    bucket = full()
    assert bucket.failed(B.peer, lambda _: True) == (False, None)
    assert bucket.contacts == (B, A, C), "it is the first to be pinged"
    bucket.seen(B)
    assert bucket.failed(B.peer, lambda _: True) == (False, None), "it was there in between"
    assert bucket.failed(B.peer, lambda _: True) == (True, None)
    assert list(bucket.contacts) == [A, C]
    assert bucket.failed(B.peer, lambda _: True) == (False, None)


def test_who_may_not_come_in_does_not_inherit() -> None:
    bucket = full()
    bucket.seen(D)
    bucket.seen(E)
    assert bucket.failed(A.peer, lambda each: each != E) == (True, D)
    bucket.drop(D.peer)
    assert bucket.contacts == (B, C)
