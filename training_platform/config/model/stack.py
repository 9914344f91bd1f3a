"""A stack file, ``stacks/Pulumi.<stack>.yaml``, of an environment or a team."""

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from pathlib import PurePath
from typing import Any

from pydantic import BaseModel

from training_platform.catalog.nearest import find_nearest
from training_platform.config.model.environment import Environment, RetiredSpec
from training_platform.config.model.team import Team
from training_platform.config.reading.declaration import Draft, Rule, finding, located
from training_platform.config.reading.finding import Anchor, Finding, Path, Place, Position, dotted
from training_platform.config.reading.rejection import STACK_MODEL, right_part, validated
from training_platform.config.reading.section import FORMS, NAME, article, enumeration
from training_platform.config.reading.source import Source, SourceSection, UnreadableError, read_source, value_at

PROJECT = "training-platform"
SECTIONS: Mapping[str, type[Environment] | type[Team]] = {
    f"{PROJECT}:environment": Environment,
    f"{PROJECT}:team": Team,
}
ENVIRONMENTS = "environment"
"""The key that lists environments of Pulumi ESC. The engine adds their settings to those of the file."""
ENVIRONMENT_NAME = r"^([A-Za-z0-9_.-]+/)?[A-Za-z0-9_.-]+(@[A-Za-z0-9_.-]+)?$"
ENGINE_KEYS = ("config", ENVIRONMENTS, "encryptionsalt", "encryptedkey", "secretsprovider")
_CONFIG_KEY = re.compile(r"[A-Za-z0-9_-]+:[A-Za-z0-9_.:-]+\Z")
_FILE_NAME = re.compile(r"Pulumi\.(?P<stack>[A-Za-z0-9_.-]+)\.yaml\Z")


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack as defined by its file. ``environment`` or ``team`` is set; if neither is, ``findings`` has the reason.

    ``below`` is the path of the environment's or team's section in the file; paths in the section are relative to it.
    ``production`` is what the environment's file says, or None if it does not say it; for a team, it is known once all
    files are read. ``partial_team`` is a rejected team without the refused fields. It is used only to find the objects
    that it refers to.
    """

    name: str
    source: Source
    environment: Environment | None = None
    team: Team | None = None
    production: bool | None = None
    config: Mapping[str, Any]
    below: Path = ()
    findings: tuple[Finding, ...] = ()
    partial_team: Team | None = None

    @property
    def environment_name(self) -> str:
        """The name of the environment: this stack itself, or the environment to which its team belongs."""
        return self.team.environment if self.team else self.name

    @property
    def home_said(self) -> object:
        """The environment that a team states in its file, even if the model rejects the file. None for other stacks."""
        section = self.config.get(f"{PROJECT}:team")
        return section.get("environment") if isinstance(section, dict) else None

    @property
    def lends(self) -> bool:
        """Whether the environment lends unpromised capacity, so that it also depends on the files of its teams."""
        return self.environment is not None and self.environment.lend_unpromised

    @property
    def section(self) -> Environment | Team | None:
        """The environment or team of the stack, if its file is valid."""
        return self.environment or self.team

    def says(self, path: Path) -> bool:
        """Return True if the file sets a value at a path of the stack's section."""
        return value_at(self.source.value, (*self.below, *path)) is not None

    @property
    def retired(self) -> RetiredSpec | None:
        """The retirement of the stack, if its file declares one."""
        return self.section.retired if self.section else None

    def position(self, path: Path) -> Position:
        """Return the position of a path in the file, or of its nearest existing parent if the file has no such path."""
        return self.source.position((*self.below, *path))

    def place(self, path: Path) -> str:
        """Return the position of a path as text: file and line."""
        return f"{self.source.file}:{self.position(path).line}"

    def locate(self, field: Path) -> Anchor:
        """Return the file, position and path of a field of the stack's section, as findings need them."""
        return SourceSection(self.source, self.below, stack=self.name).locate(field)

    def at(self, path: Path) -> Place:
        """Return a path of the stack's section as a ``Place``, by which findings refer to their causes."""
        return self.source.place((*self.below, *path))

    def dangling(
        self,
        path: Path,
        value: str,
        noun: str,
        names: Collection[str],
        *,
        rule: Rule = STACK_MODEL,
        rests_on: tuple[Place, ...] = (),
    ) -> Draft:
        """Return the finding that a name, which is at a path of the section, is not one of the declared names.

        If the name is the last key of the path, rules cannot rely on what the file declares under this key. They cannot
        rely on the nearest name either, since it may be the one that was meant.
        """
        allowed = enumeration(names) or "none is declared"
        nearest = find_nearest(value, names)
        names = (value, nearest or value) if path[-1] == value else ()
        spoils = tuple(self.at((*path[:-1], name)) for name in names)
        message = f"{value!r} is not {article(noun)} {noun}"
        rests_on = (*rests_on, *spoils[:1])
        return finding(
            self, path, message, rule=rule, allowed=allowed, nearest=nearest, spoils=spoils, rests_on=rests_on
        )


def stack_name(path: PurePath) -> str | None:
    """Return the name of the stack that a file configures, or None unless the file is named ``Pulumi.<stack>.yaml``."""
    match = _FILE_NAME.match(path.name)
    return match["stack"] if match else None


def read_stack(path: FilePath, root: FilePath) -> Stack:
    """Read one stack file. Raises UnreadableError. All errors inside a readable file are findings."""
    file = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    source = read_source(path, file)
    if source.value is None:
        raise UnreadableError(
            f"{file}:1:1: is empty. Restore it from git, or delete it: `training-platform init environment` or "
            f"`training-platform init team` writes a new file."
        )
    return parse_stack(stack_name(path) or path.stem, source)


def parse_stack(name: str, source: Source) -> Stack:
    """Return the stack that a parsed file describes, with every finding about its structure."""
    findings = [*source.findings, *located(_envelope(name, source))]
    config = source.value.get("config") if isinstance(source.value, dict) else None
    config = config if isinstance(config, dict) else {}
    present = [key for key in SECTIONS if key in config]
    if len(present) != 1:
        misplaced = isinstance(source.value, dict) and SECTIONS.keys() & source.value.keys()
        if present or not (misplaced or any(key.startswith(f"{PROJECT}:") or _meant(key) for key in config)):
            message = "has both sections" if present else "has no section of this project"
            allowed = f"exactly one of {' and '.join(SECTIONS)}"
            file = SourceSection(source, stack=name)
            findings += located([finding(file, ("config",), message, rule=STACK_MODEL, allowed=allowed)])
        spoiled = (source.place(()),)  # nobody can read what refers to it
        findings = [dataclasses.replace(row, spoils=(*row.spoils, *spoiled)) for row in findings]
        return Stack(name=name, source=source, config=config, findings=tuple(findings))
    key = present[0]
    section, problems = validate(name, key, config[key], source)
    if isinstance(section, Environment) and not re.match(NAME, name):
        section = None
        problems = located([_wrong_name(name, key, source)])
    partial_team = None if section or SECTIONS[key] is not Team else right_part(config[key], Team)
    switches = {f"{dotted(('config', key))}.{row.path}" for row in problems if row.allowed == "true or false"}
    findings = [*(row for row in findings if row.path not in switches), *problems]  # `no` is one mistake
    if section is None:  # so nobody can read what refers to it
        findings = [dataclasses.replace(row, spoils=(*row.spoils, source.place(()))) for row in findings]
    return Stack(
        name=name,
        source=source,
        config=config,
        below=("config", key),
        environment=section if isinstance(section, Environment) else None,
        production=section.production if isinstance(section, Environment) else None,
        team=section if isinstance(section, Team) else None,
        partial_team=partial_team,
        findings=tuple(findings),
    )


def _wrong_name(name: str, key: str, source: Source) -> Draft:
    """Return a finding that a stack's name is invalid for an environment: it becomes part of all resource names."""
    meant = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")
    nearest = f"Pulumi.{meant}.yaml" if re.match(NAME, meant) else None
    message = (
        f"{name!r} in the file's name cannot be the name of an environment: it becomes part of the names of clusters "
        f"and networks"
    )
    section = SourceSection(source, stack=name)
    return finding(section, ("config", key), message, rule=STACK_MODEL, allowed=FORMS[NAME], nearest=nearest)


def validate(name: str, key: str, value: Any, source: Source) -> tuple[BaseModel | None, list[Finding]]:
    """Validate a section from the file or ``pulumi.Config``. Return its model (None if rejected) and the findings."""
    return validated(SECTIONS[key], value, source, ("config", key), stack=name)


def _envelope(name: str, source: Source) -> Iterator[Draft]:
    file = SourceSection(source, stack=name)
    if not isinstance(source.value, dict):
        yield finding(file, (), "is not a mapping", rule=STACK_MODEL, allowed="config:")
        return
    yield from _environments(file)
    for key in source.value:
        if key not in ENGINE_KEYS:
            meant = f"{PROJECT}:{key}"
            nearest = f"config: {meant}" if meant in SECTIONS else find_nearest(key, ENGINE_KEYS)
            message = "is not a key of a stack file"
            allowed = ", ".join(ENGINE_KEYS)
            if key in SECTIONS:
                message = "is not below config:"
                allowed = "an entry of config"
                nearest = (
                    "add a line `config:` above this line, and indent this line and the lines below it by 2 more spaces"
                )
            draft = finding(file, (key,), message, rule=STACK_MODEL, allowed=allowed, nearest=nearest)
            yield _of_section(draft, key, source)
    config = source.value.get("config")
    if config is not None and not isinstance(config, dict):
        yield finding(file, ("config",), "is not a mapping", rule=STACK_MODEL)
        return
    for key in (config := config or {}):
        misspelt = key.startswith(f"{PROJECT}:") or (_meant(key) and not SECTIONS.keys() & config.keys())
        if key not in SECTIONS and (misspelt or not _CONFIG_KEY.match(key)):
            path = ("config", key)
            allowed = f"{', '.join(SECTIONS)}, gcp:<setting>"
            nearest = _meant(key) or find_nearest(key, SECTIONS)
            draft = finding(file, path, "is not a setting", rule=STACK_MODEL, allowed=allowed, nearest=nearest)
            yield _of_section(draft, key, source)


def _environments(file: SourceSection) -> Iterator[Draft]:
    """Yield a finding if ``environments`` is not a list for Pulumi ESC. Often it is a section outside ``config``."""
    value = file.source.value.get(ENVIRONMENTS, [])
    allowed = "a list of environments of Pulumi ESC, such as [platform/dev]"
    if not isinstance(value, list):
        nearest = f"config: {PROJECT}:{ENVIRONMENTS}" if isinstance(value, dict) else f"[{value}]"
        message = "is not a list of Pulumi ESC environments"
        draft = finding(file, (ENVIRONMENTS,), message, rule=STACK_MODEL, allowed=allowed, nearest=nearest)
        yield _of_section(draft, ENVIRONMENTS, file.source)  # a team's section has a field of that name
        return
    for number, name in enumerate(value):
        if not isinstance(name, str) or not re.match(ENVIRONMENT_NAME, name):
            message = f"{name!r} is not the name of a Pulumi ESC environment"
            allowed = "PROJECT/ENVIRONMENT or ENVIRONMENT, optionally with @VERSION"
            yield finding(file, (ENVIRONMENTS, number), message, rule=STACK_MODEL, allowed=allowed)


def _of_section(draft: Draft, key: str, source: Source) -> Draft:
    """If the wrong key is a field of the file's section, return a finding about the indentation instead."""
    sections = value_at(source.value, ("config",))
    if not isinstance(sections, dict):
        return draft
    for section in SECTIONS.keys() & sections.keys():
        if key in SECTIONS[section].model_fields:
            return dataclasses.replace(
                draft, message=f"is a field of {section}", allowed=f"below {section}",
                nearest="indent this line and the lines below it by 4 more spaces",
                spoils=(source.place(("config", section, key)),),
            )  # fmt: skip
    return draft


def _meant(key: str) -> str | None:
    """Return the section that a misspelt setting probably means, or None for settings of other namespaces."""
    if (complete := f"{PROJECT}:{key}") in SECTIONS:
        return complete
    namespace, _, name = key.partition(":")
    section = find_nearest(name, [section.partition(":")[2] for section in SECTIONS])
    return f"{PROJECT}:{section}" if section and find_nearest(namespace, [PROJECT]) else None
