"""A few numbers for Prometheus, written by hand: a client library would be more code than this page.

Each worker counts for itself and says so in the label `worker`; sum over it. A scrape reaches one worker.
"""

import os
import threading
from collections import Counter, defaultdict

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


class Metrics:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._slower: Counter[tuple[str, float]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._votes: Counter[str] = Counter()

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[method if method in METHODS else "other", route, status] += 1
            self._seconds[route] += seconds
            for bucket in BUCKETS:
                if seconds <= bucket:
                    self._slower[route, bucket] += 1

    def vote(self, status: str) -> None:
        with self._lock:
            self._votes[status] += 1

    def text(self) -> str:
        """The exposition format, version 0.0.4."""
        with self._lock:
            requests, slower = dict(self._requests), dict(self._slower)
            seconds, votes = dict(self._seconds), dict(self._votes)
        worker = f'worker="{os.getpid()}"'
        lines = ["# HELP shortlist_requests_total Requests answered.", "# TYPE shortlist_requests_total counter"]
        for (method, route, status), count in sorted(requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}",{worker}'
            lines.append(f"shortlist_requests_total{{{labels}}} {count}")
        lines += ["# HELP shortlist_votes_total Answers of judges.", "# TYPE shortlist_votes_total counter"]
        lines += [
            f'shortlist_votes_total{{status="{status}",{worker}}} {count}' for status, count in sorted(votes.items())
        ]
        lines += ["# HELP shortlist_request_seconds Time to answer.", "# TYPE shortlist_request_seconds histogram"]
        for route in sorted(seconds):
            lines += _histogram(route, worker, requests, slower, seconds[route])
        return "\n".join(lines) + "\n"


def _histogram(
    route: str,
    worker: str,
    requests: dict[tuple[str, str, int], int],
    slower: dict[tuple[str, float], int],
    sum_: float,
) -> list[str]:
    count = sum(number for (_, where, _), number in requests.items() if where == route)
    labels, name = f'route="{route}",{worker}', "shortlist_request_seconds"
    rows = [f'{name}_bucket{{{labels},le="{bucket}"}} {slower.get((route, bucket), 0)}' for bucket in BUCKETS]
    rows.append(f'{name}_bucket{{{labels},le="+Inf"}} {count}')
    return [*rows, f"{name}_sum{{{labels}}} {sum_:.6f}", f"{name}_count{{{labels}}} {count}"]
