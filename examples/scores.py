"""A Gaussian study: each vote is a measured difference of two scores, such as the points of two programs on one test.

`sigma` is the standard deviation of one difference. The guarantee assumes that it is not too small.
"""

import numpy as np

import shortlist

POINTS = {"program a": 71.0, "program b": 70.2, "program c": 66.0, "program d": 64.5, "program e": 58.0}
NOISE = 8.0  # standard deviation of the score of one test


def main() -> None:
    rng = np.random.default_rng(1)
    study = shortlist.create_study(
        list(POINTS), k=2, delta=0.05, family="gaussian", sigma=NOISE * np.sqrt(2), bound=50.0, tolerance=1.0
    )
    while not study.verdict.done:
        question = study.ask()
        first, second = (POINTS[item] + rng.normal(0, NOISE) for item in (question.first, question.second))
        study.tell(question, first - second)
    print(study.verdict)
    print(f"Guarantee: {study.verdict.guarantee}.")
    for item, rating in sorted(study.utilities.items(), key=lambda entry: -entry[1]):
        print(f"  {item}  {rating:+5.1f} points from the mean")


if __name__ == "__main__":
    main()
