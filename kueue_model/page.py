"""Shows the result of a simulation as one HTML page without external files: conclusions, then plots, then tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from markupsafe import Markup

from kueue_model.results import Figures, Result, duration, headlines, sections
from training_platform.checks.reports.markup import el, joined, section_table, whole_page

_WIDTH: Final = 720
_HEIGHT: Final = 140
_LEFT: Final = 60
_BOTTOM: Final = 20
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_OPACITIES: Final = (0.9, 0.35)  # of the current run, and of the base
Bar = tuple[str, float]


def page(result: Result, title: str) -> str:
    """Return the HTML page with the given title."""
    summary = el("ul", (el("li", line) for line in headlines(result)))
    parts: list[tuple[str, str, Markup]] = [("summary", "In short", summary)]
    waits = _waits_by_team(result)
    if any(value for bars_of_team in waits.values() for _, value in bars_of_team):
        label = "90th percentile of the waits of each team"
        parts.append(("waits-plot", "Nine of ten jobs wait no longer than this", bars(waits, label)))
    courses = [drawing for name, drawing in plots(result) if name.startswith("waits-")]
    if courses:
        parts.append(("courses", "Waits over the trace", joined(*courses)))
    levels = [drawing for _, drawing in _levels(result)]
    parts.append(("levels", result.words("Chips in use"), joined(*levels)))
    for number, section in enumerate(sections(result)):
        note = el("p", section.note, cls="note") if section.note else ""
        name = section.title[:1].upper() + section.title[1:]
        parts.append((f"table-{number}", name, joined(section_table(name, section), note)))
    origin = el("p", f"Compared with {result.ref}" if result.base else "Simulated")
    return whole_page(title, origin, parts, " ".join(result.remarks))


def _waits_by_team(result: Result) -> dict[str, list[Bar]]:
    """Return bars for each team: one for its waits, and one for its waits in the base."""
    runs = {"": result.runs[0]}
    if result.base:
        runs[" before"] = result.base[0]
    teams = sorted({(key.cluster, key.team) for run in runs.values() for key in run.waits})
    waits: dict[str, list[Bar]] = {}
    for cluster, team in teams:
        team_bars = waits.setdefault(f"{team} ({cluster})", [])
        for suffix, run in runs.items():
            seconds = run.wait(cluster, team)
            if seconds is not None:
                team_bars.append((f"{duration(seconds)}{suffix}", seconds))
    return waits


def plot_files(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the name and content of an SVG file for each plot, in black on white."""
    for name, drawing in plots(result):
        text = str(drawing)[drawing.index("<svg") :]
        text = text.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg" color="black"', 1)
        yield f"{_UNSAFE.sub('-', name)}.svg", f"{text}\n"


def plots(result: Result) -> Iterator[tuple[str, Markup]]:
    """Yield named plots: each team's waits, and each flavor's chips in use over time. The base is drawn dashed."""
    sides = _first_runs(result)
    days = sides[0].days
    for cluster, team in sorted({key for run in sides for key in run.courses}):
        courses = [run.courses.get((cluster, team), []) for run in sides]
        if any(value for course in courses for value in course):
            label = f"Median wait of {team} in {cluster} in hours, over {days:.0f} days"
            yield f"waits-{cluster}-{team}", joined(el("h3", label), lines(courses, None, label))
    for name, drawing in _levels(result):
        yield f"chips-{name}", drawing


def _first_runs(result: Result) -> list[Figures]:
    """Return the first run, and the first run of the base, if any."""
    return [*result.runs[:1], *result.base[:1]]


def _levels(result: Result) -> Iterator[tuple[str, Markup]]:
    """Yield a plot of the chips in use over time for each flavor. A horizontal line shows its total number of chips."""
    run, *base = _first_runs(result)
    for key, levels in sorted(run.levels.items()):
        curves = [levels, *(earlier.levels[key] for earlier in base if earlier.levels.get(key))]
        if not any(value for curve in curves for value in curve):
            continue
        row = run.flavors[key]
        chips = row["chips"] or 0
        share = result.words(f"{row['utilisation'] or 0:.0%} of {chips:,} chips")
        title = el("h3", f"{key.flavor} in {key.cluster}: {share}, {key.provisioning_model}")
        label = f"{result.words('Chips')} of {key.flavor} in use, over {run.days:.0f} days and until all jobs end"
        yield f"{key.cluster}-{key.flavor}", joined(title, lines(curves, chips, label))


def bars(groups: Mapping[str, Sequence[Bar]], label: str, **attributes: str) -> Markup:
    """Return a bar chart with labelled groups."""
    largest = max((value for group in groups.values() for _, value in group), default=0) or 1
    label_width = min(320, 12 + 6 * max(map(len, groups), default=0))
    shapes: list[Markup] = []
    y = 0
    for name, group in groups.items():
        shapes.append(_text(name, 0, y + 12))
        for (bar_label, value), opacity in zip(group, _OPACITIES, strict=False):
            width = 1 + (_WIDTH - label_width - 170) * value / largest
            bar = el(
                "rect",
                x=label_width,
                y=y + 3,
                width=f"{width:.1f}",
                height="10",
                fill="currentColor",
                opacity=f"{opacity}",
            )
            shapes.extend((bar, _text(bar_label, round(label_width + 6 + width), y + 12)))
            y += 14
        y += 8
    return _svg(shapes, y, label, **attributes)


def lines(curves: Sequence[Sequence[float | None]], limit: float | None, label: str) -> Markup:
    """Return a line chart that starts at 0. The second curve is dashed, and a dotted line marks the limit."""
    largest = max(limit or 0, *(value or 0 for curve in curves for value in curve)) or 1

    def y(value: float) -> str:
        return f"{4 + (_HEIGHT - _BOTTOM - 4) * (1 - value / largest):.1f}"

    top_label = f"{largest:,.3g}" if largest < 100 else f"{largest:,.0f}"
    shapes = [_text(top_label, 0, 12), _text("0", 0, _HEIGHT - _BOTTOM)]
    for curve, dashes in zip(curves, ("none", "7 4"), strict=False):
        step = (_WIDTH - _LEFT) / max(1, len(curve) - 1)
        points: list[str] = []
        for index, value in enumerate(curve):
            if value is not None:
                points.append(f"{_LEFT + index * step:.1f},{y(value)}")
        polyline = el(
            "polyline",
            points=" ".join(points),
            fill="none",
            stroke="currentColor",
            stroke_width="1.5",
            stroke_dasharray=dashes,
        )
        shapes.append(polyline)
    if limit is not None:
        height = y(limit)
        limit_line = el(
            "line",
            x1=_LEFT,
            x2=_WIDTH,
            y1=height,
            y2=height,
            stroke="currentColor",
            stroke_dasharray="1 3",
            opacity="0.6",
        )
        shapes.append(limit_line)
    return _svg(shapes, _HEIGHT, label)


def _text(text: str, x: int, y: int) -> Markup:
    return el("text", text, x=x, y=y, font_size="11", fill="currentColor")


def _svg(shapes: Sequence[Markup], height: int, label: str, **attributes: str) -> Markup:
    view_box = f"0 0 {_WIDTH} {height}"
    return el("svg", shapes, viewBox=view_box, width="100%", role="img", aria_label=label, **attributes)
