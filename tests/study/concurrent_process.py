"""One of several processes that work on a study: concurrent_process.py URL JUDGE LOG. Writes down what it told."""

import sys
import time

import numpy as np

from shortlist import load_study
from shortlist.errors import NothingToAsk, StudyDone


def answer(question):
    return float(np.random.default_rng(question.id).random() < 0.5)


def main(url, judge, log):
    study = load_study("many", url)
    with open(log, "a") as file:
        while True:
            try:
                question = study.ask(judge=judge)
            except NothingToAsk:  # others have the last questions
                time.sleep(0.02)
                continue
            except StudyDone:
                return
            study.tell(question, answer(question))
            print(question.id, question.first, question.second, answer(question), file=file, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
