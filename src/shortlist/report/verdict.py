"""The answer and what it rests on, and how the error bound got there."""

from shortlist.findings.findings import Findings
from shortlist.plots.course import plot_error_bound
from shortlist.report.markup import Html, name, tag
from shortlist.report.svg import inline_svg
from shortlist.report.words import count, day, plural, small

SUPPOSES = {
    "edges": "It also supposes fresh votes, and judges who are drawn, not chosen for a question; it needs no model.",
}
OF_A_STUDY = ("Asked by", "Imported", "Skipped, late, taken back", "First record", "Last record")
MEANS = (
    "For every level fixed beforehand, the chance of ever showing a wrong answer with a bound at or below it is "
    "at most the level. It is not the probability of being wrong given these votes. Later votes may raise it again."
)


def verdict_section(found: Findings) -> Html:
    verdict, k, n = found.verdict, found.problem.k, found.problem.n
    state = "Proved" if verdict.reason == "certified" else "Best guess, not proved"
    answer = tag(
        "section",
        tag("p", tag("strong", f"{state}: the top {k} of {n}"), f" after {plural(verdict.votes, 'vote')}."),
        tag("ol", [tag("li", name(item)) for item in verdict.top]) if verdict.votes else tag("p", "No votes yet."),
        tag("p", _ending(found)),
        class_="answer" if verdict.reason == "certified" else "answer open",
        aria_label="Verdict",
    )
    promise = tag(
        "p", tag("strong", "Guarantee: "), f"{verdict.guarantee}. ", SUPPOSES.get(found.certificate.name, ""),
    )  # fmt: skip
    notes = [tag("p", f"{text[0].upper()}{text[1:]}.", class_="note") for text in _notes(found)]
    return Html(answer + promise + "".join(notes) + _figures(found))


def _ending(found: Findings) -> str:
    verdict = found.verdict
    bound = f"Error at most {small(verdict.error_bound)}" if verdict.error_bound < 1 else "Nothing is proved yet"
    if verdict.reason == "certified":
        return f"{bound}; {found.problem.delta:g} was allowed."
    if verdict.done:
        return f"The vote budget is used up. {bound}."
    if found.entries is None:
        return f"{bound}; the wanted error is {found.problem.delta:g}."
    return f"{bound}; the study goes on until the error is at most {found.problem.delta:g}."


def _notes(found: Findings) -> list[str]:
    events, notes = found.events, []
    if found.paused:
        notes.append("the study is paused: no questions are given out")
    if events.out:
        notes.append(f"{plural(events.out, 'question')} still out; until answered, they count as lost by both sides")
    if events.voided:
        notes.append(f"voided, with all their votes: {', '.join(events.voided)}")
    extra = round(found.ballots.votes) - found.verdict.votes
    if found.verdict.done and extra > 0:
        notes.append(f"{plural(extra, 'vote')} came after the verdict; they are in the tables, not in the verdict")
    if found.advice:
        notes.append(found.advice)
    return notes


def _figures(found: Findings) -> Html:
    verdict, events, problem = found.verdict, found.events, found.problem
    rows = {
        "Error bound now": small(verdict.error_bound), "Allowed error δ": f"{problem.delta:g}",
        "Votes": count(verdict.votes), "Votes to go, about": _left(verdict.votes_left, verdict.done),
        "Certainly in, out, undecided": f"{len(verdict.certainly_in)}, {len(verdict.certainly_out)}, "
        f"{len(verdict.undecided)}",
        "Judges named": count(len(found.trust.agreement.judges) + found.trust.agreement.others),
        "Asked by": found.method or "others", "Stopped by": found.certificate.name, "Votes are": problem.family.name,
        "Tolerance": f"{problem.tolerance:g}" if problem.tolerance else "none",
        "Imported": count(events.imported), "Skipped, late, taken back": f"{events.skipped}, {events.late}, "
        f"{events.taken_back}",
        "First record": day(events.began), "Last record": day(events.ended),
    }  # fmt: skip
    if found.entries is None:
        rows = {title: text for title, text in rows.items() if title not in OF_A_STUDY}
    return tag("dl", [tag("div", tag("dt", title), tag("dd", text)) for title, text in rows.items()])


def _left(left: float | None, done: bool) -> str:
    if done:
        return "0"
    return "not known" if left is None or not left < 1e9 else count(left)


def bound_section(found: Findings) -> Html:
    course = found.bounds
    if len(course.votes) < 2:
        shown = tag("p", f"{(course.note or 'no votes yet').capitalize()}.", class_="note")
    else:
        delta = found.problem.delta
        below = next((votes for votes, bound in zip(course.votes, course.bound, strict=True) if bound <= delta), None)
        says = f"After {count(course.votes[-1])} votes the bound is {small(course.bound[-1])}. " + (
            f"It is above {delta:g} throughout." if below is None else f"It reached {delta:g} at {count(below)} votes."
        )
        plot = inline_svg("bound", lambda ax: plot_error_bound(found, ax), (4.0, 2.1), "Error bound over time", says)
        shown = tag("figure", plot, tag("figcaption", says, " ", MEANS))
    return tag("section", tag("h2", "How sure, over time"), shown)
