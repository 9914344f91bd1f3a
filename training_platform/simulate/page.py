"""The result of a simulation as one page: what it means first, then plots, then every table. Nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from training_platform.checks.reports.html import el, joined, section_table, whole_page
from training_platform.simulate.results import Result, duration, headlines, sections

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 720, 140, 60, 20
_OPACITIES = (0.9, 0.35)  # of what is, and of what was or of the others
Bar = tuple[str, float]


def page(result: Result) -> str:
    """Return the page."""
    lines = el("ul", (el("li", line) for line in headlines(result)))
    parts: list[tuple[str, str, Markup]] = [("summary", "In short", lines)]
    runs = {"": result.runs[0], **({" before": result.base[0]} if result.base else {})}
    teams = sorted({key[:2] for run in runs.values() for key in run.rows["waits"]})
    waits = {
        f"{team} ({cluster})": [
            (f"{duration(seconds)}{when}", seconds)
            for when, run in runs.items()
            if (seconds := run.wait((cluster, team), "p90_seconds")) is not None
        ]
        for cluster, team in teams
    }
    if any(value for rows in waits.values() for _, value in rows):
        label = "90th percentile of the waits of each team"
        parts.append(("waits-plot", "How long nine of ten jobs wait at most", bars(waits, label)))
    parts.append(("levels", "Chips in use", joined(*_levels(result))))
    for number, section in enumerate(sections(result)):
        note = el("p", section.note, cls="note") if section.note else ""
        name = section.title[:1].upper() + section.title[1:]
        parts.append((f"table-{number}", name, joined(section_table(name, section), note)))
    origin = el("p", f"Compared with {result.ref}" if result.base else "Simulated")
    return whole_page("training-platform simulate", origin, parts, " ".join(result.remarks))


def _levels(result: Result) -> Iterator[Markup]:
    """Yield, for each flavor in use, how many of its chips were over time; the dashed line is all of them."""
    run = result.runs[0]
    for key, levels in sorted(run.levels.items()):
        cluster, flavor, capacity = key
        row = run.rows["flavors"][key]
        chips, before = row["chips"] or 0, result.base[0].levels.get(key, []) if result.base else []
        if not any((*levels, *before)):
            continue
        title = el("h3", f"{flavor} in {cluster}: {row['utilisation'] or 0:.0%} of {chips:,} chips, {capacity}")
        label = f"Chips of {flavor} in use, over {run.days:.0f} days and until all end"
        yield joined(title, lines([levels, before] if before else [levels], chips, label))


def bars(groups: Mapping[str, Sequence[Bar]], label: str, **more: str) -> Markup:
    """Return a drawing of bars, each with its text, side by side by group."""
    most = max((value for rows in groups.values() for _, value in rows), default=0) or 1
    drawn, y, left = [], 0, min(320, 12 + 6 * max(map(len, groups), default=0))
    for name, rows in groups.items():
        drawn.append(_text(name, 0, y + 12))
        for (said, value), opacity in zip(rows, _OPACITIES, strict=False):
            width = 1 + (_WIDTH - left - 170) * value / most
            drawn.append(el("rect", x=left, y=y + 3, width=f"{width:.1f}", height="10", fill="currentColor",
                            opacity=f"{opacity}"))  # fmt: skip
            drawn.append(_text(said, round(left + 6 + width), y + 12))
            y += 14
        y += 8
    return _svg(drawn, y, label, **more)


def lines(curves: Sequence[Sequence[float]], limit: float, label: str) -> Markup:
    """Return a drawing of curves over the same time, from 0 up, and a dashed line at a limit."""
    most = max(limit, *(value for curve in curves for value in curve)) or 1

    def y(value: float) -> str:
        return f"{4 + (_HEIGHT - _BOTTOM - 4) * (1 - value / most):.1f}"

    drawn = [_text(f"{most:,.0f}", 0, 12), _text("0", 0, _HEIGHT - _BOTTOM)]
    for curve, opacity in zip(curves, _OPACITIES, strict=False):
        step = (_WIDTH - _LEFT) / max(1, len(curve) - 1)
        points = " ".join(f"{_LEFT + number * step:.1f},{y(value)}" for number, value in enumerate(curve))
        drawn.append(el("polyline", points=points, fill="none", stroke="currentColor", stroke_width="1.5",
                        opacity=f"{opacity}"))  # fmt: skip
    drawn.append(el("line", x1=_LEFT, x2=_WIDTH, y1=y(limit), y2=y(limit), stroke="currentColor",
                    stroke_dasharray="4 4", opacity="0.6"))  # fmt: skip
    return _svg(drawn, _HEIGHT, label)


def _text(text: str, x: int, y: int) -> Markup:
    return el("text", text, x=x, y=y, font_size="11", fill="currentColor")


def _svg(drawn: Sequence[Markup], height: int, label: str, **more: str) -> Markup:
    return el("svg", drawn, viewBox=f"0 0 {_WIDTH} {height}", width="100%", role="img", aria_label=label, **more)
