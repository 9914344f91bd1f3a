"""The plan of a stack, made from its file, its workspace, and the organisation's own ``own_resources.py``."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb, print_exception

from training_platform.config.lent_quota import lending
from training_platform.config.model.environment import Environment, RetiredSpec
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import Team
from training_platform.config.names import Locator
from training_platform.config.reading.finding import TRACEBACK, dotted
from training_platform.config.workspace import Workspace
from training_platform.resources.environment import add_environment
from training_platform.resources.former_levels import add_former_levels
from training_platform.resources.grants import is_grant
from training_platform.resources.own_worker import plan_in_worker
from training_platform.resources.plan import (
    IN_OWN_RESOURCES,
    OWN_RESOURCES,
    Plan,
    PlanError,
    Resource,
    referenced,
)
from training_platform.resources.project import ProjectApis
from training_platform.resources.scope import Scope, environment_scope, team_scope
from training_platform.resources.stack_resource import ResourceKey
from training_platform.resources.team import ORGANIZATION, add_team

_TOLD = (NameError, AttributeError, ImportError, SyntaxError, TypeError)
"""Errors whose messages contain only names from the code and no value of a file that the code read."""


@dataclass(frozen=True)
class OwnResources:
    """The argument of ``own_resources.py``: a stack's plan, to which resources can be added, and facts about the stack.

    ``team`` is None for an environment stack. ``scope`` contains the project, labels and names of the stack.
    """

    plan: Plan
    environment: Environment
    team: Team | None
    scope: Scope
    apis: ProjectApis

    def enable_api(self, api: str) -> Resource:
        """Enable an API, such as ``pubsub.googleapis.com``, and return its resource, on which others can depend."""
        return self.apis.enable(api)


def stack_plan(
    stack: Stack, workspace: Workspace, organization: str = ORGANIZATION, *, own_code_here: bool = False
) -> Plan | None:
    """Return the plan of a stack; None if the model rejects its file or the team's environment is missing.

    ``organization`` is the Pulumi organization in which a team's environment is deployed. If the organisation's own
    code adds anything, it runs in another process, unless ``own_code_here`` is set as in the Pulumi program. Raises
    PlanError, and UserError if that process returns no plan.
    """
    home = workspace.environment_of(stack)
    if home is None or stack.section is None:
        return None
    has_own_code = _has_own_code(workspace.root)
    if has_own_code and not own_code_here:
        return plan_in_worker(stack, workspace, organization)
    flavors = {cluster: workspace.flavors(stack.environment_name, cluster) for cluster in home.clusters}
    plan = Plan(stack.name)
    if stack.team:
        apis = add_team(plan, stack.team, home, flavors, organization)
        scope = team_scope(stack.team, home)
    else:
        home = lending(workspace, stack.name)
        apis = add_environment(plan, home, flavors)
        scope = environment_scope(stack.name, home)
    if has_own_code:
        add_own_resources = _own_resources(workspace.root)
        token = IN_OWN_RESOURCES.set(True)
        try:
            add_own_resources(OwnResources(plan, home, team=stack.team, scope=scope, apis=apis))
        except (Exception, SystemExit) as error:  # whatever the organisation's own code raises is about its file
            raise _failed(error, f"stops for stack {stack.name}") from error
        finally:
            IN_OWN_RESOURCES.reset(token)
    apis.make_resources_wait()
    if stack.retired is not None:
        _let_go(plan, stack.section, stack.retired)
    add_former_levels(plan)
    plan.check()
    plan.check_providers()
    return plan


def kept_resources(
    section: Environment | Team, retired: RetiredSpec, sources: Mapping[ResourceKey, Iterable[ResourceKey]]
) -> set[ResourceKey]:
    """Return the resources that are kept when a stack is retired.

    ``sources`` lists, for each resource, the resources whose outputs its inputs use. A resource is kept together with
    what contains it, such as the network of a Filestore instance, which Google does not delete before the instance.
    Roles on kept resources are not kept.
    """
    locator = Locator(section)
    todo = [key for key in sources if not is_grant(key[0]) and retired.keeps_section(dotted(locator.path(key[1])))]
    kept: set[ResourceKey] = set()
    while todo:
        key = todo.pop()
        if key not in kept:
            kept.add(key)
            todo += sources.get(key, ())
    return kept


_PROTECTING_INPUTS = ("deletion_protection", "deletion_protection_enabled", "enable_deletion_protection")


def _let_go(plan: Plan, section: Environment | Team, retired: RetiredSpec) -> None:
    """Change the plan so that a retired stack can be destroyed. Kept resources are only removed from the state.

    No resource stays protected. A bucket's ``force_destroy`` is not changed, so Cloud Storage refuses to delete a
    bucket that contains objects.
    """
    sources = {resource.key: [source.key for source in referenced(resource.inputs)] for resource in plan.resources()}
    all_kept = kept_resources(section, retired, sources)
    for resource in plan.resources():
        kept = resource.key in all_kept
        options = resource.options
        resource.options = replace(options, protect=False, retain_on_delete=options.retain_on_delete or kept)
        protecting = [name for name in _PROTECTING_INPUTS if resource.inputs.get(name)]
        if protecting and not kept:
            resource.inputs = {**resource.inputs, **dict.fromkeys(protecting, False)}


def _has_own_code(root: Path) -> bool:
    """Return True if a repository's ``own_resources.py`` contains any code to run. The code may be invalid."""
    path = root / OWN_RESOURCES
    return path.is_file() and _has_code(path.read_bytes())


@cache
def _has_code(program: bytes) -> bool:
    try:
        statements = ast.parse(program).body
    except (SyntaxError, ValueError):
        return True
    functions = [row for row in statements if isinstance(row, ast.FunctionDef) and row.name == "add_resources"]
    return len(functions) != 1 or not all(_does_nothing(statement) for statement in functions[0].body)


def _does_nothing(statement: ast.stmt) -> bool:
    is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_docstring or isinstance(statement, ast.Pass)


@cache
def _own_resources(root: Path) -> Callable[[OwnResources], None]:
    """Return the function that a repository's ``own_resources.py`` defines. Raises PlanError."""
    path = root / OWN_RESOURCES
    spec = spec_from_file_location("own_resources", path)
    assert spec is not None  # a file that ends in .py has a loader
    assert spec.loader is not None
    module = sys.modules["own_resources"] = module_from_spec(spec)  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # as above
        raise _failed(error, "cannot be loaded") from error
    function = getattr(module, "add_resources", None)
    if not callable(function):
        reason = "has no function add_resources: see docs/own-resources.md for an example"
        raise PlanError(f"{OWN_RESOURCES} {reason}.", line=1, reason=reason)
    return function  # type: ignore[no-any-return] # the module is the organisation's


def _failed(error: BaseException, failure: str) -> PlanError:
    """Return an error of the organisation's own code as a PlanError, with the last line in that file.

    The message of the error is included only if it cannot contain a secret that the code read. Any other message is
    shown only in a traceback, on request.
    """
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if Path(frame.filename).name == OWN_RESOURCES]
    if isinstance(error, SyntaxError) and Path(error.filename or "").name == OWN_RESOURCES:
        lines.append(error.lineno)
    line = lines[-1] if lines else None
    place = f"{OWN_RESOURCES}:{line}" if line else OWN_RESOURCES
    if isinstance(error, PlanError):
        return PlanError(f"{place} {failure}: {error}", line=line, reason=error.reason)
    if os.environ.get(TRACEBACK):
        print_exception(error)
    kind = type(error).__name__
    if isinstance(error, _TOLD):
        reason = f"{kind}: {error.msg if isinstance(error, SyntaxError) else error}"
        return PlanError(f"{place} {failure}: {reason}.", line=line, reason=reason)
    reason = f"{kind}. The message may contain a secret: {TRACEBACK}=1 shows it"
    return PlanError(f"{place} {failure}: {kind}. {TRACEBACK}=1 shows more.", line=line, reason=reason)


def plannable(workspace: Workspace, selected: Iterable[str]) -> list[Stack]:
    """Return the stacks in ``selected`` that can be planned, each after its environment, which is added if necessary.

    A stack with findings cannot be planned, and neither can its teams. An environment that lends capacity promised to
    no team cannot be planned either if the model rejects one of its teams: it is then unknown how much it lends.
    """
    names = dict.fromkeys(selected)
    homes = dict.fromkeys(workspace.stacks[name].environment_name for name in names)
    rejected = [stack.home_said for stack in workspace.stacks.values() if stack.findings]  # anything: not hashable
    sound = {
        name: stack
        for name, stack in workspace.stacks.items()
        if not stack.findings and not (stack.lends and name in rejected)
    }
    stacks = [sound[name] for name in {**homes, **names} if name in sound and sound[name].environment_name in sound]
    return sorted(stacks, key=lambda stack: stack.team is not None)
