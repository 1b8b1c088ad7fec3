"""A judge for test_killed_run.py: answers by what it is asked alone, after a pause that nobody can foresee, and writes
down that it was asked. It holds its answers back once the log has as many lines as the file LOG.allowance says, so that
a run cannot end before it is killed, however slow the killer is."""

import fcntl
import hashlib
import json
import math
import os
import sys
import time
from pathlib import Path


def better_first(*words):
    """One of two answers, fixed for all time by these words."""
    return hashlib.blake2b(repr(words).encode(), digest_size=1).digest()[0] < 140


def allowance(log):
    """How many answers may be given in all."""
    try:
        with open(f"{log}.allowance") as file:
            return int(file.read() or 0)
    except FileNotFoundError:
        return math.inf


def allow(log, calls):
    """Let the judge give so many answers in all; None is all."""
    place = Path(f"{log}.allowance")
    if calls is None:
        return place.unlink(missing_ok=True)
    fresh = place.with_suffix(".new")
    fresh.write_text(str(calls))
    return fresh.replace(place)


def write_down(log, words):
    """Write into the log that this was asked, unless the allowance is used up. Other judges wait for the lock."""
    with open(log, "r+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if sum(1 for _ in file) >= allowance(log):
            return False
        file.write(json.dumps(words).encode() + b"\n")
        return True


def main(log):
    run = os.getppid()
    open(log, "ab").close()
    for line in sys.stdin:
        asked = json.loads(line)
        case = asked["case"]
        words = (asked["id"],) if case is None else (case["id"], asked["first"], asked["second"])
        while not write_down(log, words):
            time.sleep(0.02)
            if os.getppid() != run:
                return  # nobody waits for the answer
        time.sleep(0.02 + 0.06 * os.urandom(1)[0] / 255)
        winner = "first" if better_first(*words) else "second"
        print(json.dumps({"id": asked["id"], "winner": winner}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
