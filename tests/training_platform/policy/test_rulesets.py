"""What the pack tells the engine before its rules are loaded, and when they are."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import EnforcementLevel, StackValidationPolicy

from training_platform.policy import evaluation, registered
from training_platform.policy.evaluation import FIXES
from training_platform.policy.pack import Pack, ResourcePolicy, policies
from training_platform.policy.serving import LOADER, CheckedServicer
from training_platform.policy.settings import RULESETS, RULESETS_FILE
from training_platform.rules import RULES

TOLD = """
import sys
from google.protobuf import empty_pb2
from pulumi_policy import EnforcementLevel
from training_platform.policy.pack import Pack
from training_platform.policy.serving import CheckedServicer

pack = Pack(None)
servicer = CheckedServicer("p", "1.0.0", pack.policies, EnforcementLevel.MANDATORY)
print(len(servicer.GetAnalyzerInfo(empty_pb2.Empty(), None).policies))
print(*{"pydantic", "yaml", "training_platform.rules", "training_platform.catalog.loader"} & set(sys.modules) - BEFORE)
"""


def servicer(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> CheckedServicer:
    monkeypatch.setattr(CheckedServicer, "pack", pack, raising=False)
    return CheckedServicer("p", "1.0.0", pack.policies, EnforcementLevel.MANDATORY)


def test_the_file_says_what_the_registered_rules_say() -> None:
    assert RULESETS_FILE.read_text(encoding="utf-8") == registered.text(), "run `make reference`"


def test_each_policy_is_of_the_kind_that_its_rules_want() -> None:
    across = {rule.ruleset for rule in RULES.values() if rule.across}
    found = {policy.name: policy for policy in policies(None)}

    assert {name for name, policy in found.items() if isinstance(policy, StackValidationPolicy)} == {
        *across, "quota", "stack-advice",
    }  # fmt: skip
    assert {
        name for name, policy in found.items() if isinstance(policy, ResourcePolicy) and policy.has_remediation()
    } == set(FIXES)
    assert {name: policy.description for name, policy in found.items() if name in RULESETS} == {
        name: ruleset.title for name, ruleset in RULESETS.items()
    }


def test_the_engine_is_told_of_the_policies_before_any_rule_is_loaded() -> None:
    program = f"import pulumi, pulumi_policy, sys\nBEFORE = set(sys.modules)\n{TOLD}"

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ran.stdout.splitlines() == [str(len(policies(None))), ""]


def test_the_rules_are_loaded_once_the_engine_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    pack = Pack(None)
    asks = servicer(pack, monkeypatch)
    loaded = threading.Event()
    monkeypatch.setattr(Pack, "load", lambda _pack: loaded.set())
    asks.GetAnalyzerInfo(empty_pb2.Empty(), None)  # type: ignore[no-untyped-call]
    before = loaded.is_set()
    asks.Configure(analyzer_pb2.ConfigureAnalyzerRequest(), None)

    for thread in threading.enumerate():
        if thread.name == LOADER:
            thread.join()
    assert (before, loaded.is_set()) == (False, True)


def test_stack_files_and_documents_are_read_before_the_first_resource(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stacks").mkdir()
    pack = Pack(tmp_path)
    documents: list[str] = []
    monkeypatch.setattr(evaluation, "check_of", documents.append)

    pack.load()

    assert {"workspace", "exemptions"} <= vars(pack.evaluation.checkout).keys()
    assert {token.partition(":")[0] for token in documents} == {"gcp", "kubernetes"}


def test_what_cannot_be_loaded_is_said_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pack = Pack(None)
    monkeypatch.setitem(sys.modules, "training_platform.policy.evaluation", None)

    pack.load()

    with pytest.raises(ImportError, match=r"training_platform\.policy\.evaluation"):
        _ = pack.evaluation


def test_who_asks_while_the_rules_are_loaded_gets_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pack = Pack(None)
    got: list[object] = []
    loads: list[threading.Thread] = []

    def ask() -> None:
        got.append(pack.evaluation)

    def load(_root: Path | None) -> object:
        loads.append(threading.Thread(target=ask))
        if len(loads) == 1:
            loads[0].start()
            loads[0].join(0.05)  # it waits for this one
        return object()

    monkeypatch.setattr(evaluation, "Evaluation", load)
    ask()
    loads[0].join()

    assert len(loads) == 1
    assert got == [pack.evaluation] * 2
