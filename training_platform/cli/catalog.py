"""``training-platform catalog``: prints the catalogue's facts with their sources, and lists unverified facts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from training_platform.cli.shared import (
    Commands,
    Format,
    completion,
    example,
    fail,
    format_option,
    print_json,
    say_beside,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from training_platform.catalog.fact_sheets import Fact, Sheet, Value

_ACCELERATED = {"gpu": " with GPUs", "tpu": " with TPUs", "cpu": " without accelerators"}
_OF_ACCELERATOR = ("accelerator.name", "accelerator.title", "accelerator.hbm_gb", "accelerator.quotas")

app = Commands("catalog", help="The catalogue of machine types, accelerators, disks and charts.")


def _names() -> list[str]:
    from training_platform.catalog.fact_sheets import sheets

    return [sheet.name for sheet in sheets()]


@app.command("show", epilog=example("training-platform catalog show a3-highgpu-8g"))
@click.argument(
    "name",
    shell_complete=completion(_names),
    help="A machine type, accelerator, disk type, Filestore tier, chart, chart release, image or model server.",
)
@click.option("--verbose", "-v", is_flag=True, help="Print every fact, including empty ones.")
@format_option
def show(name: str, verbose: bool, output_format: Format) -> None:
    """Print the facts of a row with units and source. Facts without a primary source are marked.

    Exit code 2: the catalogue has no such name.
    """
    from training_platform.catalog.fact_sheets import sheets

    named = sheets_of(name)
    if not named:
        _unknown(f"{name!r} is not in the catalogue", name, {sheet.name for sheet in sheets()})
    print_sheets(named, output_format, verbose=verbose)


@app.command("list", epilog=example("training-platform catalog list --gpu h100 --region us-central1"))
@click.option("--gpu", help="Only machine types with this GPU or TPU, such as h100.")
@click.option("--region", help="Only machine types with a zone in this region.")
@click.option("--zone", help="Only machine types in this zone.")
@click.option(
    "--unverified", is_flag=True, help="List the facts without a primary source, and how each can be verified."
)
def list_(
    *,
    gpu: str | None,
    region: str | None,
    zone: str | None,
    unverified: bool,
) -> None:
    """List the names in the catalogue.

    Exit code 2: the catalogue has no such GPU, region or zone.
    """
    from training_platform.catalog.fact_sheets import sheets

    if unverified:
        if gpu or region or zone:
            fail("--unverified lists the whole catalogue; leave the filter out.")
        _list_unverified()
        return
    every_sheet = sheets()
    listed = sorted(every_sheet, key=_place)
    filters: tuple[tuple[str | None, str, Callable[[Sheet], set[str]]], ...] = (
        (gpu, "GPU or TPU", lambda sheet: {str(sheet.value("accelerator.name"))} - {"None"}),
        (region, "region with accelerators", lambda sheet: {zone.rpartition("-")[0] for zone in _zones(sheet)}),
        (zone, "zone with accelerators", _zones),
    )
    for value, kind, names_of in filters:
        if value is None:
            continue
        names = {name for sheet in every_sheet for name in names_of(sheet)}
        meant = {value} & names or {name for name in names if name.startswith(f"{value}-")}  # a100: a100-40 and a100-80
        if not meant:
            _unknown(f"{value!r} is not a {kind} in the catalogue", value, names)
        listed = [sheet for sheet in listed if meant & names_of(sheet)]
    heading = ""
    for sheet in listed:
        if _heading(sheet) != heading:
            click.echo(f"{chr(10) if heading else ''}{_heading(sheet)}")
            heading = _heading(sheet)
        say_beside(f"  {sheet.name:<24}", _brief(sheet))


def _heading(sheet: Sheet) -> str:
    """Return the heading above a row. Machine types are grouped by accelerator."""
    has = _ACCELERATED.get(str(sheet.value("kind"))) if sheet.kind == "machine type" else None
    return f"{sheet.kind}s{has or ''}"


def _place(sheet: Sheet) -> tuple[int, int, list[str | int]]:
    """Return the sorting key of a row: by kind, and then by name, in which numbers are compared as numbers."""
    from training_platform.catalog.fact_sheets import KINDS

    name: list[str | int] = [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", sheet.name)]
    accelerated = list(_ACCELERATED).index(str(sheet.value("kind"))) if sheet.kind == "machine type" else 0
    return list(KINDS).index(sheet.kind), accelerated, name


def _list_unverified() -> None:
    """Print each unverified fact, with the rows that have it and how to verify it."""
    from training_platform.catalog.fact_sheets import decision, in_code, undecided

    rows = [(kind, field, names, decision(kind, field)) for (kind, field), names in sorted(undecided().items())]
    rows += [("code", fact, [file], decided) for file, fact, decided in in_code()]
    for kind, field, names, decided in rows:
        more_names = f" and {len(names) - 3} more" if len(names) > 3 else ""
        click.echo(f"{kind} {field}: {', '.join(names[:3])}{more_names}")
        say_beside("  ", str(decided))


def sheets_of(name: str) -> list[Sheet]:
    """Return the fact sheets with a name; empty if the catalogue does not contain the name."""
    from training_platform.catalog.fact_sheets import sheets

    return [sheet for sheet in sheets() if sheet.name == name]


def print_sheets(shown: Iterable[Sheet], output_format: Format, *, verbose: bool = False) -> None:
    """Print fact sheets. As text, print only facts of the row itself, unless ``verbose``."""
    if output_format == "json":
        print_json(
            [
                {
                    "kind": sheet.kind,
                    "name": sheet.name,
                    "source": sheet.source,
                    "facts": [
                        {
                            "field": fact.field,
                            "value": fact.value,
                            "unit": fact.unit or None,
                            "unverified": fact.unverified,
                        }
                        for fact in sheet.facts
                    ],
                }
                for sheet in shown
            ]
        )
        return
    for sheet in shown:
        facts = sheet.facts if verbose else [fact for fact in sheet.facts if _is_telling(fact)]
        click.echo(f"{sheet.name}: {sheet.kind}")
        width = max(len(fact.field) for fact in facts)
        for fact in facts:
            mark = "  (unverified)" if fact.unverified else ""
            say_beside(
                f"  {fact.field:<{width}}  ", f"{_shown(fact.value)}{f' {fact.unit}' if fact.unit else ''}{mark}"
            )
        say_beside(f"  {'source':<{width}}  ", sheet.source)
        if any(fact.unverified for fact in facts):
            say_beside("  ", "(unverified): no primary source was read for it, or sources disagree.")


def _zones(sheet: Sheet) -> set[str]:
    zones = sheet.value("zones")
    return set(zones) if isinstance(zones, list) and sheet.kind == "machine type" else set()


def _is_telling(fact: Fact) -> bool:
    """Return True if a fact has a value, is not a source, and is not already on the sheet of the accelerator itself."""
    of_other = fact.field.startswith("accelerator.") and not fact.field.startswith(_OF_ACCELERATOR)
    return fact.value not in (None, [], False) and not fact.field.endswith(".source") and not of_other


def _shown(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value) or "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,g}" if isinstance(value, float) else value


def _brief(sheet: Sheet) -> str:
    """Return the facts that distinguish a row from similar ones, and the number of its unverified facts."""
    chosen = {
        "machine type": ("chips", "vcpus", "memory_gb", "capacities"),
        "accelerator": ("title", "hbm_gb", "peak_bf16_tflops"),
        "disk type": ("min_gb", "max_gb"),
        "Filestore tier": ("scope", "bands"),
        "Managed Lustre tier": ("bands",),
        "chart": ("version", "chart"),
        "image": ("image",),
        "release": ("chart", "minor"),
        "model server": ("port", "metric", "target"),
    }[sheet.kind]
    facts = {fact.field: fact for fact in sheet.facts}
    shown = ((facts[name].value, facts[name].unit) for name in chosen if facts[name].value)
    parts = [f"{_shown(value)} {unit.removesuffix('s') if value == 1 else unit}".strip() for value, unit in shown]
    if sheet.unverified:
        parts.append(f"{len(sheet.unverified)} unverified")
    return ", ".join(parts)


def _unknown(problem: str, name: str, names: Collection[str]) -> None:
    from training_platform.catalog.nearest import find_nearest
    from training_platform.config.reading.section import enumeration

    nearest = find_nearest(name, names)
    fail(f"{problem}. {f'Nearest: {nearest}.' if nearest else f'There are: {enumeration(names)}.'}")
