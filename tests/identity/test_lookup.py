from __future__ import annotations

from linnet.identity.lookup import SHOWN, Candidate, find_meant, list_candidates
from linnet.identity.text import Sort, to_text

ADA, BEA = (to_text(Sort.TOPIC, letter * 32) for letter in (b"a", b"b"))


def test_a_whole_id_counts_before_a_label_and_a_label_before_a_beginning() -> None:
    named, begun = Candidate(1, ADA, BEA), Candidate(2, BEA, "tea")
    assert find_meant(BEA, Sort.TOPIC, [named, begun]) == [begun]
    named = Candidate(1, ADA, BEA[:9])
    assert find_meant(BEA[:9], Sort.TOPIC, [named, begun]) == [named]
    assert find_meant(f" {BEA[:9].upper()}", Sort.TOPIC, [begun]) == [begun]


def test_the_prefix_alone_and_nothing_mean_none() -> None:
    assert not find_meant("lt1", Sort.TOPIC, [Candidate(1, ADA)])
    assert not find_meant("", Sort.TOPIC, [Candidate(1, ADA)])


def test_candidates_that_are_not_listed_are_counted() -> None:
    assert list_candidates([Candidate(1, ADA, "tea")]) == f"{ADA[:12]}… ('tea')"
    assert list_candidates([Candidate(number, ADA) for number in range(SHOWN + 3)]).endswith(", and 3 more")
