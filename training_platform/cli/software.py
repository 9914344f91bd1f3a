"""``training-platform software``: finds newer versions of installed charts, and digests of images."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from training_platform.cli.shared import (
    Commands,
    Format,
    example,
    fail,
    format_option,
    print_json,
    repository,
    root_option,
    say,
)

if TYPE_CHECKING:
    from training_platform.clients.registries import Registries
    from training_platform.config.workspace import Workspace

app = Commands("software", help="Versions of the charts and digests of the images that the platform installs.")


@app.command("outdated", epilog=example("training-platform software outdated"))
@format_option
@root_option
def outdated(output_format: Format, root: Path | None) -> None:
    """Look up newer versions of the catalogue's charts and of environments' charts in their registries.

    Needs the network. A newer minor version is only shown, since `docs/upgrade.md` prescribes the order of such
    upgrades. Exit code 1: a chart has a newer release of its minor version. 2: a registry did not answer.
    """
    from training_platform.clients.failures import ApiError
    from training_platform.clients.registries import Registries
    from training_platform.config.workspace import read_workspace

    client = Registries()
    rows = []
    unasked = []
    for used_by, name, chart, repo, version in _charts(read_workspace(repository(root))):
        try:
            row = _row(client, chart, repo, version)
        except ApiError as error:
            unasked.append(str(error))
            continue
        rows.append({"chart": name, "used_by": used_by, "version": version, **row})
    if output_format == "json":
        print_json({"charts": rows, "not_asked": unasked})
    else:
        for row in rows:
            newer = [
                f"{row[key]} {says}"
                for key, says in (("patch", "of its minor version"), ("newest", "newest"))
                if row[key]
            ]
            verdict = f"newer: {', '.join(newer)}" if newer else "the newest"
            say(f"{row['chart']} {row['version']} ({row['used_by']}): {verdict}")
    for sentence in unasked:
        say(f"training-platform: {sentence}", err=True)
    sys.exit(2 if unasked else int(any(row["patch"] for row in rows)))


_CATALOGUE = "training_platform/catalog/data/software.yaml"


@app.command("digests", epilog=example("training-platform software digests --write"))
@click.option("--write", is_flag=True, help=f"Write them to {_CATALOGUE}.")
@root_option
def digests(root: Path | None, *, write: bool) -> None:
    """Look up the digests of the catalogue's images that have only a tag.

    Needs the network. Requests to Google's registries use application default credentials. A digest identifies the
    image that the tag points to today; it does not prove that the image is right. Exit code 1: an image has no digest
    in the catalogue. 2: a registry did not answer.
    """
    from training_platform.catalog import IMAGES
    from training_platform.checks.output import write_files
    from training_platform.clients.failures import ApiError
    from training_platform.clients.registries import Registries, google_token

    file = repository(root) / _CATALOGUE
    if write and not file.is_file():
        fail(f"{_CATALOGUE} is not in this repository. Name images by digest in `node_images` of the environment.")
    client = Registries(token=google_token)
    text = file.read_text(encoding="utf-8") if write else ""
    tagged = {name: image for name, image in IMAGES.items() if "@" not in image}
    unasked = []
    for name, image in tagged.items():
        try:
            pinned = _pinned(image, client.digest(image))
        except ApiError as error:
            unasked.append(str(error))
            continue
        say(f"{name}: {pinned}")
        text = text.replace(f'"{image}"', f'"{pinned}"')
    if write:
        write_files({file: text})
    for sentence in unasked:
        say(f"training-platform: {sentence}", err=True)
    sys.exit(2 if unasked else int(bool(tagged) and not write))


def _pinned(image: str, digest: str) -> str:
    """Return an image's name with its digest. A tag is kept, unless it is ``latest``.

    Vertex AI refuses a name with both a tag and a digest. Source: kubeflow/pipelines 8490 (2022-11-22), read
    2026-11-28.
    """
    return f"{image.removesuffix(':latest')}@{digest}"


def _charts(workspace: Workspace) -> list[tuple[str, str, str, str | None, str]]:
    """Return each chart of the catalogue and of environments: who uses it, its name, chart, repository and version."""
    from training_platform.catalog import CHARTS

    charts = {name: [("catalogue", name, row.chart, row.repository, row.version)] for name, row in CHARTS.items()}
    for stack, environment in workspace.environments():
        for name, setting in environment.charts.items():
            row = CHARTS[name]
            chart = setting.chart or row.chart
            version = setting.version or row.version
            if chart.startswith("oci://") or setting.repository or setting.chart is None:  # a folder has no versions
                repository = setting.repository or (None if setting.chart else row.repository)
                charts[name].append((stack.name, name, chart, repository, version))
    return [chart for rows in charts.values() for chart in dict.fromkeys(rows)]


def _row(client: Registries, chart: str, repo: str | None, version: str) -> dict[str, str | None]:
    """Return the newest release of the same minor version and the newest of all, each if newer. Raises ApiError."""
    from training_platform.clients.failures import ApiError
    from training_platform.clients.registries import parse

    versions = client.versions(chart, repo)
    now = parse(version)
    if not versions:
        raise ApiError(f"{chart} has no release.")
    same = [release for release in versions if parse(release)[:2] == now[:2]]
    patch = same[-1] if same and parse(same[-1]) > now else None
    newest = versions[-1] if parse(versions[-1]) > now and versions[-1] != patch else None
    return {"patch": patch, "newest": newest}
