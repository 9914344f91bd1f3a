"""What the Pulumi engine knows about stacks: their last deployed state, and the steps of a preview.

``pulumi stack export`` prints a state. ``pulumi preview --json`` prints the steps of a preview with the old and the new
inputs of each resource. Policy packs do not receive the old inputs. Source: pulumi 3.260, pkg/backend/display/json.go
and sdk/go/common/apitype/core.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from training_platform.checks.change_report import ResourceChange
from training_platform.checks.comparison.changes import added, changed_by_engine, removed
from training_platform.checks.outcome import FlatResource, flat_resource
from training_platform.config.reading.finding import UserError
from training_platform.resources.stack_resource import UNKNOWN, StackResource

_SECRET = "4dabf18193072939515e22adb298388d"  # noqa: S105 # the key with which the engine marks special values
_UNKNOWN = ("04da6b54-80e4-46f7-96ec-b56ff0331ba9", "output<string>")
_DEFAULTS = "__defaults"
_REPLACING = ("replace", "create-replacement", "delete-replaced")
_URN = r"^urn:pulumi:[^:]+::[^:]*::.+::.+$"
_Document = TypeVar("_Document", bound=BaseModel)
_OfStack = TypeVar("_OfStack", "DeployedStack", "Preview")


class DeployedStack(NamedTuple):
    """A deployed stack: its resources, without components and providers."""

    stack: str
    resources: tuple[FlatResource, ...]


class Preview(NamedTuple):
    """A stack, and the steps that the engine would take for its resources."""

    stack: str
    changes: tuple[ResourceChange, ...]


def _by_name(inputs: dict[str, Any]) -> dict[str, Any]:
    if _SECRET in inputs:
        raise ValueError("a secret in place of all inputs")
    return inputs


class _State(BaseModel):
    """A resource as the engine stores it."""

    urn: str = Field(pattern=_URN)
    type: str
    custom: bool = False
    external: bool | None = False
    delete: bool | None = False
    inputs: Annotated[dict[str, Any], AfterValidator(_by_name)] = {}
    protect: bool | None = None
    retain_on_delete: bool | None = Field(default=None, alias="retainOnDelete")

    @property
    def is_deployed(self) -> bool:
        """Return True if a provider manages the resource, it is not only read, and it is not pending deletion."""
        return self.custom and not self.external and not self.delete and not self.type.startswith("pulumi:")


class _Deployment(BaseModel):
    resources: list[_State] = Field(min_length=1)
    pending_operations: list[Any] | None = None


class _Export(BaseModel):
    """The output of ``pulumi stack export``."""

    version: Literal[3] = 3
    deployment: _Deployment


class _Difference(BaseModel):
    kind: str = ""


class _Step(BaseModel):
    op: str
    urn: str = Field(pattern=_URN)
    old: _State | None = Field(default=None, alias="oldState")
    new: _State | None = Field(default=None, alias="newState")
    replace_reasons: list[str] | None = Field(default=None, alias="replaceReasons")
    detailed_diff: dict[str, _Difference] | None = Field(default=None, alias="detailedDiff")

    @property
    def is_of_resource(self) -> bool:
        """Return True if the step is for a provider's resource."""
        state = self.new or self.old
        return state is None or (state.custom and not state.type.startswith("pulumi:"))


class _Steps(BaseModel):
    """The output of ``pulumi preview --json``."""

    steps: list[_Step] = Field(min_length=1)


def read_state(path: Path) -> DeployedStack:
    """Read the output of ``pulumi stack export``. Raises UserError."""
    deployment = _read(path, _Export, "pulumi stack export --stack STACK").deployment
    if deployment.pending_operations:
        raise UserError(
            f"{path}: the last update was interrupted, so it is not known which resources exist (pending operations: "
            f"{len(deployment.pending_operations)}). Run `pulumi refresh --stack STACK`, then export the state again."
        )
    deployed = tuple(_flat(state) for state in deployment.resources if state.is_deployed)
    return DeployedStack(_only_stack(path, (state.urn for state in deployment.resources)), deployed)


def read_preview(path: Path) -> Preview:
    """Read the output of ``pulumi preview --json``. Raises UserError."""
    steps = _read(path, _Steps, "pulumi preview --json --stack STACK").steps
    by_urn = {step.urn: _change(step) for step in _gravest(steps)}
    changes = tuple(change for change in by_urn.values() if change)
    return Preview(_only_stack(path, (step.urn for step in steps)), changes)


def once(rows: Iterable[_OfStack], option: str) -> dict[str, _OfStack]:
    """Return states or previews keyed by stack. Raises UserError if there are two for the same stack."""
    by_stack: dict[str, _OfStack] = {}
    for row in rows:
        if row.stack in by_stack:
            raise UserError(f"{option} is given twice for the stack {row.stack}.")
        by_stack[row.stack] = row
    return by_stack


def _read(path: Path, model: type[_Document], command: str) -> _Document:
    try:
        return model.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False, include_context=False)
        wrong = [f"{'.'.join(map(str, row['loc'])) or 'the document'}: {row['msg']}" for row in details[:3]]
        more = f" and {len(details) - 3} more" if len(details) > 3 else ""
        raise UserError(f"{path} is not the output of `{command}`: {'; '.join(wrong)}{more}.") from error


def _only_stack(path: Path, urns: Iterable[str]) -> str:
    names = {urn.removeprefix("urn:pulumi:").partition("::")[0] for urn in urns}
    if len(names) != 1:
        raise UserError(f"{path} has resources of {len(names)} stacks: {', '.join(sorted(names))}.")
    return names.pop()


def _flat(state: _State) -> FlatResource:
    planned = StackResource(
        stack="",
        type=state.type,
        name=state.urn.split("::", 3)[-1],
        inputs=_plain(state.inputs),
        options={"protect": state.protect, "retainOnDelete": state.retain_on_delete},
    )
    return flat_resource(planned)


def _plain(value: Any) -> Any:
    """Return inputs without what the provider added, and with markers in place of unknown values and secrets."""
    if isinstance(value, Mapping):
        if _SECRET in value:
            return UNKNOWN
        defaults = value.get(_DEFAULTS)
        filled = {_DEFAULTS}
        if isinstance(defaults, list):
            filled.update(map(str, defaults))
        return {key: _plain(item) for key, item in value.items() if key not in filled}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return UNKNOWN if value in _UNKNOWN else value


def _gravest(steps: Iterable[_Step]) -> Iterator[_Step]:
    """Yield the steps. A replacement comes after its individual parts, which the engine also reports."""
    rows = [step for step in steps if step.is_of_resource]
    yield from (step for step in rows if step.op not in _REPLACING)
    yield from (step for step in rows if step.op in _REPLACING)


def _change(step: _Step) -> ResourceChange | None:
    old = step.old
    new = step.new
    if step.op in ("delete", "discard") and old:
        return removed(_flat(old))
    if step.op == "create" and new:
        return added(_flat(new))
    if not old or not new or step.op not in ("update", "same", *_REPLACING):
        return None
    if step.op == "same":  # also of a resource of which only options differ
        before, after = (_flat(state.model_copy(update={"inputs": {}})) for state in (old, new))
        return changed_by_engine(before, after, None)
    forcing = None
    if step.op in _REPLACING:
        differences = step.detailed_diff or {}
        paths = [path for path, difference in differences.items() if difference.kind.endswith("-replace")]
        forcing = (*(step.replace_reasons or ()), *paths)
    return changed_by_engine(_flat(old), _flat(new), forcing)
