from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import read_workspace
from training_platform.jobs.gke.rules import demand, gke_findings, reach
from training_platform.jobs.render import Rendered
from training_platform.jobs.resolve import ResolvedJob

Take = Callable[..., ResolvedJob]
Judge = Callable[[str, str], Rendered]
Lab = Callable[..., Path]


def tpu(flavor: str, count: str) -> str:
    return f"gke: {{cluster: tpus, flavor: {flavor}, {count}}}"


def gpu(flavor: str, count: str) -> str:
    return f"gke: {{cluster: gpus, flavor: {flavor}, {count}}}"


def rules(findings: list[Finding]) -> list[tuple[str, str, str | None]]:
    return [(finding.rule, finding.path, finding.nearest) for finding in findings]


@pytest.mark.parametrize(
    ("target", "chips"),
    [
        (tpu("tpu-v5e-4x8", "slices: 2"), 2 * 4 * 8),
        (tpu("tpu-v5e-2x4", "slices: 1"), 2 * 4),
        (gpu("h100", "nodes: 3"), 3 * 8),
        (gpu("a100-40", "nodes: 2"), 2 * 4),
    ],
)
def test_kueue_counts_the_chips_of_whole_slices_and_the_gpus_of_whole_vms(take: Take, target: str, chips: int) -> None:
    assert demand(take(target)) == chips
    assert gke_findings(take(target)) == []


@pytest.mark.parametrize(
    ("target", "nominal", "most"),
    [
        (tpu("tpu-v5e-4x8", "slices: 1"), 32, 32 + 64),  # borrows up to 96, and nlp lends 64 of its 96
        (gpu("h100", "nodes: 1"), 32, 32 + 8),  # nlp lends all of its 32, and the team borrows 8 at most
        (tpu("tpu-v5e-2x4", "slices: 1"), 64, 64),  # no limit, and nobody to borrow from
    ],
)
def test_a_team_can_have_its_own_and_what_others_lend(take: Take, target: str, nominal: int, most: int) -> None:
    assert reach(take(target)) == (nominal, most)


def test_a_team_of_another_environment_lends_nothing(take: Take, new_lab: Lab) -> None:
    root = new_lab()
    for name in ("Pulumi.lab.yaml", "Pulumi.lab-nlp.yaml"):
        text = (root / "stacks" / name).read_text()
        other = name.replace("lab", "lob")
        (root / "stacks" / other).write_text(text.replace("environment: lab", "environment: lob"))

    assert reach(take(gpu("h100", "nodes: 1"), workspace=read_workspace(root))) == (32, 32 + 8)
    (root / "stacks" / "Pulumi.lab-nlp.yaml").unlink()
    assert reach(take(gpu("h100", "nodes: 1"), workspace=read_workspace(root))) == (32, 32)


def test_what_a_rejected_file_lends_is_not_known(take: Take, new_lab: Lab) -> None:
    workspace = read_workspace(new_lab(lab_nlp="config: {}"))

    assert reach(take(gpu("h100", "nodes: 1"), workspace=workspace)) == (32, 32 + 8)
    assert reach(take(tpu("tpu-v5e-2x4", "slices: 1"), workspace=workspace)) == (64, math.inf)
    found = gke_findings(take(tpu("tpu-v5e-4x4-spot", "slices: 13"), workspace=workspace))
    assert "job-fits-share" not in [finding.rule for finding in found]


@pytest.mark.parametrize(("flavor", "fits", "cluster"), [("tpu-v5e-4x8", 96 // 32, "tpus"), ("h100", 40 // 8, "gpus")])
def test_a_job_may_ask_for_what_the_team_can_ever_have_and_no_more(
    take: Take, flavor: str, fits: int, cluster: str
) -> None:
    field = "slices" if cluster == "tpus" else "nodes"

    def errors(count: int) -> list[Finding]:
        job = take(f"gke: {{cluster: {cluster}, flavor: {flavor}, {field}: {count}}}")
        return [finding for finding in gke_findings(job) if finding.severity == "error"]

    assert errors(fits) == []
    (finding,) = errors(fits + 1)
    assert (finding.rule, finding.path) == ("job-fits-share", f"gke.{field}")
    assert (finding.allowed, finding.nearest) == (f"at most {fits}", str(fits))
    assert f"can have {96 if fits == 3 else 40} with what it borrows" in finding.message


def test_a_job_may_not_ask_for_more_than_the_pools_hold(take: Take) -> None:
    assert gke_findings(take(tpu("tpu-v5e-4x4-spot", "slices: 12"))) == []

    found = gke_findings(take(tpu("tpu-v5e-4x4-spot", "slices: 13")))

    assert rules(found)[:2] == [("job-fits-pools", "gke.slices", "12"), ("job-fits-share", "gke.slices", "12")]
    assert "13 slices are 208 google.com/tpu, and the pools of tpu-v5e-4x4-spot hold 192" in found[0].message


def test_a_number_that_pools_hold_and_the_share_does_not_is_never_advised(take: Take) -> None:
    both = [each for each in gke_findings(take(gpu("h100", "nodes: 100"))) if each.rule.startswith("job-fits-")]

    assert [(each.rule, each.allowed, each.nearest) for each in both] == [
        ("job-fits-pools", "at most 8", "5"),
        ("job-fits-share", "at most 5", "5"),
    ]


def test_pools_of_smaller_vms_do_not_count(take: Take) -> None:
    (finding,) = gke_findings(take(gpu("a100-40", "nodes: 3")))

    assert (finding.rule, finding.nearest) == ("job-fits-pools", "2")
    assert "3 VMs are 12 nvidia.com/gpu, and the pools of a100-40 hold 8" in finding.message


def test_a_share_smaller_than_a_slice_fits_no_job(take: Take, new_lab: Lab) -> None:
    root = new_lab()
    stack = root / "stacks" / "Pulumi.lab-vision.yaml"
    stack.write_text(stack.read_text().replace("tpu-v5e-2x4: {nominal_quota: 64}", "tpu-v5e-2x4: {nominal_quota: 7}"))

    (finding,) = gke_findings(take(tpu("tpu-v5e-2x4", "slices: 1"), workspace=read_workspace(root)))

    assert (finding.allowed, finding.nearest) == ("none: one slice is 8", None)


@pytest.mark.parametrize(
    ("target", "path", "nearest"),
    [
        (tpu("tpu-v5e-4x8", "nodes: 2"), "gke.nodes", "slices"),
        (gpu("h100", "slices: 2"), "gke.slices", "nodes"),
    ],
)
def test_tpus_are_counted_in_slices_and_gpus_in_nodes(take: Take, target: str, path: str, nearest: str) -> None:
    assert rules(gke_findings(take(target))) == [("job-count", path, nearest)]


def test_slices_of_one_vm_do_not_train_together(take: Take) -> None:
    assert rules(gke_findings(take(tpu("tpu-v5e-2x4", "slices: 2")))) == [("job-multislice", "gke.slices", "1")]


def test_a_flavor_of_slices_with_different_numbers_of_vms_is_refused(take: Take) -> None:
    found = gke_findings(take(tpu("tpu-v5e-2x4-flex-start", "slices: 1")))

    assert found[0].rule == "job-flavor-shape"
    assert "pool one of 1 and two of 2" in found[0].message


def test_slices_that_an_autoscaler_makes_from_zero_are_a_warning(take: Take) -> None:
    (finding,) = gke_findings(take(tpu("tpu-v5e-4x8", "slices: 3")))

    assert (finding.rule, finding.severity, finding.nearest) == ("job-slices-from-zero", "warning", "2")


@pytest.mark.parametrize(
    ("slices", "longest"),
    [(10, 63 - len("-7x2kq-slice-9-3-abcde")), (12, 63 - len("-7x2kq-slice-11-3-abcde"))],
)
def test_names_of_pods_have_63_characters_at_most(take: Take, slices: int, longest: int) -> None:
    target = tpu("tpu-v5e-4x4-spot", f"slices: {slices}")

    assert gke_findings(take(target, file=f"jobs/vision/{'a' * longest}.yaml")) == []
    (finding,) = gke_findings(take(target, file=f"jobs/vision/{'a' * (longest + 1)}.yaml"))
    assert (finding.rule, finding.allowed) == ("job-name", f"a file name of at most {longest} characters")


def test_the_note_says_what_is_asked_for_and_what_the_team_has(verdict: Judge) -> None:
    (note,) = verdict(tpu("tpu-v5e-4x8", "slices: 2"), "gke").notes

    assert note.startswith("asks for 64 google.com/tpu of tpu-v5e-4x8 in tpus (2 x 8 VMs); ")
    assert note.endswith("team vision: nominal quota 32, with what it borrows 96")
    assert "(3 VMs)" in verdict(gpu("h100", "nodes: 3"), "gke").notes[0]
    assert "(1 VM)" in verdict(gpu("h100", "nodes: 1"), "gke").notes[0]


def test_a_job_with_errors_has_no_note(verdict: Judge) -> None:
    assert verdict(gpu("h100", "nodes: 6"), "gke").notes == ()
    assert verdict(tpu("tpu-v5e-4x8", "slices: 3"), "gke").notes != ()


def test_an_image_from_elsewhere_is_found_before_the_cluster_refuses_its_pods(take: Take, new_lab: Lab) -> None:
    root = new_lab()
    file = root / "stacks" / "Pulumi.lab.yaml"
    own = "    image_sources: [us-docker.pkg.dev/example-lab/images/]\n    clusters:\n"
    file.write_text(file.read_text().replace("    clusters:\n", own, 1))
    workspace = read_workspace(root)

    (finding,) = gke_findings(take(gpu("h100", "nodes: 1"), workspace=workspace))
    assert (finding.rule, finding.path, finding.allowed) == (
        "job-image-source", "image", "images of us-docker.pkg.dev/example-lab/images/"
    )  # fmt: skip
    named = "image: us-docker.pkg.dev/example-lab/images/train:1\nenvironment: lab\n" + gpu("h100", "nodes: 1")
    assert gke_findings(take(named, workspace=workspace)) == []
