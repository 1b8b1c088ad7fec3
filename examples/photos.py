"""Start from a CSV file of votes on photos, see what it proves, and ask more questions until the top 2 is proved."""

import tempfile
from pathlib import Path

import numpy as np

import shortlist

BEAUTY = {
    "bridge.jpg": 1.6,
    "harbour.jpg": 1.1,
    "market.jpg": 0.1,
    "station.jpg": -0.4,
    "tower.jpg": -0.9,
    "wall.jpg": -1.5,
}
PEOPLE = ["ann", "bob", "cid", "dee"]
rng = np.random.default_rng(4)


def ask_somebody(first: str, second: str) -> str:
    """Return the photo that a person prefers. People are simulated here."""
    return first if rng.random() < 1 / (1 + np.exp(BEAUTY[second] - BEAUTY[first])) else second


def collect(file: Path, votes: int) -> None:
    """Write a file like that of a survey: two photos, the preferred side, and the person."""
    rows = ["left,right,winner,worker"]
    for number in range(votes):
        left, right = rng.choice(list(BEAUTY), 2, replace=False)
        side = "left" if ask_somebody(left, right) == left else "right"
        rows.append(f"{left},{right},{side},{PEOPLE[number % len(PEOPLE)]}")
    file.write_text("\n".join(rows) + "\n")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "votes.csv"
        collect(file, 120)
        table = shortlist.read_votes(file)
    study = shortlist.create_study(list(BEAUTY), k=2, delta=0.05)
    first, second = ([table.items[number] for number in side.tolist()] for side in (table.first, table.second))
    study.import_votes(first, second, table.outcome.tolist(), table.judge, "votes.csv")
    print(f"After the survey: {study.examine()}")
    while not study.verdict.done:
        question = study.ask(judge=PEOPLE[rng.integers(len(PEOPLE))])  # drawn at random, not chosen by earlier answers
        study.tell(question, winner=ask_somebody(question.first, question.second))
    print(f"After {study.verdict.votes - 120} more questions: {study.verdict}")


if __name__ == "__main__":
    main()
