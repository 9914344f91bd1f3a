"""The result of a simulation as one page: what it means first, then plots, then every table. Nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from training_platform.checks.reports.html import el, joined, section_table, whole_page
from training_platform.simulate.results import ALL, LEFT_OUT, Result, headlines, sections

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 720, 140, 60, 20


def page(result: Result) -> str:
    """Return the page."""
    title = "training-platform simulate"
    lines = el("ul", (el("li", line) for line in headlines(result)))
    parts: list[tuple[str, str, Markup]] = [("summary", "In short", lines)]
    if waits := joined(*_wait_bars(result)):
        parts.append(("waits-plot", "How long nine of ten jobs wait at most", waits))
    parts.append(("levels", "Chips in use", joined(*_levels(result))))
    for number, section in enumerate(sections(result)):
        note = el("p", section.note, cls="note") if section.note else ""
        name = section.title[:1].upper() + section.title[1:]
        parts.append((f"table-{number}", name, joined(section_table(name, section), note)))
    footer = " ".join((*result.notes, f"Left out: {LEFT_OUT}."))
    return whole_page(title, el("p", f"Compared with {result.ref}" if result.base else "Simulated"), parts, footer)


def _wait_bars(result: Result) -> Iterator[Markup]:
    """Yield a bar for each team, and one for what it was in the base."""
    run, base = result.runs[0], result.base[0] if result.base else None
    keys = sorted({key for each in (run, base) if each for key in each.waits if key[2] == ALL})
    longest = max((each.waits[key].p90 for each in (run, base) if each for key in keys if key in each.waits), default=0)
    if not longest:
        return
    step = 36 if base else 22
    rows = []
    for number, key in enumerate(keys):
        y = number * step
        rows.append(el("text", f"{key[1]} ({key[0]})", x="0", y=y + 12, font_size="11", fill="currentColor"))
        for offset, each, opacity in ((0, run, "0.9"), (14, base, "0.35")):
            if each and key in each.waits:
                value = each.waits[key].p90
                width = 1 + 380 * value / longest
                rows.append(_rect(200, y + offset + 3, width, 10, opacity))
                hours = f"{value / 3600:.1f} h{' before' if each is base else ''}"
                rows.append(
                    el("text", hours, x=f"{206 + width:.0f}", y=y + offset + 12, font_size="11", fill="currentColor")
                )
    yield _svg(rows, len(keys) * step + 8, "90th percentile of the waits of each team, in hours")


def _levels(result: Result) -> Iterator[Markup]:
    """Yield, for each flavor, how many of its chips were in use over time; the dashed line is all of them."""
    run = result.runs[0]
    for key, levels in sorted(run.levels.items()):
        capacity, chips = run.capacity[key]
        before = result.base[0].levels.get(key) if result.base else None
        most = max([chips, *levels, *(before or ())], default=0) or 1
        title = el("h3", f"{key[1]} in {key[0]}: {run.utilisation[key]:.0%} of {chips:,} chips, {capacity}")
        rows = [_line(levels, most, "0.9")]
        if before:
            rows.append(_line(before, most, "0.35"))
        y = f"{_y(chips, most):.1f}"
        dashes = {"stroke": "currentColor", "stroke_dasharray": "4 4", "opacity": "0.6"}
        rows.append(el("line", x1=_LEFT, x2=_WIDTH, y1=y, y2=y, **dashes))
        rows.append(el("text", f"{most:,.0f}", x="0", y="12", font_size="11", fill="currentColor"))
        rows.append(el("text", "0", x="0", y=_HEIGHT - _BOTTOM, font_size="11", fill="currentColor"))
        yield joined(
            title, _svg(rows, _HEIGHT, f"Chips of {key[1]} in use, over {run.days:.0f} days and until all end")
        )


def _y(value: float, most: float) -> float:
    return 4 + (_HEIGHT - _BOTTOM - 4) * (1 - value / most)


def _line(levels: Sequence[float], most: float, opacity: str) -> Markup:
    step = (_WIDTH - _LEFT) / max(1, len(levels) - 1)
    points = " ".join(f"{_LEFT + number * step:.1f},{_y(value, most):.1f}" for number, value in enumerate(levels))
    return el("polyline", points=points, fill="none", stroke="currentColor", stroke_width="1.5", opacity=opacity)


def _rect(x: float, y: float, width: float, height: float, opacity: str) -> Markup:
    sizes = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
    return el("rect", fill="currentColor", opacity=opacity, **sizes)


def _svg(rows: Sequence[Markup], height: int, label: str) -> Markup:
    return el("svg", rows, viewBox=f"0 0 {_WIDTH} {height}", width="100%", role="img", aria_label=label)
