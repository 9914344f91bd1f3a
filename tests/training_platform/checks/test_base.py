"""A change against its base: planned stacks, differences, and every reason why a base cannot be read."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.places import ROOT
from tests.training_platform.checks.repository import TODAY
from training_platform.checks.change_report import Comparison, StackChange
from training_platform.checks.comparison.base_files import base_tree
from training_platform.checks.report import Report
from training_platform.checks.reports.wording import conclusion
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.cli.main import app
from training_platform.config.reading.finding import UserError

NODE_POOL = "gcp:container/nodePool:NodePool"


def comparison(report: Report) -> Comparison:
    assert report.failures == ()
    assert report.comparison is not None
    return report.comparison


def only_stack(report: Report) -> StackChange:
    (stack,) = comparison(report).stacks
    return stack


def test_a_change_of_nothing_plans_nothing(repository: Any) -> None:
    report = repository.compare()

    assert comparison(report).stacks == ()
    assert comparison(report).other_stacks == 2
    assert report.stacks == ()


def test_a_team_s_file_plans_only_that_team_and_reports_the_difference(repository: Any) -> None:
    repository.edit("small-vision", "nominal_quota: 8", "nominal_quota: 16")

    report = repository.compare()

    stack = only_stack(report)
    assert (stack.name, stack.kind, comparison(report).other_stacks) == ("small-vision", "changed", 1)
    ((queue,)) = [resource for resource in stack.resources if resource.name == "share-c-queues-cluster-queue"]
    assert queue.kind == "changed"
    assert [(change.old, change.new) for change in queue.inputs if change.path.endswith("nominalQuota")] == [
        ("8", "16")
    ]
    ((line,)) = comparison(report).capacity
    assert (line.flavor, line.promised) == ("a100-40", (8, 16))
    assert line.capacity == (2 * 8, 2 * 8)
    assert comparison(report).quotas == ()


def test_an_environment_s_file_plans_its_teams_too(repository: Any) -> None:
    repository.edit("small", "max_nodes: 2", "max_nodes: 3")

    report = repository.compare()

    assert [stack.name for stack in comparison(report).stacks] == ["small", "small-vision"]
    ((gpus,)) = comparison(report).stacks[0].accelerators
    assert (gpus.flavor, gpus.maximum) == ("a100-40", (2 * 8, 3 * 8))
    quotas = {quota.key.quota_id: quota.used for quota in comparison(report).quotas}
    assert quotas["NVIDIA-A100-GPUS-per-project-region"].delta == 8
    minimum = comparison(report).stacks[0].least_usd
    maximum = comparison(report).stacks[0].most_usd
    assert minimum.delta == 0
    assert maximum.delta is not None
    assert maximum.delta > 0


@pytest.mark.parametrize("file", ["stacks/exemptions.yaml", "stacks/quotas/example-small.yaml", "requirements.txt"])
def test_what_holds_for_all_stacks_affects_all_of_them(repository: Any, file: str) -> None:
    path = repository.root / file
    path.parent.mkdir(exist_ok=True)
    path.write_text("exemptions: []\n" if "exemptions" in file else "", encoding="utf-8")

    report = repository.compare()

    assert report.comparison is not None
    assert [stack.name for stack in report.comparison.stacks] == ["small", "small-vision"]


def test_a_resource_is_added_changed_replaced_or_removed(repository: Any) -> None:
    repository.edit(
        "small", "capacity: on-demand\n            max_nodes: 2", "capacity: spot\n            max_nodes: 2"
    )
    repository.edit("small", "slices: 2", "slices: 1")
    repository.edit(
        "small",
        "homes: {location: us-central1-a, capacity_gib: 1024}",
        "homes: {location: us-central1-a, capacity_gib: 1280}",
    )
    repository.edit("small", "          tpu:\n", "          l4: {machine_type: g2-standard-4}\n          tpu:\n")

    report = repository.compare(selected=("small",))

    kinds = {(resource.kind, resource.name) for resource in only_stack(report).resources}
    assert {
        ("replaced", "c-gpu-pool"),
        ("removed", "c-tpu-1-pool"),
        ("changed", "filestore-homes-instance"),
        ("added", "c-l4-pool"),
    } <= kinds
    assert not [name for kind, name in kinds if name in ("c-cluster", "c-tpu-0-pool")]
    pool = next(resource for resource in only_stack(report).resources if resource.name == "c-gpu-pool")
    assert [(change.path, change.old, change.new) for change in pool.forcing] == [("nodeConfig.spot", None, True)]


def test_a_team_without_machines_costs_nothing(repository: Any) -> None:
    path = repository.path("small-vision")
    path.write_text(path.read_text(encoding="utf-8").partition("    vertex:")[0], encoding="utf-8")

    cost = only_stack(repository.compare()).most_usd

    assert cost.after == 0
    assert cost.delta is not None
    assert cost.delta < 0


def test_a_renamed_team_is_compared_with_itself(repository: Any) -> None:
    repository.rename("small-vision", "small-sight")

    report = repository.compare()

    stack = only_stack(report)
    assert (stack.name, stack.kind, stack.was) == ("small-sight", "renamed", "small-vision")
    assert stack.resources == ()


def test_a_renamed_environment_and_its_teams_are_compared_with_themselves(repository: Any) -> None:
    repository.rename("small", "tiny")
    repository.edit("small-vision", "environment: small", "environment: tiny")

    report = repository.compare()

    assert [(stack.name, stack.kind, stack.was) for stack in comparison(report).stacks] == [
        ("tiny", "renamed", "small"),
        ("small-vision", "changed", None),
    ]


def test_a_stack_under_another_name_ends_with_2_until_its_file_says_that_what_is_deployed_has_it(
    repository: Any,
) -> None:
    repository.path("small-vision").rename(repository.path("small-sight"))

    silent = repository.compare()
    repository.edit(
        "small-sight", "    environment: small\n", "    environment: small\n    renamed_from: small-vision\n"
    )
    renamed = repository.compare()

    assert silent.exit_code() == 2
    assert len(silent.failures) == 1
    assert silent.failures[0].startswith("stacks/Pulumi.small-sight.yaml: this stack is small-vision in main. Pulumi")
    assert "`pulumi stack rename small-sight --stack small-vision`" in silent.failures[0]
    assert (renamed.exit_code(), renamed.failures, only_stack(renamed).was) == (
        1,
        (),
        "small-vision",
    )  # it has no snapshot of limits


def test_which_of_two_teams_was_renamed_is_as_the_file_says(repository: Any) -> None:
    old = repository.path("small-vision").read_text(encoding="utf-8")
    repository.path("small-vision").unlink()
    for name, more in (("sight", "renamed_from: small-vision"), ("sound", "labels: {new: one}")):
        text = old.replace("environment: small\n", f"environment: small\n    {more}\n").replace(
            "name: vision", f"name: {name}"
        )
        repository.path(f"small-{name}").write_text(text, encoding="utf-8")

    kinds = {stack.name: stack.kind for stack in comparison(repository.compare()).stacks}

    assert kinds == {"small-sight": "renamed", "small-sound": "added"}


def test_the_old_name_of_a_renamed_stack_is_refused_with_the_new_one(repository: Any) -> None:
    repository.rename("small-vision", "small-sight")

    done = CliRunner().invoke(app, ["check", "small-vision", "--base", "main", "--root", str(repository.root)])

    assert (done.exit_code, done.stdout) == (2, "")
    assert "the stack that is small-vision in main is now called small-sight." in done.stderr


def test_another_team_under_another_name_is_one_left_behind_and_one_added(repository: Any) -> None:
    repository.path("small-vision").rename(repository.path("small-sight"))
    repository.edit("small-sight", "name: vision", "name: sight")

    report = repository.compare()

    assert {(stack.name, stack.kind) for stack in comparison(report).stacks} == {
        ("small-sight", "added"),
        ("small-vision", "left"),
    }


def test_a_base_that_the_model_rejects_leaves_its_resources_unknown_and_warns(repository: Any) -> None:
    repository.git("switch", "--quiet", "main")
    repository.edit("small", "capacity: on-demand", "capacity: sport")
    repository.commit()
    repository.git("switch", "--quiet", "--create", "mended")
    repository.edit("small", "capacity: sport", "capacity: on-demand")

    report = repository.compare(selected=("small",))

    assert only_stack(report).unknown == "not planned in the base"
    assert only_stack(report).most_usd.before is None
    assert [(row.maximum.before, row.maximum.after) for row in only_stack(report).accelerators] == [
        (None, 16),
        (None, 2 * 16),
    ]
    assert {line.capacity.before for line in comparison(report).capacity} == {None}
    assert {quota.used.before for quota in comparison(report).quotas} == {None}
    assert str(conclusion(report)).endswith("; not judged: 1 change of a stack")


def rejected(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace("production: false", "production: falsch"), "utf-8")


def conflicting(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace("config:", "<<<<<<< HEAD\nconfig:\n=======", 1), "utf-8")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


SPOILT: dict[str, Callable[[Path], object]] = {
    "rejected by the model": rejected,
    "a merge conflict": conflicting,
    "empty": lambda path: path.write_text("", encoding="utf-8"),
    "UTF-16": lambda path: path.write_bytes(path.read_text(encoding="utf-8").encode("utf-16")),
    "a folder": folder,
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_file_that_is_not_known_is_neither_removed_nor_compared(
    repository: Any, spoil: Callable[[Path], Any]
) -> None:
    spoil(repository.path("small"))

    report = repository.compare()

    assert report.comparison is not None
    assert {(stack.name, stack.kind, stack.unknown) for stack in report.comparison.stacks} == {
        ("small", "changed", "not planned in the work tree"),
        ("small-vision", "changed", "not planned in the work tree"),
    }
    assert report.comparison.acts == ()
    amounts = [stack.most_usd for stack in report.comparison.stacks]
    amounts += [stack.unpriced for stack in report.comparison.stacks]
    amounts += [row.maximum for stack in report.comparison.stacks for row in stack.accelerators]
    amounts += [quota.used for quota in report.comparison.quotas]
    amounts += [amount for line in report.comparison.capacity for amount in (line.capacity, line.promised)]
    assert len(amounts) > 20
    assert {amount.after for amount in amounts} == {None}
    errors = [finding for finding in report.all_findings() if finding.severity == "error" and not finding.follows]
    assert len(errors) + len(report.failures) == 1


def test_a_limit_that_an_unknown_stack_holds_no_part_of_is_compared(repository: Any) -> None:
    repository.edit("small", "max_nodes: 2", "max_nodes: 3")
    rejected_team = repository.path("small-vision")
    rejected_team.write_text(rejected_team.read_text(encoding="utf-8").replace("members:", "people:"), "utf-8")

    report = repository.compare()

    quotas = {quota.key.quota_id: quota.used for quota in comparison(report).quotas}
    assert quotas["NVIDIA-A100-GPUS-per-project-region"].delta == 8
    assert quotas["CustomModelTrainingA100GPUsPerProjectPerRegion"].after is None
    ((line,)) = [line for line in comparison(report).capacity if line.flavor == "a100-40"]
    assert (line.capacity, line.promised) == ((2 * 8, 3 * 8), (8, None))


def test_a_flavor_without_pools_is_still_promised_by_the_shares_that_name_it(repository: Any) -> None:
    repository.edit("small", "capacity: on-demand", "capacity: spot")  # the pool's flavor becomes a100-40-spot

    (line,) = [line for line in comparison(repository.compare(base="HEAD")).capacity if line.flavor == "a100-40"]

    assert (line.capacity, line.promised) == ((2 * 8, 0), (8, 8))


@pytest.mark.parametrize("broken_side", ["base", "head"])
def test_a_broken_file_beside_a_new_one_is_no_rename(repository: Any, broken_side: str) -> None:
    text = repository.path("small").read_text(encoding="utf-8")
    if broken_side == "base":
        repository.path("tiny").write_text("config", encoding="utf-8")
        repository.commit()
        repository.git("branch", "--force", "main")
        repository.path("tiny").write_text(text, encoding="utf-8")
        repository.path("small").unlink()
    else:
        repository.path("small").write_text("config", encoding="utf-8")
        repository.path("tiny").write_text(text, encoding="utf-8")

    report = repository.compare()

    assert report.comparison is not None
    kinds = {stack.name: stack.kind for stack in report.comparison.stacks}
    assert {kinds["small"], kinds["tiny"]} == ({"left", "changed"} if broken_side == "base" else {"changed", "added"})


def test_if_the_code_changed_the_base_is_planned_by_its_own(repository: Any) -> None:
    shutil.copytree(
        ROOT / "training_platform", repository.root / "training_platform", ignore=shutil.ignore_patterns("__pycache__")
    )
    repository.git("switch", "--quiet", "main")
    cluster = repository.root / "training_platform" / "resources" / "gke.py"
    text = cluster.read_text(encoding="utf-8")
    assert 'datapath_provider="ADVANCED_DATAPATH"' in text
    cluster.write_text(text.replace('"ADVANCED_DATAPATH"', '"LEGACY_DATAPATH"'))
    repository.commit()
    repository.git("switch", "--quiet", "--create", "newer")
    cluster.write_text(text, encoding="utf-8")

    report = repository.compare(selected=("small",))

    assert comparison(report).own_program
    (cluster_change, *other_changes) = only_stack(report).resources
    assert {change.kind for change in (cluster_change, *other_changes)} == {"replaced"}
    assert {(change.path, change.old) for resource in other_changes for change in resource.forcing} == {
        ("cluster", "c-cluster")
    }
    assert [(change.path, change.old) for change in cluster_change.forcing] == [("datapathProvider", "LEGACY_DATAPATH")]


def test_the_reason_why_the_bases_code_plans_only_some_stacks_is_reported(repository: Any) -> None:
    shutil.copytree(
        ROOT / "training_platform", repository.root / "training_platform", ignore=shutil.ignore_patterns("__pycache__")
    )
    stops = "def add_resources(own):\n    if own.environment.project:\n        raise KeyError('x')\n"
    (repository.root / "own_resources.py").write_text(stops, encoding="utf-8")
    repository.commit()
    repository.git("branch", "--force", "main")
    repository.git("rm", "--quiet", "own_resources.py")
    (repository.root / "training_platform" / "__init__.py").write_text("1\n", encoding="utf-8")

    report = repository.compare(selected=("small",))

    told = [finding.message for finding in report.findings if finding.rule == "base-not-planned"]
    assert any(
        "does not plan every stack: own_resources.py:3 stops for stack small: KeyError" in message for message in told
    )


@pytest.mark.parametrize(
    ("main", "message"),
    [
        ("raise SystemExit('cannot start')\n", "cannot plan here: cannot start"),
        ("print('{}')\n", "cannot plan here: it prints plans of another version"),
        (None, "cannot plan here: it has no command `plan`"),
    ],
    ids=["fails", "prints something else", "of an older layout"],
)
def test_a_base_whose_code_cannot_plan_is_a_warning_and_is_never_planned_by_the_code_of_today(
    repository: Any, main: str | None, message: str
) -> None:
    cli = repository.root / "training_platform" / "cli"
    cli.mkdir(parents=True)
    (cli.parent / "__init__.py").touch()
    (cli / "__init__.py").touch()
    if main is not None:
        (cli / "plan.py").touch()
        (cli / "main.py").write_text(main, encoding="utf-8")
    repository.commit()
    repository.git("branch", "--force", "main")
    (cli.parent / "__init__.py").write_text("1\n", encoding="utf-8")

    report = repository.compare(selected=("small",))

    (finding,) = [finding for finding in report.findings if finding.rule == "base-not-planned"]
    assert (finding.severity, message in finding.message) == ("warning", True), finding.message
    assert report.comparison is not None
    assert report.comparison.stacks == ()


OWN = """
from training_platform.resources.plan import Resource


def add_resources(own):
    own.plan.add(Resource(type="gcp:storage/bucket:Bucket", name="archive", inputs={"location": "US"}))
"""


def test_a_change_of_own_resources_is_compared_with_what_the_base_adds(repository: Any) -> None:
    shutil.copytree(
        ROOT / "training_platform", repository.root / "training_platform", ignore=shutil.ignore_patterns("__pycache__")
    )
    file = repository.root / "own_resources.py"
    file.write_text(OWN, encoding="utf-8")
    repository.commit()
    repository.git("branch", "--force", "main")
    file.write_text(OWN.replace("US", "EU"), encoding="utf-8")

    report = repository.compare(selected=("small",))

    (bucket,) = only_stack(report).resources
    assert (bucket.name, bucket.kind) == ("archive", "replaced")
    assert [(change.old, change.new) for change in bucket.forcing] == [("US", "EU")]


@pytest.mark.parametrize(("key", "changed"), [("first-marker", []), ("second-marker", ["archive"])])
def test_a_secret_is_compared_with_the_base_s_and_never_shown(repository: Any, key: str, changed: list[str]) -> None:
    shutil.copytree(
        ROOT / "training_platform", repository.root / "training_platform", ignore=shutil.ignore_patterns("__pycache__")
    )
    file = repository.root / "own_resources.py"
    program = OWN.replace('{"location": "US"}', '{"location": "US", "encryption": {"raw_key": "first-marker"}}')
    file.write_text(program, encoding="utf-8")
    repository.commit()
    repository.git("branch", "--force", "main")
    file.write_text(program.replace("first-marker", key) + "\n", encoding="utf-8")

    report = repository.compare(selected=("small",))

    assert [bucket.name for bucket in only_stack(report).resources] == changed
    assert "marker" not in repr(report)


def test_links_of_the_base_are_not_laid_out_and_nothing_is_left(
    repository: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (repository.root / "stacks" / "link").symlink_to(outside)
    repository.commit()
    repository.git("branch", "--force", "main")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    with base_tree(repository.root, "main") as tree:
        assert (tree.root / "stacks" / "Pulumi.small.yaml").is_file()
        assert not (tree.root / "stacks" / "link").is_symlink()

    assert list(temporary.iterdir()) == []


def test_the_work_tree_and_its_index_are_unchanged(repository: Any) -> None:
    repository.edit("small-vision", "nominal_quota: 8", "nominal_quota: 16")
    (repository.root / "stacks" / "new.txt").write_text("x", encoding="utf-8")
    index = repository.root / ".git" / "index"
    before = (index.read_bytes(), repository.git("status", "--porcelain"))

    repository.compare()

    assert (index.read_bytes(), repository.git("status", "--porcelain")) == before


def test_a_repository_below_the_top_of_a_checkout_is_compared_with_its_own_folder(
    repository: Any, tmp_path: Path
) -> None:
    top = tmp_path / "top"
    shutil.copytree(repository.root, top / "platform", ignore=shutil.ignore_patterns(".git"))
    repository.git("init", "--quiet", "--initial-branch", "main", root=top)
    repository.root = top / "platform"
    repository.commit()
    repository.edit("small-vision", "nominal_quota: 8", "nominal_quota: 16")

    assert only_stack(repository.compare()).name == "small-vision"


def test_a_branch_that_does_not_exist_is_refused_with_the_nearest(repository: Any) -> None:
    with pytest.raises(UserError, match=r"no commit mian in this clone: fetch it.*Nearest: main\."):
        repository.compare(base="mian")


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("origin/nothing", "fetch it, as with `git fetch origin nothing`, or name another"),
        ("topic/nothing", "fetch it, as with `git fetch origin topic/nothing`, or name another"),
        ("HEAD~999", "no commit HEAD~999 in this clone: name another"),
        ("HEAD:stacks", "no commit HEAD:stacks in this clone: name another"),
    ],
)
def test_a_missing_base_names_the_fetch_if_one_would_help(repository: Any, base: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        repository.compare(base=base)

    assert message in str(refused.value)


def test_a_name_that_looks_like_an_option_is_no_option(repository: Any) -> None:
    with pytest.raises(UserError, match="no commit --all"):
        repository.compare(base="--all")


def test_a_shallow_clone_without_the_common_commit_says_what_to_fetch(repository: Any, tmp_path: Path) -> None:
    repository.git("commit", "--quiet", "--allow-empty", "--message", "one")
    repository.git("switch", "--quiet", "main")
    repository.git("commit", "--quiet", "--allow-empty", "--message", "two")
    url = repository.root.as_uri()
    clone = tmp_path / "clone"
    repository.git("clone", "--quiet", "--depth", "1", "--branch", "change", url, str(clone))
    repository.git("fetch", "--quiet", "--depth", "1", "origin", "main:refs/remotes/origin/main", root=clone)
    repository.root = clone

    with pytest.raises(UserError, match=r"shallow clone.*fetch-depth: 0"):
        repository.compare(base="origin/main")


def test_branches_without_a_common_commit_are_refused(repository: Any) -> None:
    repository.git("switch", "--quiet", "--orphan", "alone")
    repository.git("commit", "--quiet", "--allow-empty", "--message", "alone")
    repository.git("switch", "--quiet", "change")

    with pytest.raises(UserError, match="no commit in common"):
        repository.compare(base="alone")


def test_without_a_repository_or_git_there_is_no_base(repository: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(repository.root / ".git")
    with pytest.raises(UserError, match="is not in a git repository"):
        repository.compare()

    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="needs git"):
        repository.compare()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--base", "nowhere"], "There is no commit nowhere"),
        (["--base", ""], "--base has no value: give a branch"),
        (["--new-only"], "--new-only needs --base"),
        (["--write-baseline", "--base", "main"], "leave --base out"),
        (["--base", "main", "smal"], "There is no stack smal"),
        (["--base", "main", "--output", "sarif=/nowhere/x.sarif"], "there is no folder /nowhere"),
    ],
)
def test_wrong_use_of_a_base_is_exit_code_2_and_one_sentence(
    repository: Any, arguments: list[str], message: str
) -> None:
    done = CliRunner().invoke(app, ["check", *arguments, "--root", str(repository.root)])

    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


LIMITS = """\
project: example-small
taken: "2026-11-20"
limits:
  compute.googleapis.com:
    NVIDIA-A100-GPUS-per-project-region:
      - {limit: 16, region: us-central1}
"""


def test_an_exceeded_quota_is_reported_at_what_has_grown(repository: Any) -> None:
    limits = repository.root / "stacks" / "quotas" / "example-small.yaml"
    limits.parent.mkdir()
    limits.write_text(LIMITS, encoding="utf-8")
    repository.commit()
    more = "          more: {machine_type: a2-highgpu-8g, max_nodes: 1}\n          tpu:\n"
    repository.edit("small", "          tpu:\n", more)

    compared = repository.compare(base="HEAD")
    plain = run_check(repository.root, CheckOptions(today=TODAY))

    def places(report: Report) -> list[str]:
        about = "NVIDIA-A100-GPUS-per-project-region in us-central1"
        return [row.path for row in report.all_findings() if row.rule == "quota-exceeded" and row.about == about]

    assert places(compared) == ["clusters.c.node_pools.more.max_nodes"]
    assert places(plain) == ["clusters.c.node_pools.gpu.max_nodes"]
