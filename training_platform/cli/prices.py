"""``training-platform prices``: the list prices for the estimates of reports and ``job cost``."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from training_platform.cli.shared import Commands, example, fail, repository, root_option, say, today_option

if TYPE_CHECKING:
    from training_platform.config.workspace import Workspace

app = Commands("prices", help="List prices by which reports and job cost estimate.")
_SHOWN = 12  # names in a line, without --verbose


@app.command("pull", epilog=example("training-platform prices pull --region us-central1"))
@click.option("--region", "regions", multiple=True, help="Regions to read; repeatable; default: those of all stacks.")
@click.option("--dry-run", is_flag=True, help="Print what would be written, and write nothing.")
@click.option("--verbose", "-v", is_flag=True, help="Name everything that has no price.")
@click.option("--endpoint", metavar="URL", help="Another Cloud Billing, such as a local server.")
@today_option
@root_option
def pull(
    *,
    regions: tuple[str, ...],
    dry_run: bool,
    verbose: bool,
    endpoint: str | None,
    today: str | None,
    root: Path | None,
) -> None:
    """Read list prices from the Cloud Billing Catalog into stacks/list-prices.yaml.

    Needs the extra `quota`, application default credentials, and the Cloud Billing API in their project. Prices of
    stacks/prices.yaml come first, and its discounts apply to these. Names all SKUs and machine types without a price.
    Exit code 2: the catalogue could not be read, and nothing was written.
    """
    from training_platform.catalog import REGIONS
    from training_platform.catalog.nearest import find_nearest
    from training_platform.checks.output import write_files
    from training_platform.checks.process import progress_bar
    from training_platform.clients.price_pull import CloudBilling, pull_prices
    from training_platform.config.own_prices import LISTED_FILE
    from training_platform.config.reading.clock import today as clock
    from training_platform.config.workspace import read_workspace

    folder = repository(root)
    for region in regions:
        if region not in REGIONS:
            fail(f"--region {region!r} is not a region. Nearest: {find_nearest(region, REGIONS)}.")
    chosen = set(regions) or _regions(read_workspace(folder))
    if not chosen:
        fail("No stack file that could be read names a region; name one: training-platform prices pull --region REGION")
    api = CloudBilling(endpoint)
    with progress_bar() as progress:
        pulled = pull_prices(api, chosen, clock(folder, today), progress)
    if not dry_run:
        write_files({folder / LISTED_FILE: pulled.text})
    counts = f"{len(pulled.machines):,} machine types and {len(pulled.services):,} services"
    say(f"{LISTED_FILE}: {'not written' if dry_run else 'written'}; {counts} in {', '.join(pulled.regions)}")
    unknown = [f"{name} ({count:,})" for name, count in pulled.unknown.most_common()]
    for title, names in (
        ("without a list price", pulled.missing),
        ("SKUs that could not be read", pulled.unread),
        ("SKUs of machines that the catalogue does not know", unknown),
    ):
        _say_names(title, names, most=len(names) if verbose else _SHOWN)


def _say_names(title: str, names: Collection[str], most: int) -> None:
    if names:
        rest = f", and {len(names) - most:,} more (--verbose)" if len(names) > most else ""
        say(f"  {title}: {len(names):,}: {', '.join(list(names)[:most])}{rest}")


def _regions(workspace: Workspace) -> set[str]:
    """Return the regions of the stacks' machines."""
    from training_platform.catalog.locations import region_of

    places = [cluster.location for _, section in workspace.environments() for cluster in section.clusters.values()]
    for _, team, _ in workspace.teams():
        places += [row.region for row in team.vertex.persistent_resources.values()]
    return {region_of(place) for place in places}
