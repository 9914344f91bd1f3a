"""Writes the pages of the reference beside itself from commands and schemas; run by ``make reference``.

Writes the part of ``docs/development/status.md`` on Google Cloud too, from reports of ``verify`` in ``docs/verified``,
and that of ``docs/components.md`` on each component.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import yaml
from pydantic import BaseModel

from docs.reference.components import component_pages
from training_platform.catalog.operations import Principal, principals
from training_platform.catalog.permissions import permissions
from training_platform.checks.every_rule import every_rule
from training_platform.cli.main import app
from training_platform.config.names import Locator
from training_platform.config.reading.section import listed
from training_platform.config.reading.source import read_source
from training_platform.config.schema import stack_schema
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.job_model import Job
from training_platform.parts.jobs.schema import job_schema
from training_platform.parts.verify.probe_report import WORDS
from training_platform.parts.verify.probe_run import GOOGLE
from training_platform.parts.verify.probe_table import PROBES
from training_platform.resources.grants import Grant, plan_grants
from training_platform.resources.rights import role_permissions
from training_platform.resources.stack_plan import stack_plan
from training_platform.rules.descriptions import GROUPS, RuleSheet, rule_link
from training_platform.rules.documents.shapes import documented_types

FOLDER = Path(__file__).parent
VERIFIED = FOLDER.parent / "verified"
EXAMPLES = FOLDER / "examples"
"""A repository in which every section of a stack file and of a job file is used, and which `check` accepts."""
NAME = "training-platform"
_MOST_LINES = 14  # of an example; a longer one leaves the sections below it out
_BOUNDS = {"minimum": "at least", "maximum": "at most"}


def pages() -> dict[str, str]:
    """Return the text of every page by its path in the folder of the reference."""
    stacks = [stack.environment or stack.team for stack in read_workspace(EXAMPLES).stacks.values()]
    files = sorted(EXAMPLES.glob("jobs/*/*.yaml"))
    jobs = [Job.model_validate_json(json.dumps(read_source(file, file.name).value)) for file in files]
    context = click.Context(app, info_name=NAME, **app.context_settings)
    texts = {
        "rules.md": _rules(),
        **{f"rules/{group}.md": _rule_set(group, title) for group, title in GROUPS.items()},
        "commands.md": ("# Command line\n", *_command(app, context, "##")),
        "rights.md": _rights(),
        "types.md": _types(),
        "stack-file.md": _fields("Stack file", "stacks/Pulumi.<stack>.yaml", stack_schema(), examples(stacks)),
        "job-file.md": _fields("Job file", "jobs/<team>/<job>.yaml", job_schema(), examples(jobs)),
    }
    return {name: "\n".join(lines).rstrip() + "\n" for name, lines in texts.items()}


def _rules() -> Iterator[str]:
    """Yield the page that lists every rule, by rule set, with a link to its heading."""
    sheets = every_rule()
    yield "# Rules"
    yield f"\n{len(sheets)} rules, by rule set. `{NAME} explain RULE` shows how to fix or exempt a finding.\n"
    yield "| rule set | rules |\n| --- | --- |"
    for group in GROUPS:
        links = [f"[{sheet.id}]({rule_link(sheet.id)})" for sheet in sheets if sheet.group == group]
        yield f"| [{group}](rules/{group}.md) | {', '.join(links)} |"


def _types() -> Iterator[str]:
    """Yield the page that lists the types whose whole inputs are checked, by service or group."""
    groups: dict[str, list[str]] = {}
    for token in documented_types():
        group = token.rpartition(":")[0].partition("/")[0]
        name = token.rpartition(":")[2]
        groups.setdefault(group, []).append(name)
    yield "# Types that are checked whole"
    yield (
        "\nThe inputs of these types are checked against the APIs' own documents, at every depth. For any other type "
        "of pulumi-gcp\nonly the names and kinds of its top-level inputs are checked, and objects of other API groups "
        "are not checked at all:\nthe verdict counts them.\n"
    )
    yield "| service or group | types |\n| --- | --- |"
    for group, names in groups.items():
        yield f"| `{group}` | {', '.join(dict.fromkeys(names))} |"


def _rule_set(group: str, title: str) -> Iterator[str]:
    """Yield the page of a rule set, with a heading for each rule."""
    yield f"# Rules: {group}\n\n{_escaped(title)}"
    for sheet in every_rule():
        if sheet.group == group:
            yield from _rule(sheet)


def _rule(sheet: RuleSheet) -> Iterator[str]:
    yield f"\n## {sheet.id}\n"
    yield f"Looks for {_escaped(sheet.looks_for)}"
    yield f"Severity: {sheet.severity}. Refused by {sheet.refused_by}."
    yield from (f"\n{_escaped(part)}" for part in sheet.details.split("\n\n") if part)
    if sheet.source:
        yield f"\nSource: {_escaped(sheet.source)}."
    if sheet.facts:
        yield f"\nKnown refusals: {', '.join(sheet.facts)}."


def _rights() -> Iterator[str]:
    """Yield the page on who may do what, by the grants of the examples' stacks."""
    yield "# Who may do what"
    yield (
        "\nThe first table of each section lists the operations of a principal in Google Cloud, the permissions that\n"
        "they require, and the grants that give these permissions in the stacks of `docs/reference/examples`. The\n"
        "second table shows how many permissions of each granted role are used. `*` marks a permission whose row in\n"
        '`training_platform/catalog/permissions.yaml` has a single source. "nothing" means that the operation is\n'
        "possible only in another kind of project. Listing log entries requires one of two permissions: on the view,\n"
        "or on the project. Rights inside Kubernetes are not listed."
    )
    workspace = read_workspace(EXAMPLES)
    teams = {member for _, team, _ in workspace.teams() for member in team.members}
    admins = {member for _, home in workspace.environments() for member in home.admins}
    grants: dict[str, list[_PlacedGrant]] = {name: [] for name in principals()}
    for stack in workspace.stacks.values():
        plan = stack_plan(stack, workspace)
        if plan is None or stack.section is None:
            continue
        locator = Locator(stack.section)
        for grant in plan_grants(plan):
            place = stack.place(locator.path(grant.planned_as.name))
            name = _principal(grant.principal, teams, admins)
            grants[name].append(_PlacedGrant(grant, place.removeprefix("stacks/")))
    for name, principal in principals().items():
        yield f"\n## {principal.title}\n"
        yield from _operations(principal, grants[name])
        yield from _excess(principal, grants[name])


class _PlacedGrant(NamedTuple):
    grant: Grant
    place: str

    @property
    def role(self) -> str:
        """The role as the page shows it; a custom one by its last part."""
        return self.grant.role if self.grant.permissions is None else self.grant.role.rpartition("/")[2]


def _principal(member: str, teams: Container[str], admins: Container[str]) -> str:
    """Return which principal a member is; people are known only by the stack files."""
    if member in teams:
        return "members"
    if member in admins:
        return "admins"
    names = (name for name in principals() if name not in {"members", "admins"})
    return next((name for name in names if re.fullmatch(principals()[name].members, member)), "agents")


def _operations(principal: Principal, grants: Sequence[_PlacedGrant]) -> Iterator[str]:
    """Yield the table of operations; permissions with the same grants share a row."""
    if not principal.operations:
        return
    yield "| operation | permissions | granted by |\n| --- | --- | --- |"
    for title, methods in principal.operations.items():
        rows: dict[str, list[str]] = {}
        for permission, method in sorted(_own_needs(methods).items()):
            mark = "*" if method in permissions().unverified else ""
            rows.setdefault(_sources(permission, grants), []).append(f"`{permission}`{mark}")
        for sources, names in rows.items():
            yield f"| {title} | {', '.join(names)} | {sources} |"


def _own_needs(methods: Iterable[str]) -> dict[str, str]:
    """Return the permissions that methods require of their caller, each with one of the methods."""
    rows = permissions().methods
    return {need.permission: method for method in methods for need in rows[method] if not need.agent}


def _sources(permission: str, grants: Sequence[_PlacedGrant]) -> str:
    if not grants:
        return "the set-up of pipelines"
    sources = {f"`{placed.role}`, {placed.place}" for placed in grants if _gives(placed.grant, permission)}
    return "; ".join(sorted(sources)) or "nothing"


def _gives(grant: Grant, permission: str) -> bool:
    """Whether a grant gives a permission; one on a bucket gives no right in the project."""
    reaches = permission.startswith("storage.") or not grant.resource.startswith("buckets/")
    return reaches and permission in role_permissions(grant)


def _excess(principal: Principal, grants: Sequence[_PlacedGrant]) -> Iterator[str]:
    """Yield the table of grants; what a custom role holds is written for its purpose, and counts as used."""
    if not grants:
        return
    used = set(_own_needs(principal.methods))
    if not principal.operations:
        used = {need.permission for needs in permissions().methods.values() for need in needs if need.agent}
    resources: dict[str, set[str]] = {}
    totals: dict[str, tuple[int, int]] = {}
    for placed in grants:
        held = role_permissions(placed.grant)
        predefined = permissions().roles.get(placed.grant.role)
        totals[placed.role] = (len(used & set(held)), predefined.total) if predefined else (len(held), len(held))
        resources.setdefault(placed.role, set()).add(_granted_on(placed.grant.resource))
    yield "\n| grant | on | used | of all | remark |\n| --- | --- | --- | --- | --- |"
    for role, (count, total) in sorted(totals.items()):
        remark = principal.excess.get(role, "")
        yield f"| `{role}` | {', '.join(sorted(resources[role]))} | {count} | {total} | {remark} |"


def _granted_on(resource: str) -> str:
    """Return what a grant is on: a project, or a kind of resource below it."""
    parts = resource.split("/")
    if parts[0] == "buckets":
        return "a bucket"
    return "the project" if len(parts) == 2 else f"one of {parts[-2]}"


_HELP = "-h, --help"


def _command(command: click.Command, context: click.Context, heading: str) -> Iterator[str]:
    """Yield the help of a command, then of the commands below it."""
    yield f"{_escaped(inspect.cleandoc(command.help or ''))}\n"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"**Usage**:\n\n```console\n$ {context.command_path} {usage}\n```"
    for kind in ("argument", "option"):
        parameters = [parameter for parameter in command.get_params(context) if parameter.param_type_name == kind]
        records = [parameter.get_help_record(context) for parameter in parameters]
        if rows := [record for record in records if record]:
            yield f"\n**{kind.title()}s**:\n"
            # click keeps the help option with the names that it had when a command was first run, perhaps by itself.
            yield from (f"* `{_HELP if name == '--help' else name}`: {means}" for name, means in rows)
    if command.epilog:
        yield f"\n**Example**:\n\n```console\n$ {command.epilog.split(chr(10))[-1].strip()}\n```"
    below = command.commands if isinstance(command, click.Group) else {}
    if below:
        yield "\n**Commands**:\n"
        yield from (f"* `{name}`: {_escaped(child.get_short_help_str(limit=1000))}" for name, child in below.items())
    for name, child in below.items():
        yield f"\n{heading} `{context.command_path} {name}`\n"
        yield from _command(child, click.Context(child, parent=context, info_name=name), f"{heading}#")


def examples(files: Iterable[BaseModel | None]) -> dict[str, str]:
    """Return the first use of each section in files, by the section's name, as YAML with the fields above it."""
    texts: dict[str, str] = {}
    for file in files:
        _note(file, (), texts)
    return texts


def _note(value: object, path: tuple[str | int, ...], texts: dict[str, str]) -> None:
    below: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, BaseModel):
        below = [(name, getattr(value, name)) for name in type(value).model_fields if name in value.model_fields_set]
        texts.setdefault(type(value).__name__, _text(value, path))
    elif isinstance(value, Mapping):
        below = value.items()
    elif isinstance(value, list | tuple):
        below = enumerate(value)
    for key, child in below:
        _note(child, (*path, key), texts)


def _text(section: BaseModel, path: tuple[str | int, ...]) -> str:
    document = section.model_dump(mode="json", by_alias=True, exclude_unset=True)
    text = _nested(document, path)
    if text.count("\n") > _MOST_LINES:
        text = _nested({name: value for name, value in document.items() if not _deep(value)}, path)
    return text


def _deep(value: object) -> bool:
    """Whether a value holds mappings or lists of mappings, as sections by name do."""
    children: Iterable[object] = ()
    if isinstance(value, Mapping):
        children = value.values()
    elif isinstance(value, list):
        children = value
    return any(isinstance(child, Mapping | list) for child in children)


def _nested(document: object, path: tuple[str | int, ...]) -> str:
    for key in reversed(path):
        document = [document] if isinstance(key, int) else {key: document}
    return str(yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=110))


def _fields(title: str, file: str, schema: Mapping[str, Any], shown: Mapping[str, str]) -> Iterator[str]:
    sections: dict[str, Any] = schema.get("$defs", {})
    first = [name for name in ("Environment", "Team") if name in sections]
    yield f"# {title}\n\nThe fields of `{file}`, as its JSON Schema has them, and an example of each section."
    if not first:
        yield from _section("the file", schema, shown[Job.__name__])
    for name in (*first, *(section for section in sections if section not in first)):
        if "properties" in sections[name]:
            yield from _section(name, sections[name], shown[name])


def _section(name: str, section: Mapping[str, Any], shown: str) -> Iterator[str]:
    paragraphs = section.get("description", "").replace("``", "`").strip().split("\n\n")
    yield f"\n## {name}\n\n" + "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs) + "\n"
    yield f"```yaml\n{shown}```\n"
    yield "| field | value | means |\n| --- | --- | --- |"
    for field, value in section["properties"].items():
        kind = _kind(value) + (", required" if field in section.get("required", ()) else "")
        cells = (f"`{field}`", kind, value.get("description", ""))
        yield f"| {' | '.join(' '.join(cell.replace('|', chr(92) + '|').split()) for cell in cells)} |"


def _kind(value: Mapping[str, Any]) -> str:
    """Return what a field takes: its choices, the section that it is, or its type with its bounds."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if any_of := value.get("anyOf", value.get("oneOf")):
        return " or ".join(dict.fromkeys(_kind(choice) for choice in any_of if choice.get("type") != "null"))
    if choices := value.get("enum", [value["const"]] if "const" in value else None):
        return listed([f"`{choice}`" for choice in choices])
    if value.get("type") == "array":
        return f"list of {_kind(value.get('items', {}))}"
    named = [*value.get("patternProperties", {}).values(), value.get("additionalProperties")]
    if value.get("type") == "object" and isinstance(named[0], dict):
        return f"by name, {_kind(named[0])}"
    bounds = [f"{word} {value[key]:,}" for key, word in _BOUNDS.items() if key in value]
    return " ".join([str(value.get("type", "anything")), *bounds])


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("``", "`")


def status(page: str, reports: Iterable[Path]) -> str:
    """Return the page on what is proven with the answers of the last report on each probe.

    A report of a local cloud proves nothing about Google Cloud. Raises ValueError for it.
    """
    before, start, following_text = page.partition("<!-- from docs/verified, by make reference -->\n")
    _, end, after = following_text.partition("<!-- end -->")
    last: dict[str, tuple[str, str, str]] = {}
    for path in reports:
        report = json.loads(path.read_text(encoding="utf-8"))
        if report["where"] != GOOGLE:
            raise ValueError(f"{path.name} is a report of {report['where']}, which proves nothing about {GOOGLE}.")
        for row in report["probes"]:
            answer = (report["began"][:10], WORDS[row["verdict"]], f"version {report['version']}")
            last[row["probe"]] = max(last.get(row["probe"], answer), answer, key=lambda dated: dated[0])
    unasked = ("", "not run", "")
    rows = [(probe, *last.get(name, unasked)) for name, probe in PROBES.items()]
    table = [
        "| stage | probe | promise | answer | day | by |",
        "| --- | --- | --- | --- | --- | --- |",
        *(f"| {probe.stage} | `{probe.name}` | {probe.proves.rstrip('.')} | {word} | {day} | {by} |"
          for probe, day, word, by in rows),
    ]  # fmt: skip
    proven = sum(word == WORDS["proven"] for _, _, word, _ in rows)
    return (
        before + start + "\n".join([f"{proven} of {len(rows)} probes are proven there.\n", *table]) + f"\n{end}{after}"
    )


def main() -> None:
    """Write every page, and delete pages of rule sets that no longer exist."""
    page = FOLDER.parent / "development" / "status.md"
    page.write_text(status(page.read_text(encoding="utf-8"), VERIFIED.glob("*.json")), encoding="utf-8")
    for file, text in component_pages().items():
        file.write_text(text, encoding="utf-8")
    texts = pages()
    for path in rule_pages():
        if path.relative_to(FOLDER).as_posix() not in texts:
            path.unlink()
    for name, text in texts.items():
        path = FOLDER / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def rule_pages() -> list[Path]:
    """Return the pages of rule sets that are in the folder of the reference."""
    return sorted((FOLDER / "rules").glob("*.md"))


if __name__ == "__main__":
    main()
