"""Waiting in tests: for an event, never for a time. The one limit only ends a test that hangs."""

import time

PATIENCE = 900.0  # seconds; far more than the slowest machine needs


def wait_until(condition, pause=0.01):
    """Wait until the condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(pause)


def is_running(pid):
    """Whether there is such a process; one that has ended and waits for its parent does not count."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_gone(pid):
    wait_until(lambda: not is_running(pid))
