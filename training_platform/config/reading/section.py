"""The base class of the sections of a stack file, common types of their fields, and conflicts between fields."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, NoReturn, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from training_platform.catalog import CHARTS, DISK_TYPES, FILESTORE_TIERS, IMAGES, MACHINE_TYPES, REGIONS, ZONES
from training_platform.catalog.locations import MULTI_REGIONS
from training_platform.catalog.nearest import find_nearest, same_letters


class Section(BaseModel):
    """A section of a stack file: strict types, no unknown keys, immutable.

    - ``REMOVED`` contains the fields of earlier versions, each with its replacement.
    - ``ELSEWHERE`` maps the names that other tools give to fields to our names.
    - ``TAKEN_OVER`` maps inputs (``node_config.preemptible``) to fields that are new since the last release. Until
      the next release, ``provider_inputs`` may still contain these inputs.

    The files of the model do not defer annotations. Otherwise pydantic would compile each one again whenever a command
    starts.
    """

    REMOVED: ClassVar[Mapping[str, str]] = {}
    ELSEWHERE: ClassVar[Mapping[str, str]] = {}
    TAKEN_OVER: ClassVar[Mapping[str, str]] = {}
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class _Nothing(dict[Any, Any]):
    """The default of omitted mappings. It is hashable, so pydantic does not copy it each time."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __setitem__(self, key: object, value: object) -> NoReturn:
        """Raise TypeError, since the mapping is immutable."""
        raise TypeError(f"{key} was omitted from a file")

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a mapping."""
        return core_schema.dict_schema()


NOTHING: Any = _Nothing()  # Any, so that it is a mapping of any type
_Row = TypeVar("_Row")


class NamesWhere(Collection[str], Generic[_Row]):
    """The names of those rows of the catalogue for which the function ``right`` returns True."""

    def __init__(self, rows: Mapping[str, _Row], right: Callable[[_Row], bool]) -> None:
        self._rows = rows
        self._right = right

    def __contains__(self, name: object) -> bool:
        """Return True if a row has this name and satisfies the condition."""
        return isinstance(name, str) and name in self._rows and self._right(self._rows[name])

    def __iter__(self) -> Iterator[str]:
        """Yield the names in the order of the rows."""
        return (name for name, row in self._rows.items() if self._right(row))

    def __len__(self) -> int:
        """Return the number of names."""
        return sum(1 for _ in self)


@dataclass(frozen=True, eq=False)
class OneOf:
    """A string that must be one of the catalogue's ``names``. The error lists the allowed and the nearest name.

    The error suggests ``instead`` if no name is similar. If the string is one of ``names_elsewhere``, it suggests the
    field ``elsewhere``, in which the string is valid. ``called`` returns other common names, each with the catalogue's
    name.
    """

    kind: str
    names: Collection[str]
    names_elsewhere: Collection[str] = ()
    instead: str | None = None
    elsewhere: str | None = None
    called: Callable[[], Mapping[str, str]] = dict

    def check(self, value: str) -> str:
        """Return the value if it is a name of the catalogue. Raises PydanticCustomError otherwise."""
        if value in self.names:
            return value
        if value in self.names_elsewhere:
            raise unknown_name(self.kind, value, (), self.names, self.elsewhere or self.instead)
        if meant := self.called().get(value.strip().casefold()):
            raise unknown_name(self.kind, value, (), self.names, meant)
        raise unknown_name(self.kind, value, self.names, self.names, self.instead)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema with which pydantic validates the field."""
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON schema, from which editors suggest the names."""
        return {**handler(schema), "enum": sorted(self.names)}


def unknown_name(
    kind: str, value: str, similar: Collection[str], names: Collection[str], instead: str | None = None
) -> PydanticCustomError:
    """Return the error for a name that is not one of ``names``. Names that start in the same way are listed first."""
    ordered = sorted(names, key=lambda name: (-same_letters(name, value), name))
    context = {"allowed": listed(ordered), "nearest": find_nearest(value, similar) or instead}
    return PydanticCustomError("unknown_name", f"{value!r} is not {article(kind)} {kind}".replace("{", "{{"), context)


def article(noun: str) -> str:
    """Return the indefinite article of a noun."""
    return "an" if noun[0] in "aeiou" else "a"


def enumeration(names: Collection[str], max_names: int = 12) -> str:
    """Return at most ``max_names`` names as one line, in alphabetical order."""
    return listed(sorted(names), max_names)


def listed(ordered: Sequence[str], max_names: int = 12) -> str:
    """Return at most ``max_names`` names as one line."""
    omitted_count = len(ordered) - max_names
    return ", ".join(ordered[:max_names]) + (f" and {omitted_count} more" if omitted_count > 0 else "")


def counted(count: int, noun: str) -> str:
    """Return a number followed by its noun, with a plural if needed."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


_Listed = TypeVar("_Listed", str, int)


def unique(values: tuple[_Listed, ...]) -> tuple[_Listed, ...]:
    """Return a list unchanged. Raises PydanticCustomError with the values that it contains more than once."""
    twice = ", ".join(str(value) for value in sorted({value for value in values if values.count(value) > 1}))
    if twice:
        raise PydanticCustomError("twice", f"has {twice} twice".replace("{", "{{"), {"allowed": "each once"})
    return values


def fits(kind: Any, value: object) -> bool:
    """Return True if a field of a type, such as ``Name`` or ``Member``, accepts a value."""
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return False
    return True


def refusal(kind: Any, value: object) -> str | None:
    """Return why a field of a type rejects a value, and the values that it accepts; None if it accepts the value."""
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        context = first.get("ctx", {})
        form = FORMS.get(str(context.get("pattern")))
        message = f"{value!r} is not in the right form" if form else first["msg"]
        hint = f" Nearest: {context['nearest']}." if context.get("nearest") else ""
        return f"{message}. Allowed: {form or context.get('allowed')}.{hint}"
    return None


def _cidr(value: str) -> str:
    try:
        network = ipaddress.IPv4Network(value, strict=False)
    except ValueError as error:
        context = {"allowed": "an IPv4 range such as 10.8.0.0/20", "nearest": None}
        raise PydanticCustomError("cidr", f"{value!r} is not an IPv4 range".replace("{", "{{"), context) from error
    if "/" not in value:
        context = {"allowed": "an IPv4 range such as 10.8.0.0/20", "nearest": f"{value}/20"}
        raise PydanticCustomError("cidr", f"{value!r} has no prefix length", context)
    if str(network) != value:
        context = {"allowed": "a range that starts at its first address", "nearest": str(network)}
        raise PydanticCustomError("cidr", f"{value!r} has bits set to the right of its prefix", context)
    return value


NAME = r"^[a-z]([a-z0-9-]{0,28}[a-z0-9])?$"
_PROJECT = r"^[a-z][a-z0-9-]{4,28}[a-z0-9]$"
_MEMBER = r"^(user|group|serviceAccount):[^\s:@]+@[a-z0-9.-]+\.[a-z]{2,}$"
MEMBERS = ("group", "user", "serviceAccount")
CURRENCY = r"^[A-Z]{3}$"
EMAIL = r"^[^\s:@]+@[a-z0-9.-]+\.[a-z]{2,}$"
_LABEL_KEY = r"^[a-z][a-z0-9_-]{0,62}$"
_LABEL_VALUE = r"^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$"  # what both Google Cloud and Kubernetes take
_NODE_LABEL_KEY = r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"
_NODE_LABEL_VALUE = r"^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$"
_VERSION = r"^[0-9]+(\.[0-9]+){0,2}(-gke\.[0-9]+)?$"
REQUEST_NAME = r"^[a-z]([a-z0-9-]{0,55}[a-z0-9])?$"  # with its prefix at most 63 characters, the limit of resource ids
SERVICE = r"^[a-z]+\.googleapis\.com$"
QUOTA_ID = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
_HOST = r"^[a-z0-9.-]+\.[a-z]{2,}$"
DOMAIN = r"^(\*\.)?([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$"
DIGEST = r"^sha256:[0-9a-f]{64}$"
REGISTRY_URL = r"^https://[a-z0-9.-]+\.[a-z]{2,}(/[A-Za-z0-9._~/-]*)?$"
RESERVATION_NAME = r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$"
RESERVATION_OR_ANY = r"^(\*|[a-z]([a-z0-9-]{0,61}[a-z0-9])?)$"
CLUSTER_NAME = r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$"
DISK_IMAGE = r"^(projects/[a-z0-9.:-]+/)?global/images/[a-z]([a-z0-9-]{0,61}[a-z0-9])?$"
BUCKET_NAME = r"^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$"
KMS_KEY = r"^projects/[a-z0-9.:-]+/locations/[a-z0-9-]+/keyRings/[A-Za-z0-9_-]{1,63}/cryptoKeys/[A-Za-z0-9_-]{1,63}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"
FORMS = {
    NAME: "at most 30 lower-case letters, digits and dashes, starting with a letter",
    _PROJECT: "a project id: 6 to 30 lower-case letters, digits and dashes",
    _MEMBER: "group:, user: or serviceAccount: and an address, such as group:vision@example.com",
    _LABEL_KEY: "a label's key: at most 63 lower-case letters, digits, _ and -, starting with a letter",
    CURRENCY: "the three capital letters of a currency, such as EUR",
    EMAIL: "an address such as ml-platform@example.com",
    _LABEL_VALUE: "a label's value: at most 63 lower-case letters and digits, with _ and - only between them",
    _NODE_LABEL_KEY: "a key such as example.com/team: after the domain at most 63 letters, digits, _, - and .",
    _NODE_LABEL_VALUE: "at most 63 letters and digits, with _, - and . only between them",
    _VERSION: 'a version in quotes, such as "1.33"',
    _TIME: "a time in UTC, such as 2026-12-20T00:00:00Z",
    _HOST: "a host name such as notebooks.example.com",
    DOMAIN: "a host name such as api.example.com, or *.example.com for names with one more label",
    DIGEST: "sha256: and 64 hexadecimal digits",
    REGISTRY_URL: "the https:// address of a registry, such as https://registry-1.docker.io",
    RESERVATION_OR_ANY: "a reservation's name, of at most 63 lower-case letters, digits and dashes, or any",
    RESERVATION_NAME: "at most 63 lower-case letters, digits and dashes, starting with a letter",
    REQUEST_NAME: "at most 57 lower-case letters, digits and dashes, starting with a letter",
    CLUSTER_NAME: "a cluster's name, of at most 40 lower-case letters, digits and dashes",
    SERVICE: "a service such as compute.googleapis.com",
    DISK_IMAGE: "a disk image such as projects/example/global/images/torch",
    BUCKET_NAME: "a bucket's name: 3 to 63 lower-case letters, digits, dots, dashes and underscores",
    KMS_KEY: "a key's full resource name, projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY",
    QUOTA_ID: "a quota id such as CPUS-per-project-region",
}
"""Descriptions of the model's string patterns, used in messages."""

Name = Annotated[str, Field(pattern=NAME, examples=["vision"])]
"""At most 30 lower-case letters, digits and dashes (GKE allows 40, and this project adds suffixes)."""
ProviderInputs = Annotated[dict[str, Any], Field(json_schema_extra={"additionalProperties": {}})]
"""Inputs of a resource that have no field, with their names in pulumi-gcp's Python SDK."""
FormerName = Annotated[
    Name | None,
    Field(description="Name of the stack before `pulumi stack rename`. Only `check --base` uses it.", examples=["dev"]),
]
DeletionProtection = Annotated[
    bool,
    Field(
        description="false lets a change delete or replace the resource, even if the environment protects resources."
    ),
]
ProjectId = Annotated[
    str, Field(pattern=_PROJECT, description="Id of a Google Cloud project.", examples=["example-train-dev"])
]
Member = Annotated[
    str,
    Field(
        pattern=_MEMBER,
        description="An IAM member: a group, a user or a service account.",
        examples=["group:vision@example.com"],
    ),
]
Members = Annotated[tuple[Member, ...], AfterValidator(unique)]
LabelKey = Annotated[str, Field(pattern=_LABEL_KEY, examples=["cost-center"])]
LabelValue = Annotated[str, Field(pattern=_LABEL_VALUE, examples=["ml-research"])]
HostName = Annotated[str, Field(pattern=_HOST, examples=["notebooks.example.com"])]
Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=64)]
"""Labels of resources. Google Cloud accepts 64 per resource, including the platform's own."""
NodeLabelKey = Annotated[str, Field(pattern=_NODE_LABEL_KEY)]  # also of taints
NodeLabelValue = Annotated[str, Field(pattern=_NODE_LABEL_VALUE)]
Email = Annotated[str, Field(pattern=EMAIL, examples=["ml-platform@example.com"])]
Cidr = Annotated[str, AfterValidator(_cidr), Field(examples=["10.10.0.0/20"])]
Version = Annotated[str, Field(pattern=_VERSION, examples=["1.33"])]
Time = Annotated[str, Field(pattern=_TIME, examples=["2026-12-20T00:00:00Z"])]

MachineTypeName = Annotated[str, OneOf("machine type", MACHINE_TYPES)]
DiskTypeName = Annotated[str, OneOf("disk type", DISK_TYPES)]
FilestoreTierName = Annotated[str, OneOf("Filestore tier", FILESTORE_TIERS)]
ChartName = Annotated[str, OneOf("chart of the platform", CHARTS)]
_NODE_IMAGES = tuple(name for name in IMAGES if name.startswith("node-"))
ImageName = Annotated[str, OneOf("image of nodes", _NODE_IMAGES)]
Region = Annotated[str, OneOf("region", REGIONS)]
Zone = Annotated[str, OneOf("zone", ZONES)]
Location = Annotated[str, OneOf("region or zone", REGIONS | ZONES)]
ImageLocation = Annotated[str, OneOf("region or multi-region", REGIONS | MULTI_REGIONS.keys())]


class Problem(NamedTuple):
    """A field that conflicts with others: its path in the section, the message, and the values that it accepts."""

    path: tuple[str | int, ...]
    message: str
    allowed: str | None = None
    nearest: str | None = None


def above(minimum_name: str, minimum: int, maximum_name: str, maximum: int) -> Iterator[Problem]:
    """Yield a conflict if a minimum exceeds a maximum."""
    if minimum > maximum:
        message = f"is {minimum}, which is more than {maximum_name} ({maximum})"
        yield Problem(
            (minimum_name,),
            message,
            allowed=f"at most {maximum}, or {maximum_name} of at least {minimum}",
            nearest=str(maximum),
        )


def refuse_conflicts(conflicts: Iterable[Problem]) -> None:
    """Raise one error for all conflicts, if any. Its context contains the first, and the others as ``more``.

    Pydantic stops at the first error of a section, so separate errors would hide one another.
    """
    all_conflicts = tuple(conflicts)
    if not all_conflicts:
        return
    first, *more = all_conflicts
    context = {"at": first.path, "allowed": first.allowed, "nearest": first.nearest, "more": tuple(more)}
    raise PydanticCustomError("conflict", first.message.replace("{", "{{"), context)


class Consistent(Section):
    """A section whose fields depend on each other."""

    def conflicts(self) -> Iterable[Problem]:
        """Return the conflicts between fields."""
        return ()

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        refuse_conflicts(self.conflicts())
        return self


def form(pattern: str, noun: str, allowed: str) -> AfterValidator:
    """Return a check that a whole string matches a pattern. Its error contains ``noun`` and the allowed values."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value, re.ASCII):  # compiled at its first use
            message = f"{value!r} is not {noun}".replace("{", "{{")
            raise PydanticCustomError("malformed", message, {"allowed": allowed, "nearest": None})
        return value

    return AfterValidator(check)


_IMAGE_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
IMAGE_PATH = rf"{_IMAGE_PART}(?:/{_IMAGE_PART})*"
"""An image's name in its registry. Source: github.com/distribution/reference v0.6.0, regexp.go, read 2026-11-28."""
ImageReference = Annotated[
    str,
    form(
        rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{IMAGE_PATH}(?::\w[\w.-]{{0,127}}(?:@sha256:[0-9a-f]{{64}})?|@sha256:[0-9a-f]{{64}})",
        "a container image with its tag or digest",
        "REGISTRY/IMAGE:TAG, with IMAGE in lower case",
    ),
]
AnyImage = Annotated[
    str,
    form(
        rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{IMAGE_PATH}(?::\w[\w.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?",
        "a container image",
        "REGISTRY/IMAGE:TAG, with IMAGE in lower case",
    ),
]
"""An image in the form that people write. Without a tag, a runtime uses ``latest``, which a rule reports."""
Variable = Annotated[
    str, form(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable", "letters, digits and _, not starting with a digit")
]
SecretVersion = Annotated[
    str,
    form(
        r"[a-z]([a-z0-9-]{0,28}[a-z0-9])?(:(latest|[1-9][0-9]*))?",
        "a secret of the team's stack",
        "the secret's name in that stack, or NAME:VERSION",
    ),
]
