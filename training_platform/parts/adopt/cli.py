"""``training-platform adopt``: stack files and import files for the existing resources of a project."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from training_platform.cli.answers import Answers
from training_platform.cli.shared import (
    PATH,
    Format,
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
    from training_platform.clients.project_contents import Contents
    from training_platform.parts.adopt.adoption import AdoptedStack, Plan


@click.command(
    epilog=example("training-platform adopt example-train-prod --stack prod --production --kubeconfig ~/.kube/config")
)
@click.argument("project", help="Google Cloud project id.")
@click.option("--stack", required=True, help="Stack to write; its resources are called STACK-KEY.")
@click.option("--production/--no-production", default=None, help="Whether the rules for production apply.")
@click.option(
    "--only", multiple=True, help="Adopt only this, by its name or the end of its path; * is any text. Repeatable."
)
@click.option("--leave-out", multiple=True, help="Do not adopt this, named as for --only. Repeatable.")
@click.option(
    "--region",
    "regions",
    multiple=True,
    help="Read Vertex AI in this region too; default: the regions of clusters and instances. Repeatable.",
)
@click.option(
    "--keep-replaced", is_flag=True, help="Also write resources that the stack would replace; default: leave them out."
)
@click.option("--overwrite", is_flag=True, help="Overwrite existing files.")
@click.option("--dry-run", is_flag=True, help="Print the changes, and write nothing.")
@format_option
@click.option("--kubeconfig", help="Read objects of clusters by this kubeconfig; default: do not read them.")
@local_cloud_option
@root_option
def adopt(
    *,
    project: str,
    stack: str,
    production: bool | None,
    only: tuple[str, ...],
    leave_out: tuple[str, ...],
    regions: tuple[str, ...],
    keep_replaced: bool,
    overwrite: bool,
    dry_run: bool,
    output_format: Format,
    kubeconfig: str | None,
    local_cloud: str | None,
    root: Path | None,
) -> None:
    """Write the closest stack files for an existing project, and the files that import its resources.

    Needs the extra `adopt`, and application default credentials unless with --local-cloud.
    Prints changes of the first update by field, and settings that no stack file can express. Changes nothing in the
    project. Exit code 1: something is left out or would change. 2: nothing could be read or written.
    """
    need("adopt", "adopt")  # before the imports, some of which need the extra
    from training_platform.config.reading.section import Name, fits
    from training_platform.parts.adopt.adoption import adopt_environment, adopt_teams, as_json, lines
    from training_platform.parts.adopt.cluster_objects import reach_clusters, read_queues

    if not fits(Name, stack):
        fail(
            f"--stack {stack!r} is not a stack name: at most 30 lower-case letters, digits and dashes, a letter first."
        )
    folder = repository(root)
    answers = Answers()
    says_production = answers.production(production)
    answers.end()
    contents = _contents(project, regions, only, leave_out, local_cloud)
    clusters = reach_clusters(stack, contents, kubeconfig) if kubeconfig else {}
    contents, queues = replace(contents, clusters=clusters), read_queues(stack, clusters)
    plan = planner(folder)
    home = adopt_environment(
        stack, contents, plan, production=says_production, queues=queues, keep_replaced=keep_replaced
    )
    stacks = [home, *adopt_teams(home, contents, plan, queues=queues, keep_replaced=keep_replaced)]
    if output_format == "json":
        print_json({"unread": contents.unread, "stacks": [as_json(adopted) for adopted in stacks]})
    else:
        for line in lines(stacks, contents.unread):
            say(line)
    if not dry_run:
        _write(folder, stacks, overwrite=overwrite, quiet=output_format == "json")
    sys.exit(int(any(adopted.left_out or adopted.changes for adopted in stacks)))


def _contents(
    project: str, regions: Sequence[str], only: Sequence[str], leave_out: Sequence[str], local_cloud: str | None
) -> Contents:
    """Return the contents to adopt. Exits if there are none."""
    from training_platform.clients.project_contents import read_contents
    from training_platform.parts.adopt.adoption import SELECTABLE, selected

    contents = selected(read_contents(project, regions, local_cloud), only, leave_out)
    if not any(contents.of(kind) for kind in SELECTABLE):
        fail(f"{project} has no clusters, Filestore instances, buckets or persistent resources that could be adopted.")
    return contents


def planner(folder: Path) -> Plan:
    """Return the planner of a stack beside those of a repository, which exits if the model rejects a file."""
    from training_platform.checks.repository_copy import repository_copy
    from training_platform.config.workspace import read_workspace, stack_file
    from training_platform.resources.stack_plan import stack_plan
    from training_platform.resources.stack_resource import StackResource

    def plan(texts: Mapping[str, str], name: str) -> list[StackResource]:
        with repository_copy(folder, {stack_file(stack): text for stack, text in texts.items()}) as copy:
            workspace = read_workspace(copy)
            stack = workspace.stacks[name]
            composed = None if stack.findings else stack_plan(stack, workspace)
            if composed is None:
                for finding in stack.findings:
                    say(str(finding), err=True)
                fail("no valid stack file describes what is in the project; nothing was written.")
            return composed.planned()

    return plan


def _write(folder: Path, stacks: Sequence[AdoptedStack], *, overwrite: bool, quiet: bool) -> None:
    """Write all files of each stack or none; overwriting existing files needs a flag or a confirmation."""
    from training_platform.checks.output import write_files

    texts = {f"stacks/Pulumi.{stack.name}.yaml": stack.text for stack in stacks}
    texts |= {name: json.dumps(content, indent=2) for stack in stacks for name, content in stack.imports.items()}
    existing = " and ".join(name for name in texts if (folder / name).exists())
    if existing and not overwrite and sys.stdin.isatty():
        overwrite = click.confirm(f"{existing}: already exists. Overwrite?")
    if existing and not overwrite:
        fail(f"{existing}: already exists and was not changed; --overwrite replaces, --dry-run only reports.")
    write_files({folder / name: text for name, text in texts.items()})
    if quiet:
        return
    for stack in stacks:
        files = list(stack.imports)
        say(f"{', '.join([f'stacks/Pulumi.{stack.name}.yaml', *files])}: written. Next, if the stack has no state:")
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
    standard input, prints the state. Exit code 2: one of the files cannot be read.
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
    say(f"{len(changed)} resources put right: {', '.join(changed) or 'none'}", err=True)
