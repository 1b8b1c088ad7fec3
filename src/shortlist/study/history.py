"""What became of questions and votes, told from a study's records."""

from collections.abc import Iterable, Sequence

from shortlist.study.questions import Answer, Question
from shortlist.study.records import Asked, Cast, Imported, Record, Skipped, TakenBack, Told

Row = tuple[str, str, float, str | None]  # first, second, outcome, judge


def question_of(asked: Asked, items: Sequence[str]) -> Question:
    """The question as people see it."""
    return Question(asked.question, items[asked.first], items[asked.second], asked.judge, asked.bet, asked.case)


def answers(records: Iterable[Record], items: Sequence[str]) -> list[Answer]:
    """All questions in the order asked, with what became of them."""
    found: dict[int, Answer] = {}
    for record in records:
        match record:
            case Asked():
                found[record.question] = Answer(question_of(record, items))
            case Told(question, outcome):
                found[question] = Answer(found[question].question, outcome, True)
            case Skipped(question, _):
                found[question] = Answer(found[question].question, None, True)
            case TakenBack(votes, _):
                for cast in votes:
                    if cast.question is not None:
                        found[cast.question] = Answer(found[cast.question].question, cast.outcome, True, True)
    return list(found.values())


def votes_that_count(records: Sequence[Record], items: Sequence[str]) -> list[Row]:
    """All votes that were not taken back, imported ones too, in the order they came in."""
    taken = [record for record in records if isinstance(record, TakenBack)]
    gone = {cast.question for record in taken for cast in record.votes}
    voided = {record.judge for record in taken for cast in record.votes if cast.question is None}
    asked: dict[int, Question] = {}
    rows: list[Row] = []
    for record in records:
        match record:
            case Asked():
                asked[record.question] = question_of(record, items)
            case Told(number, outcome) if number not in gone:
                rows.append((asked[number].first, asked[number].second, outcome, asked[number].judge))
            case Imported():
                names = ([items[i] for i in side] for side in (record.first, record.second))
                given = zip(*names, record.outcome, record.judge, strict=True)
                rows += (row for row in given if row[3] is None or row[3] not in voided)
    return rows


def casts(records: Iterable[Record], judge: str | None) -> dict[int, Cast | None]:
    """The vote on each question that this judge answered, None if it was taken back."""
    asked: dict[int, Asked] = {}
    found: dict[int, Cast | None] = {}
    for record in records:
        match record:
            case Asked() if record.judge == judge:
                asked[record.question] = record
            case Told(question, outcome) if question in asked:
                there = asked[question]
                found[question] = Cast(question, there.first, there.second, outcome, there.bet)
            case TakenBack(votes, _):
                found |= {cast.question: None for cast in votes if cast.question in found}
    return found
