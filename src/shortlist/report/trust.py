"""Can it be trusted? One line a question, and the numbers behind it."""

from shortlist.findings.findings import Findings
from shortlist.findings.trust import Check, percent
from shortlist.report.markup import Child, Html, folded, name, table, tag
from shortlist.report.words import count, small

READING = (
    "What can be seen in the votes of what the guarantee supposes. A sign to look is no proof that something is wrong, "
    "and no sign is no proof that all is well."
)
SIGNS = {"fine": "✓ fine", "look": "! have a look", "unknown": "? not known"}


def trust_section(found: Findings) -> Html:
    return tag(
        "section",
        tag("h2", "Can it be trusted?"),
        tag("p", READING, class_="note"),
        tag("ul", [_check(check) for check in found.trust.checks], class_="checks"),
        _upsets(found), _cycles(found), _residuals(found),
    )  # fmt: skip


def _check(check: Check) -> Html:
    sign = tag("span", SIGNS[check.sign], class_=f"sign {check.sign}")
    return tag("li", sign, " · ", tag("strong", f"{check.name}."), " ", check.says)


def _upsets(found: Findings) -> Child:
    upsets = found.trust.upsets.strongest
    if not upsets:
        return None
    rows = [
        [name(one.outsider), name(one.member), count(one.won), count(one.lost), small(one.p_value)] for one in upsets
    ]
    head = ("outsider", "ahead of", "won", "lost", "p")
    caption = "Outsiders ahead of members of the answer in their direct votes, the surest first"
    return folded("Pairs that speak against the answer", table(caption, head, rows, frozenset({2, 3, 4})))


def _cycles(found: Findings) -> Child:
    cycles = found.trust.cycles.strongest
    if not cycles:
        return None
    rows = []
    for cycle in cycles:
        a, b, c = map(name, cycle.items)
        score = ", ".join(f"{count(won)}:{count(lost)}" for won, lost in zip(cycle.won, cycle.lost, strict=True))
        rows.append([[a, " > ", b, " > ", c, " > ", a], score, small(cycle.p_value)])
    caption = "Circles by majority, the surest first; p holds for one triple, and there are many"
    return folded("Circles", table(caption, ("circle", "votes", "p"), rows, frozenset({2})))


def _residuals(found: Findings) -> Child:
    residuals, wins = found.trust.misfit.residuals, found.problem.family.win is not None
    if not residuals:
        return None

    def told(value: float) -> str:
        return percent(value) if wins else f"{value:.3g}"

    rows = [
        [name(one.better), name(one.worse), count(one.votes), told(one.share), told(one.expected), f"{one.z:.1f}"]
        for one in residuals
    ]
    head = ("item", "against", "votes", "won" if wins else "mean", "by the fit", "deviations")
    caption = "Pairs that differ most from the fit, in standard deviations"
    return folded("Where the fit is worst", table(caption, head, rows, frozenset({2, 3, 4, 5})))
