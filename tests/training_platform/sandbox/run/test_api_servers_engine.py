"""Kubernetes objects of a stack under the real engine, in real API servers."""

from __future__ import annotations

import re

import pytest

from tests.training_platform.sandbox.run.conftest import ROOT, Sandbox

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]
SCHEMAS = ROOT.parent / "shared" / "schemas"


@pytest.mark.kube
@pytest.mark.skipif(not SCHEMAS.is_dir(), reason="the upstream CRDs are not beside this checkout, in ../shared/schemas")
def test_a_stack_lives_in_real_api_servers_which_later_commands_find_again(sandbox: Sandbox) -> None:
    ran = sandbox("up", "small", "--api-server", "--crds", str(SCHEMAS))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"Applied to a real API server for each cluster: \d+ Kubernetes objects in 1 cluster;", ran.stdout)
    assert "Not rendered: the charts of 2 Helm releases: 1 jobset, 1 kueue." in ran.stdout

    for command in ("up", "refresh"):
        again = sandbox(command, "small")
        assert again.returncode == 0, again.stdout + again.stderr
        assert re.match(rf"small: {command} done: \d+ unchanged\n", again.stdout), again.stdout

    gone = sandbox("destroy", "small", "--lift-protection")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert sandbox.folder.resources("small") == []
