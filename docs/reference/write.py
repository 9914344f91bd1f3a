"""Writes the pages of the reference beside itself from what they describe; run by ``make reference``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from typer.cli import get_docs_for_click

from training_platform.cli.main import app
from training_platform.config.reading.section import listed
from training_platform.config.schema import stack_schema
from training_platform.jobs.schema import job_schema
from training_platform.rules.descriptions import GROUPS, rule_sheets

FOLDER = Path(__file__).parent
NAME = "training-platform"
_BOUNDS = {"minimum": "at least", "maximum": "at most"}
_CUT = re.compile(r"(?<=`): [^`\n]*\.\.\.$", re.MULTILINE)


def pages() -> dict[str, str]:
    """Return the text of every page by its file name."""
    texts = {
        "rules.md": _rules(),
        "commands.md": _commands(),
        "stack-file.md": _fields("Stack file", "stacks/Pulumi.<stack>.yaml", stack_schema(), ("Environment", "Team")),
        "job-file.md": _fields("Job file", "jobs/<team>/<job>.yaml", job_schema(), ()),
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


def _commands() -> Iterator[str]:
    """Yield the page that typer makes of the commands, without summaries that it cuts."""
    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name=NAME, title="Command line")
    yield _CUT.sub("", text.strip())


def _fields(title: str, file: str, schema: Mapping[str, Any], first: tuple[str, ...]) -> Iterator[str]:
    sections: dict[str, Any] = schema.get("$defs", {})
    yield f"# {title}\n\nThe fields of `{file}`, as its JSON Schema has them."
    if not first:
        yield from _section("the file", schema)
    for name in (*first, *(each for each in sections if each not in first)):
        if "properties" in sections[name]:
            yield from _section(name, sections[name])


def _section(name: str, section: Mapping[str, Any]) -> Iterator[str]:
    yield f"\n## {name}\n\n{_paragraphs(section.get('description', ''))}\n"
    required = section.get("required", ())
    yield from _table(
        ("field", "value", "means"),
        (
            (f"`{field}`", _kind(each) + (", required" if field in required else ""), each.get("description", ""))
            for field, each in section["properties"].items()
        ),
    )


def _kind(value: Mapping[str, Any]) -> str:
    """Return what a field takes: its choices, the section that it is, or its type with its bounds."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if any_of := value.get("anyOf", value.get("oneOf")):
        return " or ".join(dict.fromkeys(_kind(each) for each in any_of if each.get("type") != "null"))
    if choices := value.get("enum", [value["const"]] if "const" in value else None):
        return listed([f"`{each}`" for each in choices])
    if value.get("type") == "array":
        return f"list of {_kind(value.get('items', {}))}"
    named = [*value.get("patternProperties", {}).values(), value.get("additionalProperties")]
    if value.get("type") == "object" and isinstance(named[0], dict):
        return f"by name, {_kind(named[0])}"
    bounds = [f"{word} {value[key]:,}" for key, word in _BOUNDS.items() if key in value]
    return " ".join([str(value.get("type", "anything")), *bounds])


def _table(titles: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{' --- |' * len(titles)}"
    for row in rows:
        yield f"| {' | '.join(' '.join(cell.replace('|', chr(92) + '|').split()) for cell in row)} |"


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.replace("``", "`").split()) for paragraph in text.strip().split("\n\n"))


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("``", "`")


def main() -> None:
    """Write every page."""
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
