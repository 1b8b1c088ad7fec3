"""What a run cost, and what its judge is like."""

from dataclasses import dataclass, replace


@dataclass
class Costs:
    """Everything that was paid for, and what was not."""

    calls: int = 0  # every try, also one that was cut short
    saved: int = 0  # calls not made because the answer was known
    retries: int = 0
    unclear: int = 0  # tries that gave no usable answer: refusals, garbage, time-outs
    skips: int = 0  # questions closed without a vote
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def copy(self) -> "Costs":
        """These costs as they are now."""
        return replace(self)


@dataclass(frozen=True)
class JudgeStats:
    """How a judge treats positions. Sides are shown by fair coin, so a judge who ignores them has a share near 1/2."""

    judge: str
    answers: int = 0
    first_wins: float = 0.0  # a tie counts half
    both: int = 0  # questions asked in both orders
    flips: int = 0  # of these, where the two orders gave different winners

    @property
    def first_share(self) -> float | None:
        """How often the item shown first was preferred."""
        return self.first_wins / self.answers if self.answers else None

    @property
    def flip_rate(self) -> float | None:
        """How often the judge changed its mind when the sides were turned round."""
        return self.flips / self.both if self.both else None

    def after(self, outcome: float, tie: float) -> "JudgeStats":
        """With one more answer, seen from the item shown first."""
        return replace(self, answers=self.answers + 1, first_wins=self.first_wins + _lean(outcome, tie))

    def after_both(self, one: float, other: float, tie: float) -> "JudgeStats":
        """With one more question asked in both orders, both outcomes seen from the same item."""
        flipped = _lean(one, tie) != _lean(other, tie)
        return replace(self, both=self.both + 1, flips=self.flips + flipped)


def _lean(outcome: float, tie: float) -> float:
    return 0.5 if outcome == tie else float(outcome > tie)
