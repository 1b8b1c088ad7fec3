"""Up to which error each procedure is proved. Without the compiled loops, so that bad input speaks at once."""

from shortlist.errors import BadProblem

MAX_DELTA = 0.5  # of SEEKS
MAX_SHARE = 0.1  # of delta per item, for Borda scores; from about 0.23 on, the radius after one vote is no number


def check_delta(name: str, n: int, delta: float) -> None:
    """Raise BadProblem unless the baseline of that name is proved for this error."""
    if name.startswith("seeks"):
        if not delta < MAX_DELTA:
            raise BadProblem(f"delta is {delta}; SEEKS is proved for less than {MAX_DELTA}")
    elif not delta / n <= MAX_SHARE:
        raise BadProblem(f"delta is {delta}; Borda scores of {n} items need {MAX_SHARE * n:g} or less")
