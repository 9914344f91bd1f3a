"""Writes the pages of the reference beside itself from commands and schemas; run by ``make reference``.

Writes the part of ``docs/status.md`` on Google Cloud too, from the reports of ``verify`` in ``docs/verified``.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import yaml
from pydantic import BaseModel

from training_platform.cli.main import app
from training_platform.config.reading.section import listed
from training_platform.config.reading.source import read_source
from training_platform.config.schema import stack_schema
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.model import Job
from training_platform.parts.jobs.schema import job_schema
from training_platform.parts.verify.probes import probes
from training_platform.parts.verify.report import WORDS
from training_platform.parts.verify.run import GOOGLE
from training_platform.rules.descriptions import GROUPS, rule_sheets

FOLDER = Path(__file__).parent
VERIFIED = FOLDER.parent / "verified"
EXAMPLES = FOLDER / "examples"
"""A repository in which every section of a stack file and of a job file is used, and which `check` accepts."""
NAME = "training-platform"
_MOST_LINES = 14  # of an example; a longer one leaves the sections below it out
_BOUNDS = {"minimum": "at least", "maximum": "at most"}


def pages() -> dict[str, str]:
    """Return the text of every page by its file name."""
    stacks = [stack.environment or stack.team for stack in read_workspace(EXAMPLES).stacks.values()]
    files = sorted(EXAMPLES.glob("jobs/*/*.yaml"))
    jobs = [Job.model_validate_json(json.dumps(read_source(file, file.name).value)) for file in files]
    context = click.Context(app, info_name=NAME, **app.context_settings)
    texts = {
        "rules.md": _rules(),
        "commands.md": ("# Command line\n", *_command(app, context, "##")),
        "stack-file.md": _fields("Stack file", "stacks/Pulumi.<stack>.yaml", stack_schema(), examples(stacks)),
        "job-file.md": _fields("Job file", "jobs/<team>/<job>.yaml", job_schema(), examples(jobs)),
    }
    return {name: "\n".join(lines).rstrip() + "\n" for name, lines in texts.items()}


def _rules() -> Iterator[str]:
    sheets = rule_sheets()
    yield "# Rules"
    yield f"\n{len(sheets)} rules, by rule set. `{NAME} explain RULE` adds how to fix and how to exempt a finding."
    for group, title in GROUPS.items():
        yield f"\n## {group}\n\n{_escaped(title)}"
        for sheet in sheets:
            if sheet.group == group:
                yield f"\n### {sheet.id}\n"
                yield f"Looks for {_escaped(sheet.looks_for)} {sheet.severity.title()}; refused by {sheet.refused_by}."
                yield from (f"\n{_escaped(part)}" for part in sheet.details.split("\n\n") if part)
                yield from (f"\nSource: {_escaped(sheet.source)}." for _ in [0] if sheet.source)
                yield from (f"\nKnown refusals: {', '.join(sheet.facts)}." for _ in [0] if sheet.facts)


def _command(command: click.Command, context: click.Context, heading: str) -> Iterator[str]:
    """Yield the help of a command, then of the commands below it."""
    yield f"{_escaped(inspect.cleandoc(command.help or ''))}\n"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"**Usage**:\n\n```console\n$ {context.command_path} {usage}\n```"
    for kind in ("argument", "option"):
        parameters = [parameter for parameter in command.get_params(context) if parameter.param_type_name == kind]
        if rows := [record for parameter in parameters if (record := parameter.get_help_record(context))]:
            yield f"\n**{kind.title()}s**:\n"
            yield from (f"* `{name}`: {means}" for name, means in rows)
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
    found: dict[str, str] = {}
    for file in files:
        _note(file, (), found)
    return found


def _note(value: object, path: tuple[str | int, ...], found: dict[str, str]) -> None:
    below: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, BaseModel):
        below = [(name, getattr(value, name)) for name in type(value).model_fields if name in value.model_fields_set]
        found.setdefault(type(value).__name__, _text(value, path))
    elif isinstance(value, Mapping):
        below = value.items()
    elif isinstance(value, list | tuple):
        below = enumerate(value)
    for key, child in below:
        _note(child, (*path, key), found)


def _text(section: BaseModel, path: tuple[str | int, ...]) -> str:
    document = section.model_dump(mode="json", by_alias=True, exclude_unset=True)
    text = _nested(document, path)
    if text.count("\n") > _MOST_LINES:
        text = _nested({name: value for name, value in document.items() if not _deep(value)}, path)
    return text


def _deep(value: object) -> bool:
    """Whether a value holds mappings or lists of mappings, as sections by name do."""
    children = list(value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ())
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
    before, start, rest = page.partition("<!-- from docs/verified, by make reference -->\n")
    _, end, after = rest.partition("<!-- end -->")
    last: dict[str, tuple[str, str, str]] = {}
    for path in reports:
        report = json.loads(path.read_text(encoding="utf-8"))
        if report["where"] != GOOGLE:
            raise ValueError(f"{path.name} is a report of {report['where']}, which proves nothing about {GOOGLE}.")
        for row in report["probes"]:
            said = (report["began"][:10], WORDS[row["verdict"]], f"version {report['version']}")
            last[row["probe"]] = max(last.get(row["probe"], said), said, key=lambda one: one[0])
    unasked = ("", "not run", "")
    rows = [(one, *last.get(name, unasked)) for name, one in probes().items()]
    table = [
        "| stage | probe | promise | answer | day | by |",
        "| --- | --- | --- | --- | --- | --- |",
        *(f"| {one.stage} | `{one.name}` | {one.proves.rstrip('.')} | {word} | {day} | {by} |"
          for one, day, word, by in rows),
    ]  # fmt: skip
    proven = sum(word == WORDS["proven"] for _, _, word, _ in rows)
    return (
        before + start + "\n".join([f"{proven} of {len(rows)} probes are proven there.\n", *table]) + f"\n{end}{after}"
    )


def main() -> None:
    """Write every page."""
    page = FOLDER.parent / "status.md"
    page.write_text(status(page.read_text(encoding="utf-8"), VERIFIED.glob("*.json")), encoding="utf-8")
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
