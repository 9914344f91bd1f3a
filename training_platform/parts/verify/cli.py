"""``training-platform verify``: probes of a deployed environment, their plan, their ledger, and the report to send."""

from __future__ import annotations

import sys
from collections.abc import Sequence
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
    from training_platform.parts.verify.object_record import Maker
    from training_platform.parts.verify.probes import Probe

_STAGES = ("project", "network", "cluster", "pools", "queues", "storage", "vertex", "monitoring", "tenancy")
_PAGE = "monitoring-page"
_WIDTH = 160


@click.command(epilog=example("training-platform verify dev --kubeconfig ~/.kube/config --report probe_report.html"))
@click.argument("environment", shell_complete=complete_stacks, help="Environment to verify, with its teams.")
@click.option("--stage", "stages", multiple=True, type=click.Choice(_STAGES), help="Only this stage. Repeatable.")
@click.option(
    "--probe", "names", multiple=True, metavar="NAME", help="Only this probe and those before it. Repeatable."
)
@click.option("--kubeconfig", help="Ask the clusters by this kubeconfig; default: do not ask them.")
@click.option("--group", metavar="ADDRESS", help="Test group of a team, which is impersonated to try its limits.")
@click.option("--account", metavar="ADDRESS", help="Service account in that group, as which its rights are tried.")
@click.option("--page", is_flag=True, help="Send a test alert to the environment's addresses, and ask for its code.")
@click.option(
    "--report", "files", multiple=True, type=PATH, help="Also write FILE.html, FILE.json or FILE.txt. Repeatable."
)
@click.option("--facts", "only_facts", is_flag=True, help="Compare the catalogue with the project's lists; only reads.")
@click.option("--plan", "only_plan", is_flag=True, help="Print the plan and ask nothing.")
@click.option("--anew", is_flag=True, help="Begin a new run; default: go on with one that was interrupted.")
@click.option("--yes", is_flag=True, help="Do not ask before the run.")
@click.option("--wait", type=click.FloatRange(1), default=600.0, metavar="SECONDS", help="Longest wait for one object.")
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
    """Prove a deployed environment: what of the documentation holds in its project.

    What differs from the plan is shown by `pulumi preview --refresh --expect-no-changes`: run that first.

    Needs the extra `adopt`, and application default credentials unless with --local-cloud. Shows a plan
    first. Objects that a probe creates are in a ledger in .verify/ before they are in a cluster, and are deleted after
    the probe; if the command is killed, its next start deletes them and goes on. Nothing else is ever deleted. The
    report has no address of a person, no project and no secret. Exit code 0: nothing is refuted. 1: something is. 2:
    nothing could be asked, or a probe ended in a bug of training-platform.

    --facts runs no probe. It compares machine types and ids of quotas in the catalogue with the lists of the project,
    and prints what differs as a patch of the catalogue's data files, to be piped to `git apply`. It also asks GKE for
    its versions, Vertex AI for its regions, and registries for the catalogue's charts and images.
    """
    need("verify", "verify")
    from training_platform.checks.output import check_writable, write_files
    from training_platform.checks.process import progress_bar
    from training_platform.config.workspace import read_workspace
    from training_platform.parts.verify import probe_report, probe_run
    from training_platform.parts.verify.object_record import ObjectRecord, alone
    from training_platform.parts.verify.probes import chosen

    folder = repository(root)
    formats = {path: {".html": "html", ".json": "json", ".txt": "text"}.get(path.suffix, "") for path in files}
    if unknown := [str(path) for path, to in formats.items() if not to]:
        fail(f"--report {unknown[0]}: a report is called .html, .json or .txt.")
    check_writable(files)
    workspace = read_workspace(folder)
    probe_run.stack_names(workspace, environment)
    spec = next(spec for stack, spec in workspace.environments() if stack.name == environment)
    project = spec.project
    if only_facts:
        _say_facts(environment, spec, local_cloud)
        return
    picked = chosen(stages=stages, names=names, further=[_PAGE] if page else [])
    _say_plan(picked)
    if only_plan:
        return
    place = probe_run.folder_of(folder, environment)
    head = probe_run.head_of(
        folder, environment, project, local_cloud, picked, options=(group or "", account or "", kubeconfig or "")
    )  # fmt: skip
    with alone(place):
        old = ObjectRecord.latest(place)
        same = old is not None and all(old.head.get(key) == head[key] for key in _ABOUT)
        ledger = old if old is not None and same and not old.ended and not anew else ObjectRecord.begin(place, head)
        if ledger is old:
            say(f"Going on with {ledger.path.name}: {len(ledger.done)} of {len(picked)} probes are done.", err=True)
        if not yes and not (sys.stdin.isatty() and click.confirm("Run these probes?", err=True)):
            fail("nothing was asked; --yes runs the plan without a question.")
        asks = page and sys.stdin.isatty()
        with nullcontext(_say_progress) if asks else progress_bar() as progress:
            progress("planning stacks and reading the project")
            platform = probe_run.read_platform(
                folder, environment, ledger, kubeconfig=kubeconfig, local_cloud=local_cloud,
                options={"group": group or "", "account": account or "", "page": "yes" if page else ""}, seconds=wait,
                confirm=_ask_for if asks else None,
            )  # fmt: skip
            if old is not None and old.open:
                _say_left(probe_run.maker_of(old, platform.contents, wait, local_cloud))
            try:
                probe_run.go_on(picked, platform, ledger, progress)
            except KeyboardInterrupt:
                say(f"Interrupted. The same command goes on with {ledger.path.name}.", err=True)
                raise
        for line in platform.maker.left:
            say(f"training-platform: {line}", err=True)
    document = probe_report.document(ledger.head, ledger.done, ended=ledger.ended)
    write_files({path: probe_report.rendered(document, to) for path, to in formats.items()})
    say(probe_report.rendered(document, "text", min(line_width(), _WIDTH)).rstrip("\n"))
    sys.exit(_exit_code({row["verdict"] for row in document["probes"]}))


def _exit_code(verdicts: set[str]) -> int:
    """Return the exit code of a run. A probe that ended in a bug of ours counts above all others."""
    if "failed" in verdicts or verdicts <= {"undecided"}:
        return 2
    return 1 if "refuted" in verdicts else 0


_ABOUT = ("where", "stacks", "probes", "options")
"""What a run has to share with the last one to go on with it."""


def _ask_for(what: str) -> str:
    """Return what somebody types, which may be nothing; an interrupt is the command's, not the probe's fault."""
    try:
        return str(click.prompt(what, default="", show_default=False, err=True))
    except click.Abort:
        raise KeyboardInterrupt from None


def _say_facts(environment: str, spec: Environment, local_cloud: str | None) -> None:
    """Print the patch, and beside it what differs and what was confirmed."""
    from training_platform.clients.google_api import GoogleApi, local_endpoint
    from training_platform.clients.project_contents import project_api
    from training_platform.clients.quota_pull import CloudQuotas
    from training_platform.clients.registries import Registries
    from training_platform.parts.verify import facts

    project = spec.project
    machines = facts.listed_machines(project_api("compute", project, "", local_cloud), project)
    ids = facts.listed_quotas(CloudQuotas(project, local_endpoint(local_cloud, "cloudquotas")))
    container, where = project_api("container", project, "", local_cloud), f"projects/{project}"
    vertex = GoogleApi(
        "aiplatform", "v1beta1", local_endpoint(local_cloud, "aiplatform"), title="Vertex AI", where=where,
        read_only=True,
    )  # fmt: skip
    found = facts.compare(machines, ids, datetime.now(UTC).date())
    told = [
        *facts.or_why(facts.offered_versions(container, project, spec.clusters)),
        *facts.or_why(facts.vertex_regions(vertex, project)),
        *(facts.published_software(Registries()) if not local_cloud else ()),
    ]
    differ = [*found.differ, *(one.says for one in told if one.holds is False)]
    confirmed = [*found.confirmed, *(one.says for one in told if one.holds)]
    unknown = [one.says for one in told if one.holds is None]
    asked = found.asked + len(told) - len(unknown)
    for word, lines in (("different", differ), ("decided", confirmed), ("not decided", unknown)):
        for line in lines:
            say(f"{word}: {line}.", err=True)
    say(f"{asked} facts were compared, and {len(differ)} differ.", err=True)
    if found.patch:
        say(f"Apply the patch in the repository: training-platform verify {environment} --facts | git apply", err=True)
        say(found.patch.rstrip("\n"))
    sys.exit(2 if not asked else 1 if differ else 0)


def _say_plan(picked: Sequence[Probe]) -> None:
    """Print what a run asks, and how long it takes at most."""
    from training_platform.checks.reports.text import section_lines
    from training_platform.parts.verify.probe_report import plan_section

    say(section_lines(plan_section(picked), min(line_width(), _WIDTH)).rstrip("\n"))
    say(f"{len(picked)} probes, at most {sum(one.minutes for one in picked):,.0f} minutes.")


def _say_progress(what: str, done: int = 0, total: int = 0) -> None:
    """Print a line for each probe, where a bar would be in the way of a question."""
    say(f"{done + 1} of {total}: {what}" if total else what, err=True)


def _say_left(maker: Maker) -> None:
    """Delete the objects of a run that was killed, and print those that are not surely its own."""
    count = len(maker.ledger.open)
    maker.remove()
    say(f"{count - len(maker.left)} objects of the interrupted run {maker.ledger.run} are gone.", err=True)
    for line in maker.left:
        say(f"training-platform: {line}", err=True)
