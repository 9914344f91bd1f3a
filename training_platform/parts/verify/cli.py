"""``training-platform verify``: prints the plan of its probes, runs them, and writes a report to send."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from training_platform.cli.shared import (
    PATH,
    complete_stacks,
    example,
    fail,
    line_width,
    local_cloud_option,
    need,
    repository,
    root_option,
    say,
)

if TYPE_CHECKING:
    from training_platform.config.model.environment import Environment
    from training_platform.parts.verify.object_record import Maker, ObjectRecord
    from training_platform.parts.verify.probes import Probe

_STAGES = ("project", "network", "cluster", "pools", "queues", "storage", "vertex", "monitoring", "tenancy")
_PAGE = "monitoring-page"
_WIDTH = 160
_SAME_RUN = ("where", "stacks", "probes", "options")
"""The fields of a run that must be the same as in the last run if that is to be continued."""
_FORMATS = {".html": "html", ".json": "json", ".txt": "text"}


@click.command(epilog=example("training-platform verify dev --kubeconfig ~/.kube/config --report probe_report.html"))
@click.argument("environment", shell_complete=complete_stacks, help="Environment to verify, with its teams.")
@click.option("--stage", "stages", multiple=True, type=click.Choice(_STAGES), help="Only this stage. Repeatable.")
@click.option(
    "--probe",
    "names",
    multiple=True,
    metavar="NAME",
    help="Only this probe and the probes that it depends on. Repeatable.",
)
@click.option("--kubeconfig", help="Connect to the clusters with this kubeconfig; default: leave the clusters out.")
@click.option(
    "--group", metavar="ADDRESS", help="Test group of a team; it is impersonated to test what its members may do."
)
@click.option("--account", metavar="ADDRESS", help="Service account in that group, to test the group's rights.")
@click.option("--page", is_flag=True, help="Send a test alert to the environment's addresses, and prompt for its code.")
@click.option(
    "--report", "files", multiple=True, type=PATH, help="Also write FILE.html, FILE.json or FILE.txt. Repeatable."
)
@click.option(
    "--facts", "only_facts", is_flag=True, help="Only compare the catalogue with Google's lists for the project."
)
@click.option("--plan", "only_plan", is_flag=True, help="Print the plan and send no request.")
@click.option("--anew", is_flag=True, help="Start a new run; default: continue an interrupted one.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--wait", type=click.FloatRange(1), default=600.0, metavar="SECONDS", help="Maximum wait for one object.")
@local_cloud_option
@root_option
def verify(
    *,
    environment: str,
    stages: tuple[str, ...],
    names: tuple[str, ...],
    kubeconfig: str | None,
    group: str | None,
    account: str | None,
    page: bool,
    files: tuple[Path, ...],
    only_facts: bool,
    only_plan: bool,
    anew: bool,
    yes: bool,
    wait: float,
    local_cloud: str | None,
    root: Path | None,
) -> None:
    """Verify a deployed environment: test which promises of its plan and documentation hold in its project.

    Run `pulumi preview --refresh --expect-no-changes` first: it shows all differences from the plan.

    Needs the extra `adopt`, and application default credentials unless with --local-cloud. Prints its plan first.
    Before a probe creates an object, a record in .verify/ names it. The object is deleted after the probe. If the
    command is killed, its next run deletes the remaining objects and continues. It deletes nothing else. The report
    contains no address of a person, no project and no secret. Exit code 0: no promise is refuted. 1: a promise is
    refuted. 2: no probe was decided, or a probe ended because of a bug in training-platform.

    --facts runs no probe. It compares machine types and quota ids in the catalogue with the lists of the project,
    and prints the differences as a patch of the catalogue's data files for `git apply`. It also checks the versions
    that GKE offers, the regions of Vertex AI, and whether registries have the catalogue's charts and images.
    """
    need("verify", "verify")
    from training_platform.checks.output import check_writable, write_files
    from training_platform.checks.process import progress_bar
    from training_platform.config.workspace import read_workspace
    from training_platform.parts.verify import probe_report, probe_run
    from training_platform.parts.verify.object_record import ObjectRecord, locked
    from training_platform.parts.verify.probe_table import chosen_probes

    repository_root = repository(root)
    for path in files:
        if path.suffix not in _FORMATS:
            fail(f"--report {path}: the file name must end with {' or '.join(_FORMATS)}.")
    check_writable(files)
    workspace = read_workspace(repository_root)
    probe_run.stack_names(workspace, environment)
    spec = next(spec for stack, spec in workspace.environments() if stack.name == environment)
    if only_facts:
        _print_facts(environment, spec, local_cloud)
        return
    probes = chosen_probes(stages=stages, names=names, further=[_PAGE] if page else [])
    _print_plan(probes)
    if only_plan:
        return
    records = probe_run.folder_of(repository_root, environment)
    options = (group or "", account or "", kubeconfig or "")
    head = probe_run.head_of(repository_root, environment, spec.project, local_cloud, probes, options=options)
    with locked(records):
        previous = ObjectRecord.latest(records)
        if previous is not None and not anew and _can_continue(previous, head):
            record = previous
            say(f"Continuing {record.path.name}: {len(record.done)} of {len(probes)} probes are done.", err=True)
        else:
            record = ObjectRecord.begin(records, head)
        if not yes and not (sys.stdin.isatty() and click.confirm("Run these probes?", err=True)):
            fail("no probe was run; --yes runs the plan without confirmation.")
        prompts = page and sys.stdin.isatty()
        with nullcontext(_print_progress) if prompts else progress_bar() as progress:
            progress("planning stacks and reading the project")
            platform = probe_run.read_platform(
                repository_root,
                environment,
                record,
                kubeconfig=kubeconfig,
                local_cloud=local_cloud,
                options={"group": group or "", "account": account or "", "page": "yes" if page else ""},
                seconds=wait,
                confirm=_prompt_for if prompts else None,
            )
            if previous is not None and previous.open:
                _remove_leftovers(probe_run.maker_of(previous, platform.contents, wait, local_cloud))
            try:
                probe_run.run_probes(probes, platform, record, progress)
            except KeyboardInterrupt:
                say(f"Interrupted. The same command continues {record.path.name}.", err=True)
                raise
        for line in platform.maker.kept:
            say(f"training-platform: {line}", err=True)
    document = probe_report.document(record.head, record.done, ended=record.ended)
    write_files({path: probe_report.rendered(document, _FORMATS[path.suffix]) for path in files})
    say(probe_report.rendered(document, "text", min(line_width(), _WIDTH)).rstrip("\n"))
    sys.exit(_exit_code({row["verdict"] for row in document["probes"]}))


def _can_continue(record: ObjectRecord, head: Mapping[str, object]) -> bool:
    """Return True if an interrupted run has the same settings as the run that starts with ``head``."""
    return not record.ended and all(record.head.get(field) == head[field] for field in _SAME_RUN)


def _exit_code(verdicts: set[str]) -> int:
    """Return the exit code of a run. Any probe that ended because of a bug in this program decides it."""
    if "failed" in verdicts or verdicts <= {"undecided"}:
        return 2
    return 1 if "refuted" in verdicts else 0


def _prompt_for(question: str) -> str:
    """Return the user's input, which may be empty. An interrupt ends the whole command, not only the probe."""
    try:
        return str(click.prompt(question, default="", show_default=False, err=True))
    except click.Abort:
        raise KeyboardInterrupt from None


def _print_facts(environment: str, spec: Environment, local_cloud: str | None) -> None:
    """Print the patch, and on standard error the differing, the confirmed and the undecided facts."""
    from training_platform.clients.google_api import GoogleApi, local_endpoint
    from training_platform.clients.project_contents import project_api
    from training_platform.clients.quota_pull import CloudQuotas
    from training_platform.clients.registries import Registries
    from training_platform.parts.verify import facts

    project = spec.project
    machines = facts.listed_machines(project_api("compute", project, "", local_cloud), project)
    ids = facts.listed_quotas(CloudQuotas(project, local_endpoint(local_cloud, "cloudquotas")))
    container = project_api("container", project, "", local_cloud)
    vertex = GoogleApi(
        "aiplatform",
        "v1beta1",
        local_endpoint(local_cloud, "aiplatform"),
        title="Vertex AI",
        where=f"projects/{project}",
        read_only=True,
    )
    lists = facts.compare(machines, ids, datetime.now(UTC).date())
    checks = [
        *facts.with_failure(facts.offered_versions(container, project, spec.clusters)),
        *facts.with_failure(facts.vertex_regions(vertex, project)),
    ]
    if not local_cloud:
        checks.extend(facts.published_software(Registries()))
    differ = [*lists.differ, *(check.says for check in checks if check.holds is False)]
    confirmed = [*lists.confirmed, *(check.says for check in checks if check.holds)]
    undecided = [check.says for check in checks if check.holds is None]
    compared = lists.compared + len(checks) - len(undecided)
    for word, sentences in (("different", differ), ("decided", confirmed), ("not decided", undecided)):
        for sentence in sentences:
            say(f"{word}: {sentence}.", err=True)
    say(f"{compared} facts were compared, and {len(differ)} differ.", err=True)
    if lists.patch:
        say(f"Apply the patch in the repository: training-platform verify {environment} --facts | git apply", err=True)
        say(lists.patch.rstrip("\n"))
    if not compared:
        sys.exit(2)
    sys.exit(1 if differ else 0)


def _print_plan(probes: Sequence[Probe]) -> None:
    """Print the probes of a run and their maximum duration."""
    from training_platform.checks.reports.terminal_tables import section_lines
    from training_platform.parts.verify.probe_report import plan_section

    say(section_lines(plan_section(probes), min(line_width(), _WIDTH)).rstrip("\n"))
    say(f"{len(probes)} probes, at most {sum(probe.minutes for probe in probes):,.0f} minutes.")


def _print_progress(step: str, done: int = 0, total: int = 0) -> None:
    """Print a line for each probe, since a bar would hide a prompt."""
    say(f"{done + 1} of {total}: {step}" if total else step, err=True)


def _remove_leftovers(maker: Maker) -> None:
    """Delete the objects of a killed run, and print those that may not belong to it."""
    count = len(maker.object_record.open)
    maker.remove()
    run = maker.object_record.run
    say(f"{count - len(maker.kept)} objects of the interrupted run {run} were deleted.", err=True)
    for line in maker.kept:
        say(f"training-platform: {line}", err=True)
