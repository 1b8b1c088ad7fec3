"""A judge for test_kill.py: answers by what it is asked alone, after a pause that nobody can foresee, and writes down
that it was asked."""

import hashlib
import json
import os
import sys
import time


def better_first(*words):
    """One of two answers, fixed for all time by these words."""
    return hashlib.blake2b(repr(words).encode(), digest_size=1).digest()[0] < 140


def main(log):
    with open(log, "ab", buffering=0) as file:
        for line in sys.stdin:
            asked = json.loads(line)
            case = asked["case"]
            words = (asked["id"],) if case is None else (case["id"], asked["first"], asked["second"])
            file.write(json.dumps(words).encode() + b"\n")
            time.sleep(0.02 + 0.06 * os.urandom(1)[0] / 255)
            winner = "first" if better_first(*words) else "second"
            print(json.dumps({"id": asked["id"], "winner": winner}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
