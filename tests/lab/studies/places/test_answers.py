"""What jobs say, in words."""

from __future__ import annotations

from tests.lab.studies.places.conftest import Looked

from linnet.lab.studies.places.answers import JOBS
from linnet.lab.studies.places.columns import ANSWERS
from linnet.lab.studies.places.report import SAYS


def test_every_job_has_its_words_and_each_answer_a_key_of_its_own(looked: Looked) -> None:
    assert set(SAYS) == set(JOBS)
    assert looked.ours.columns == [column.split()[0] for column in ANSWERS.columns.split(", ")]
    assert looked.ours.groupBy(*ANSWERS.grain).count().where("count > 1").count() == 0


def test_answers_read_as_they_should(looked: Looked) -> None:
    place = looked.truths.where("lie IS NULL AND lost = 0").first()
    assert place is not None
    told = {(row.job, row.key): row.answer for row in looked.ours.where(f"place = {place.place}").collect()}
    messages = [answer.split(" ") for (job, _), answer in told.items() if job == "messages"]
    assert {whole for whole, _, _ in messages} <= {"true", "false"}
    assert {len(text) for _, _, text in messages} == {64}
    assert not [key for job, key in told if job in ("gaps", "generations")]
    assert {answer for (job, _), answer in told.items() if job == "hashes"} <= {"true"}
    read = [answer for (job, _), answer in told.items() if job == "parsed" and " " in answer]
    assert int(told["methods", ""]) == len(read) > 0
