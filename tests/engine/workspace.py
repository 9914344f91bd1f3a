"""A copy of this repository in a temporary folder, in which the real engine previews stacks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.support.places import ORGANISATION, PACK_ENVIRONMENT, ROOT
from training_platform.config.model.stack import PROJECT

COPIED = ("Pulumi.yaml", "__main__.py", "policies")
STACK = "pulumi:pulumi:Stack"
SECONDS = 240  # for one command; a preview of the largest stack takes 15 to 30 on two busy cores
_READS = ("read", "read-replacement")
_NOT_INHERITED = ("PULUMI_", "GOOGLE_", "CLOUDSDK_", "GCLOUD_", "PYTHONPATH")

Key = tuple[str, str]  # type and logical name
Json = dict[str, Any]
MakeWorkspace = Callable[[str], "Workspace"]  # by a name that says what it is for


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The result of ``pulumi preview``: its exit code, its JSON, and the events with what the JSON leaves out."""

    code: int
    text: str
    steps: tuple[Json, ...]
    events: tuple[Json, ...]

    @cached_property
    def resources(self) -> dict[Key, Json]:
        """The state that each resource would have, by type and name; the stack and what is only read are left out."""
        kept = [step["newState"] for step in self.steps if step["op"] not in _READS]
        return {key_of(state["urn"]): state for state in kept if state["type"] != STACK}

    @cached_property
    def outputs(self) -> Json:
        """What the stack exports: of all the events about the stack, the last one has it."""
        seen: Json = {}
        for event in self.events:
            about = event.get("resOutputsEvent", {}).get("metadata", {})
            if about.get("type") == STACK:
                seen = about["new"]["outputs"]
        return seen

    @property
    def errors(self) -> list[str]:
        """The message of each error, or the whole output if the engine did not even begin."""
        diagnostics = [event["diagnosticEvent"] for event in self.events if "diagnosticEvent" in event]
        errors = [diagnostic["message"] for diagnostic in diagnostics if diagnostic["severity"] == "error"]
        return errors if errors or self.code == 0 else [self.text]

    @property
    def policies(self) -> set[str]:
        """The policies that the pack ran over some resource, or over the whole stack."""
        kinds = ("policyAnalyzeSummaryEvent", "policyAnalyzeStackSummaryEvent")
        ran = [event[kind] for event in self.events for kind in kinds if kind in event]
        return {policy for event in ran for policy in (*event.get("passed", ()), *event.get("failed", ()))}

    def violations(self, level: str) -> list[str]:
        """The messages of the policy pack at one level of enforcement, ``mandatory`` or ``advisory``."""
        violations = [event["policyEvent"] for event in self.events if "policyEvent" in event]
        return [violation["message"] for violation in violations if violation["enforcementLevel"] == level]


class Workspace:
    """A copy of the repository with state of its own; ``pulumi stack init`` writes into stack files, so never here."""

    def __init__(self, folder: Path, kubernetes: int | None = None, *, program: str | None = None) -> None:
        """With ``program`` it is no copy but a project of the same name, with that program and without stack files."""
        self.root = folder / "checkout"
        self.root.mkdir(parents=True)
        copied = COPIED if program is None else COPIED[:1]
        for name in copied:
            _copy(ROOT / name, self.root / name)
        if program is None:
            _copy(ORGANISATION / "stacks", self.root / "stacks")
        else:
            (self.root / "__main__.py").write_text(program, encoding="utf-8")
            (self.root / "stacks").mkdir()
        # Pulumi.yaml names the first, under `make` the checkout's own .venv; PulumiPolicy.yaml the second.
        (self.root / ".venv").symlink_to(sys.prefix)
        (self.root / PACK_ENVIRONMENT.name).symlink_to(PACK_ENVIRONMENT)
        self._events = folder / "events.json"
        (folder / "state").mkdir()
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(_NOT_INHERITED)}
        self.environment = {
            **inherited,
            "GOOGLE_OAUTH_ACCESS_TOKEN": "dummy",
            "PULUMI_BACKEND_URL": (folder / "state").as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_DEBUG_COMMANDS": "true",  # for --event-log
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PYTHONPATH": str(self.root),  # the pack sees the copy, wherever the repository is installed from
        }
        if kubernetes is not None:
            self.environment["PULUMI_DEBUG_PROVIDERS"] = f"kubernetes:{kubernetes}"

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run ``pulumi`` here and return the finished process, whatever its exit code."""
        return subprocess.run(
            ["pulumi", "--non-interactive", "--color", "never", *args],
            cwd=self.root, env=self.environment, capture_output=True, check=False, text=True, timeout=SECONDS,
        )  # fmt: skip

    def plant(self, stack: str, old: str, new: str) -> int:
        """Replace ``old``, which a stack file has once, and return the line of the change."""
        path = self.root / "stacks" / f"Pulumi.{stack}.yaml"
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {path.name}"
        path.write_text(text.replace(old, new), encoding="utf-8")
        same = next(index for index, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
        return text.count("\n", 0, text.index(old) + same) + 1

    def init(self, stack: str) -> None:
        """Create a stack in this workspace's state."""
        _succeeded(self.run("stack", "init", stack))

    def deploy(self, stack: str, outputs: Mapping[str, Any]) -> None:
        """Create a stack as if it were deployed with these outputs, and nothing else in it."""
        self.init(stack)
        urn = f"urn:pulumi:{stack}::{PROJECT}::{STACK}::{PROJECT}-{stack}"
        resource = {"urn": urn, "custom": False, "type": STACK, "outputs": dict(outputs)}
        file = self.root.parent / f"{stack}.json"
        file.write_text(json.dumps({"version": 3, "deployment": {"resources": [resource]}}), encoding="utf-8")
        _succeeded(self.run("stack", "import", "--stack", stack, "--file", str(file)))

    def preview(self, stack: str, *args: str) -> Preview:
        """Preview a stack of this workspace."""
        self._events.unlink(missing_ok=True)
        ran = self.run("preview", "--stack", stack, "--json", "--event-log", str(self._events), *args)
        lines = self._events.read_text(encoding="utf-8").split("\n") if self._events.exists() else []
        return Preview(
            code=ran.returncode,
            text=ran.stdout + ran.stderr,
            steps=tuple(_document(ran.stdout).get("steps", ())),
            events=tuple(json.loads(line) for line in lines if line),
        )


def key_of(urn: str) -> Key:
    """Return the type and the name that a URN ends with; a name may hold ``::`` itself."""
    types, name = urn.split("::", 3)[2:]
    return types.rpartition("$")[2], name


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def _document(text: str) -> Json:
    """Return the JSON that ``pulumi`` printed; where it could not begin, it printed only a sentence."""
    if not text.startswith("{"):
        return {}
    document: Json = json.loads(text)
    return document


def _succeeded(ran: subprocess.CompletedProcess[str]) -> None:
    assert ran.returncode == 0, ran.stdout + ran.stderr
