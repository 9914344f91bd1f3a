"""``training-platform adopt``: writes import files for a project's existing resources, and prints differences."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from training_platform.cli.shared import (
    PATH,
    Format,
    complete_stacks,
    example,
    fail,
    format_option,
    local_cloud_option,
    need,
    print_json,
    repository,
    root_option,
    say,
)

if TYPE_CHECKING:
    from training_platform.parts.adopt.adoption import AdoptedStack


@click.command(epilog=example("training-platform adopt example-train-prod --stack prod --kubeconfig ~/.kube/config"))
@click.argument("project", help="Google Cloud project id.")
@click.option(
    "--stack",
    required=True,
    shell_complete=complete_stacks,
    help="Stack to adopt; for an environment, its teams' stacks too.",
)
@click.option(
    "--region",
    "regions",
    multiple=True,
    help="Also read Vertex AI in this region; default: the regions of the plan, clusters and instances. Repeatable.",
)
@click.option("--overwrite", is_flag=True, help="Overwrite existing files.")
@click.option("--dry-run", is_flag=True, help="Print the changes, and write nothing.")
@format_option
@click.option("--kubeconfig", help="Read cluster objects with this kubeconfig; default: do not read them.")
@local_cloud_option
@root_option
def adopt(
    *,
    project: str,
    stack: str,
    regions: tuple[str, ...],
    overwrite: bool,
    dry_run: bool,
    output_format: Format,
    kubeconfig: str | None,
    local_cloud: str | None,
    root: Path | None,
) -> None:
    """Write the files that import a project's resources into the stacks that plan them.

    Needs the extra `adopt`, and application default credentials unless with --local-cloud. Prints each field that the
    first update would change, settings that no stack file can express, and resources that no stack plans. Changes
    nothing in the project. Exit code 1: adopting would change something, or the plan lacks an object. 2: the project or
    a file could not be read or written.
    """
    need("adopt", "adopt")  # before the imports, some of which need the extra
    from training_platform.clients.project_contents import read_contents
    from training_platform.config.workspace import read_workspace
    from training_platform.parts.adopt.adoption import (
        as_json,
        compared,
        lines,
        planned_regions,
        stacks_to_adopt,
        unplanned,
    )
    from training_platform.parts.adopt.cluster_objects import planned_clusters, reach_clusters
    from training_platform.resources.resource_types import CLUSTER
    from training_platform.resources.stack_plan import stack_plan

    folder = repository(root)
    workspace = read_workspace(folder)
    plans = {}
    for planned_stack in stacks_to_adopt(workspace, project, stack):
        plan = stack_plan(planned_stack, workspace)
        assert plan is not None  # every stack to adopt has a valid file
        plans[planned_stack.name] = plan.planned()
    resources = [resource for plan_resources in plans.values() for resource in plan_resources]
    contents = read_contents(project, {*regions, *planned_regions(resources)}, local_cloud)
    if kubeconfig:
        paths = sorted(planned_clusters(resources) & contents.of(CLUSTER).keys())
        contents = replace(contents, clusters=reach_clusters(paths, kubeconfig))
    stacks = [compared(name, plan_resources, contents) for name, plan_resources in plans.items()]
    unplanned_resources = unplanned(stacks, contents)
    if output_format == "json":
        print_json(
            {
                "unread": contents.unread,
                "stacks": [as_json(adopted) for adopted in stacks],
                "unplanned": [resource._asdict() for resource in unplanned_resources],
            }
        )
    else:
        for line in lines(stacks, unplanned_resources, contents.unread):
            say(line)
    if not dry_run:
        _write(folder, stacks, overwrite=overwrite, quiet=output_format == "json")
    sys.exit(int(bool(unplanned_resources) or any(adopted.changes for adopted in stacks)))


def _write(folder: Path, stacks: Sequence[AdoptedStack], *, overwrite: bool, quiet: bool) -> None:
    """Write either all import files or none. Overwriting existing files needs a flag or a confirmation."""
    from training_platform.checks.output import write_files

    texts = {name: json.dumps(content, indent=2) for stack in stacks for name, content in stack.imports.items()}
    existing = " and ".join(name for name in texts if (folder / name).exists())
    if existing and not overwrite and sys.stdin.isatty():
        overwrite = click.confirm(f"{existing}: already exists. Overwrite?")
    if existing and not overwrite:
        fail(f"{existing}: already exists and was not changed; --overwrite replaces it, --dry-run only reports.")
    write_files({folder / name: text for name, text in texts.items()})
    if quiet:
        return
    for stack in stacks:
        files = list(stack.imports)
        say(f"{', '.join(files)}: written. Next, if stack {stack.name} has no state:")
        for file in files:
            say(f"  pulumi import -s {stack.name} --file {file} --generate-code=false --protect=false")
        say(f"  pulumi stack export -s {stack.name} | training-platform adopt-state {' '.join(files)} > state.json")
        say(f"  pulumi stack import -s {stack.name} --file state.json && pulumi preview -s {stack.name}")


@click.command(
    epilog=example("pulumi stack export -s prod | training-platform adopt-state import-prod.json > state.json")
)
@click.argument(
    "imports", nargs=-1, required=True, type=PATH, help="The import files that `adopt` wrote and `pulumi import` read."
)
def adopt_state(imports: tuple[Path, ...]) -> None:
    """Correct a state after an import, between `pulumi stack export` and `pulumi stack import`.

    Removes inputs that the program ignores and the provider would refuse, and adds settings that no API returns. Reads
    the state from standard input, and prints the new one. Exit code 2: one of the files cannot be read.
    """
    need("adopt", "adopt-state")
    from training_platform.parts.adopt.import_file import is_export, is_import_file, settled

    rows: list[dict[str, Any]] = []
    for file in imports:
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            fail(f"{file} cannot be read: {error.strerror}.")
        except ValueError:
            document = None
        if not is_import_file(document):
            fail(f"{file} is not a file that adopt wrote.")
        rows += document["resources"]
    try:
        export = json.loads(sys.stdin.read())
    except ValueError:
        export = None
    if not is_export(export):
        fail("standard input is not an export of a stack, as `pulumi stack export` prints it.")
    state, changed = settled(export, {"resources": rows})
    print_json(state)
    say(f"{len(changed)} resources corrected: {', '.join(changed) or 'none'}", err=True)
