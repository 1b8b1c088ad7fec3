"""Sampling rules side by side, world by world: figures, and tables in Markdown for the documentation."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from experiments.method_styles import AXES, methods, runs, style_of, world_of
from experiments.races import OURS
from experiments.tables import Row

PANEL, ROW, HEAD, FOOT = (2.6, 2.3), 0.2, 0.8, 0.9  # inches: a panel of curves, a rule, a title, a legend
ACROSS, LEGEND = 4, 5  # panels and entries of the legend side by side
CLEAR = 2.0  # standard errors
MEAN = "mean of these worlds"


class Share(NamedTuple):
    """A mean over runs, or over worlds, with its standard error; and its difference from the reference."""

    mean: float
    error: float
    difference: float | None = None
    difference_error: float = 0.0

    @property
    def above(self) -> bool:
        """Whether it is clearly above the reference."""
        return self.difference is not None and self.difference > CLEAR * self.difference_error


def _share(row: Row) -> Share:
    apart = float(row["difference"]) if row["difference"] else None
    return Share(float(row["mean"]), float(row["standard_error"] or 0), apart, float(row["difference_error"] or 0))


def worlds_of(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each world, in the order of the table."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(world_of(row), []).append(row)
    return found


def mean_shares(rows: Sequence[Row]) -> dict[tuple[str, str], Share]:
    """The mean over worlds, each counting alike, by rule and number of votes; for rules that met all worlds."""
    worlds = worlds_of(rows).values()
    by_world = [{(row["method"], row["votes"]): _share(row) for row in world} for world in worlds]
    everywhere = [key for key in by_world[0] if all(key in world for world in by_world)]
    return {key: _mean([world[key] for world in by_world]) for key in everywhere}


def _mean(shares: Sequence[Share]) -> Share:
    means, errors, apart, apart_errors = zip(*shares, strict=True)
    differences = [value for value in apart if value is not None]
    difference = sum(differences) / len(shares) if len(differences) == len(shares) else None
    return Share(sum(means) / len(shares), _joined(errors), difference, _joined(apart_errors))


def _joined(errors: Sequence[float]) -> float:
    return math.sqrt(sum(error**2 for error in errors)) / len(errors)


def draw_exact(rows: Sequence[Row], title: str) -> Figure:
    """A panel of curves for each world, and one for their mean."""
    worlds = {
        name: {(row["method"], row["votes"]): _share(row) for row in own} for name, own in worlds_of(rows).items()
    }
    panels = {**worlds, MEAN: mean_shares(rows)} if len(worlds) > 1 else worlds
    names = methods(rows)
    across = min(len(panels), ACROSS)
    down, lines = math.ceil(len(panels) / across), math.ceil(len(names) / LEGEND)
    size = max(PANEL[0] * across, 5.0), PANEL[1] * down + HEAD + ROW * lines
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(f"{title}\nall rules meet the same worlds and the same coins; mean ± standard error", fontsize=9)
    grid = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for axes, (name, shares) in zip(grid, panels.items(), strict=False):
        for method in names:
            _draw_shares(axes, method, {int(votes): share for (rule, votes), share in shares.items() if rule == method})
        _vote_axis(axes, sorted({int(row["votes"]) for row in rows}))
        axes.set_title(name, fontweight="bold" if name == MEAN else "normal")
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    figure.supylabel(AXES["exact"], fontsize=8)
    handles = [_handle(method, f"{style_of(method).label}, {runs(rows, method)}") for method in names]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(LEGEND, across + 1), frameon=False, fontsize=7)
    return figure


def _look(method: str) -> dict[str, Any]:
    """Ours are thick, the default most of all, and stand out from the bridge, which has its colour."""
    style, thick = style_of(method), {OURS[0]: 2.4}.get(method, 1.4 if method in OURS else 0.9)
    return {
        "color": style.colour, "marker": style.marker, "linestyle": "--" if method == "bridge" else style.line,
        "linewidth": thick, "markersize": 4.5 if method in OURS else 3.5, "zorder": 3 if method in OURS else 2,
    }  # fmt: skip


def _handle(method: str, label: str) -> Line2D:
    return Line2D([], [], label=label, **_look(method))


def _draw_shares(axes: Axes, method: str, shares: dict[int, Share]) -> None:
    votes = sorted(shares)
    means, errors = [shares[mark].mean for mark in votes], [shares[mark].error for mark in votes]
    axes.errorbar(votes, means, errors, capsize=0, elinewidth=0.5, **_look(method))


def _vote_axis(axes: Axes, votes: Sequence[int]) -> None:
    axes.set_xscale("log")
    axes.set_xticks(votes, [f"{mark:,}" for mark in votes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(AXES["votes"])
    axes.set_ylim(-0.02, 1.02)


def draw_proofs(rows: Sequence[Row], title: str) -> Figure:
    """A panel for each world with a line for each rule; an open arrow means that some runs ended without a proof."""
    worlds, names = worlds_of(rows), methods(rows)[::-1]
    figure = Figure(figsize=(2.6 * len(worlds) + 2.4, ROW * len(names) + HEAD + 0.5), layout="constrained")
    said = "every rule with the same stopping rule, on the same coins; mean ± standard error"
    figure.suptitle(f"{title}\n{said}\nopen: so many runs have a proof, the others were cut off", fontsize=9)
    grid = figure.subplots(1, len(worlds), squeeze=False, sharey=True)[0]
    for axes, (name, own) in zip(grid, worlds.items(), strict=True):
        for row in own:
            _draw_proof(axes, names.index(row["method"]), row)
        axes.set_title(name)
        _proof_axis(axes, rows)
    grid[0].set_yticks(range(len(names)), [style_of(method).label for method in names])
    return figure


def _draw_proof(axes: Axes, place: int, row: Row) -> None:
    mean, error, proved, runs = (float(row[name] or 0) for name in ("mean", "standard_error", "proved", "runs"))
    style, whole = style_of(row["method"]), proved == runs
    axes.errorbar(
        [mean], [place], xerr=[error] if whole else None, color=style.colour, marker="o" if whole else ">", capsize=2,
        elinewidth=0.8,
        markersize=6 if row["method"] in OURS else 4.5, markerfacecolor=style.colour if whole else "white",
    )  # fmt: skip
    if not whole:
        axes.annotate(
            f"{proved:.0f} of {runs:.0f}", (mean, place), (-5, 0), textcoords="offset points", fontsize=6,
            ha="right", va="center",
        )  # fmt: skip


def _proof_axis(axes: Axes, rows: Sequence[Row]) -> None:
    axes.set_xscale("log")
    low, high = (limit(float(row["mean"]) for row in rows) for limit in (min, max))
    axes.set_xlim(0.7 * low, 1.25 * high)
    ticks = [mark for mark in (500, 1000, 2000, 5000, 10000, 20000, 50000) if 0.7 * low < mark < 1.25 * high]
    axes.set_xticks(ticks)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(AXES["proofs"])


def markdown(rows: Sequence[Row], measure: str, reference: str) -> Iterator[str]:
    """The tables of the documentation, line by line."""
    if measure == "proofs":
        yield from _proof_table(rows)
        return
    marks = list(dict.fromkeys(row["votes"] for row in rows))
    shares, names = mean_shares(rows), [method for method in methods(rows) if method != reference]
    yield f"Mean of {len(worlds_of(rows))} worlds; in brackets: less `{reference}`, in the runs that both have."
    yield ""
    yield from _header("sampling rule", [f"{int(mark):,} votes" for mark in marks])
    for method in (reference, *names):
        told = [_told(shares[method, mark]) if (method, mark) in shares else "" for mark in marks]
        yield _line(f"`{method}`", told)
    middle = "500" if "500" in marks else marks[-1]
    yield ""
    yield f"After {middle} votes, world by world:"
    yield ""
    worlds = worlds_of([row for row in rows if row["votes"] == middle])
    yield from _header("sampling rule", list(worlds))
    for method in (reference, *names):
        yield _line(f"`{method}`", [_world_cell(own, method) for own in worlds.values()])
    yield ""
    yield from _above(rows, shares, reference)


def _header(first: str, others: Sequence[str]) -> Iterator[str]:
    yield _line(first, others)
    yield "|---" * (len(others) + 1) + "|"


def _line(first: str, others: Sequence[str]) -> str:
    return f"| {first} | " + " | ".join(others) + " |"


def _told(share: Share) -> str:
    if share.difference is None:
        return f"{share.mean:.3f} ± {share.error:.3f}"
    return f"{share.mean:.3f} ({_signed(share)})"


def _signed(share: Share) -> str:
    assert share.difference is not None
    return f"{share.difference:+.3f} ± {share.difference_error:.3f}".replace("-", "−")


def _world_cell(rows: Sequence[Row], method: str) -> str:
    found = [row for row in rows if row["method"] == method]
    return f"{float(found[0]['mean']):.3f} ± {float(found[0]['standard_error'] or 0):.3f}" if found else ""


def _above(rows: Sequence[Row], shares: dict[tuple[str, str], Share], reference: str) -> Iterator[str]:
    """Where a rule is clearly above the reference, in the mean and on single worlds."""
    mean = [f"`{method}` at {votes} votes" for (method, votes), share in shares.items() if share.above]
    yield f"Above `{reference}` by more than two standard errors in the mean: {', '.join(mean) or 'none'}."
    single = [row for row in rows if _share(row).above]
    told = [f"`{row['method']}` on {world_of(row)} at {row['votes']} ({_signed(_share(row))})" for row in single]
    count = sum(bool(row["difference"]) for row in rows)
    yield f"On a single world, {len(single)} of {count} comparisons: {'; '.join(told) or 'none'}."


def _proof_table(rows: Sequence[Row]) -> Iterator[str]:
    worlds = worlds_of(rows)
    yield from _header("sampling rule", list(worlds))
    for method in methods(rows):
        found = [next((row for row in own if row["method"] == method), None) for own in worlds.values()]
        yield _line(f"`{method}`", ["" if row is None else _proof_cell(row) for row in found])


def _proof_cell(row: Row) -> str:
    mean, error, proved, count = float(row["mean"]), float(row["standard_error"] or 0), row["proved"], row["runs"]
    wrong = f", {int(proved) - int(row['correct'])} wrong" if row["correct"] != proved else ""
    if proved == count:
        return f"{mean:,.0f} ± {error:,.0f} ({count}{wrong})"
    return f"{proved} of {count} proved{wrong}" + (f", over {mean:,.0f}" if int(proved) else "")
