"""The result of a simulation as one page: what it means first, then plots, then every table. Nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from training_platform.checks.reports.html import el, joined, section_table, whole_page
from training_platform.parts.simulate.results import Result, duration, headlines, sections

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 720, 140, 60, 20
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
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
    courses = [drawing for name, drawing in plots(result) if name.startswith("waits-")]
    if courses:
        parts.append(("courses", "Waits over the trace", joined(*courses)))
    levels = [drawing for _, drawing in _levels(result)]
    parts.append(("levels", "Chips in use", joined(*levels)))
    for number, section in enumerate(sections(result)):
        note = el("p", section.note, cls="note") if section.note else ""
        name = section.title[:1].upper() + section.title[1:]
        parts.append((f"table-{number}", name, joined(section_table(name, section), note)))
    origin = el("p", f"Compared with {result.ref}" if result.base else "Simulated")
    return whole_page("training-platform simulate", origin, parts, " ".join(result.remarks))


def plot_files(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of an SVG file for each plot; drawn in black on white, for any reader."""
    for name, drawing in plots(result):
        text = str(drawing)[drawing.index("<svg") :]
        text = text.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg" color="black"', 1)
        yield f"{_UNSAFE.sub('-', name)}.svg", f"{text}\n"


def plots(result: Result) -> Iterator[tuple[str, Markup]]:
    """Yield, by name, the waits of each team and the chips in use of each flavor over time; the base is dashed."""
    run, base = result.runs[0], result.base[0] if result.base else None
    for key in sorted({*run.courses, *(base.courses if base else ())}):
        courses = [part.courses.get(key, []) for part in (run, base) if part]
        if any(value for course in courses for value in course):
            cluster, team = key
            label = f"Median wait of {team} in {cluster} in hours, over {run.days:.0f} days"
            yield f"waits-{cluster}-{team}", joined(el("h3", label), lines(courses, None, label))
    for name, drawing in _levels(result):
        yield f"chips-{name}", drawing


def _levels(result: Result) -> Iterator[tuple[str, Markup]]:
    """Yield, for each flavor in use, how many of its chips were over time; the horizontal line is all of them."""
    run = result.runs[0]
    for key, levels in sorted(run.levels.items()):
        cluster, flavor, capacity = key
        row = run.rows["flavors"][key]
        chips, before = row["chips"] or 0, result.base[0].levels.get(key, []) if result.base else []
        if not any((*levels, *before)):
            continue
        title = el("h3", f"{flavor} in {cluster}: {row['utilisation'] or 0:.0%} of {chips:,} chips, {capacity}")
        label = f"Chips of {flavor} in use, over {run.days:.0f} days and until all end"
        yield f"{cluster}-{flavor}", joined(title, lines([levels, before] if before else [levels], chips, label))


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


def lines(curves: Sequence[Sequence[float | None]], limit: float | None, label: str) -> Markup:
    """Return a drawing of curves over the same time, from 0 up, the second dashed, and a dotted line at a limit."""
    most = max(limit or 0, *(value or 0 for curve in curves for value in curve)) or 1

    def y(value: float) -> str:
        return f"{4 + (_HEIGHT - _BOTTOM - 4) * (1 - value / most):.1f}"

    drawn = [_text(f"{most:,.3g}" if most < 100 else f"{most:,.0f}", 0, 12), _text("0", 0, _HEIGHT - _BOTTOM)]
    for curve, dashes in zip(curves, ("none", "7 4"), strict=False):
        step = (_WIDTH - _LEFT) / max(1, len(curve) - 1)
        known = [(number, value) for number, value in enumerate(curve) if value is not None]
        points = " ".join(f"{_LEFT + number * step:.1f},{y(value)}" for number, value in known)
        drawn.append(el("polyline", points=points, fill="none", stroke="currentColor", stroke_width="1.5",
                        stroke_dasharray=dashes))  # fmt: skip
    if limit is not None:
        drawn.append(el("line", x1=_LEFT, x2=_WIDTH, y1=y(limit), y2=y(limit), stroke="currentColor",
                        stroke_dasharray="1 3", opacity="0.6"))  # fmt: skip
    return _svg(drawn, _HEIGHT, label)


def _text(text: str, x: int, y: int) -> Markup:
    return el("text", text, x=x, y=y, font_size="11", fill="currentColor")


def _svg(drawn: Sequence[Markup], height: int, label: str, **more: str) -> Markup:
    return el("svg", drawn, viewBox=f"0 0 {_WIDTH} {height}", width="100%", role="img", aria_label=label, **more)
