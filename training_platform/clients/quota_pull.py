"""Reads a snapshot of limits from the Cloud Quotas API: the limits, the changes, and the new text of the file.

It contains the quota ids in the catalogue, so that the effect of another machine type can be checked offline, and the
quota ids that the file already lists. A location that no row covers has the limit 0. A limit of 0 is therefore written
only if a more general row would give the location another limit.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

from training_platform.clients.google_api import BUSY, LOG_IN, RETRIES, GoogleApi, GoogleError, checked_endpoint
from training_platform.config.reading.finding import UserError, install
from training_platform.quota.quota_ids import known_quotas, services
from training_platform.quota.snapshot import FOLDER, OTHERS, SCHEMA_LINE, Snapshot, unmarked

if TYPE_CHECKING:
    from requests import Response

_PAGE = 1000
_MOST_PAGES = 1000  # of one service, in case a server never stops
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_PLACES = ("region", "zone")
_WIDTH = 100_000  # columns, so that a row stays in one line
_HEAD = f"""\
{SCHEMA_LINE}
# Limits by service and quota id; -1 is unlimited. If an id does not list a region, or a value of
# another dimension, the limit there is 0. Written by `training-platform quota pull`, which keeps comments.
"""

Dimensions = tuple[tuple[str, str], ...]
Limits = dict[str, dict[str, dict[Dimensions, int]]]


class LimitRow(NamedTuple):
    """A limit for the API's ``dimensions``. If it names no location, it covers those that no other row lists."""

    dimensions: Mapping[str, str]
    limit: int


class QuotaInfo(NamedTuple):
    """One quota id of a service, with the names of its ``dimensions`` and its limits as ``rows``."""

    quota_id: str
    dimensions: tuple[str, ...]
    rows: tuple[LimitRow, ...]


_NO_QUOTA_PROJECT = "requires a quota project"


class CloudQuotas(GoogleApi):
    """The quotas of a project in the Cloud Quotas API (extra ``quota``).

    An ``endpoint`` has to be encrypted, or on this machine. The latter gets no credentials.
    """

    def __init__(self, project: str, endpoint: str | None = None) -> None:
        self.project = project
        super().__init__(
            "cloudquotas",
            "v1",
            checked_endpoint(endpoint),
            title="Cloud Quotas",
            where=f"projects/{project}",
            read_only=True,
            extra="quota",
        )

    def quotas(self, service: str) -> Iterator[QuotaInfo]:
        """Yield every quota of a service that limits an amount, as opposed to a rate. Raises UserError."""
        path = f"projects/{self.project}/locations/global/services/{service}/quotaInfos"
        for number, page in enumerate(self.pages(path, pageSize=_PAGE)):
            if number == _MOST_PAGES:
                raise UserError(f"Cloud Quotas never returns a last page for {path}.")
            for info in _objects(page, "quotaInfos"):
                # A quota with a refresh interval counts requests per minute or day; others count resources.
                if not info.get("refreshInterval") and info.get("containerType", "PROJECT") == "PROJECT":
                    yield _quota_info(info, path)

    def refusal(self, answer: Response) -> GoogleError:
        """Return an error that explains an API error and how to fix it, followed by the API's message."""
        status = answer.status_code
        project = self.project
        reasons: set[str] = set()
        words = "Its error message cannot be read."
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            error = answer.json()["error"]
            words = f"Its error: {' '.join(str(error['message']).split())}"
            reasons = {str(detail.get("reason")) for detail in error.get("details", ()) if isinstance(detail, dict)}
        if _NO_QUOTA_PROJECT in words:  # it has the reason if an API is not enabled
            message = (
                "Cloud Quotas needs a quota project for user credentials: "
                f"gcloud auth application-default set-quota-project {project}."
            )
        elif "SERVICE_DISABLED" in reasons:
            message = (
                f"The Cloud Quotas API is not enabled for {project} or the credentials' project: "
                f"gcloud services enable cloudquotas.googleapis.com --project {project}."
            )
        elif status == 401:
            message = f"The credentials are not accepted. {LOG_IN}"
        elif status == 403:
            message = f"The credentials may not read the quotas of {project}; they need roles/cloudquotas.viewer."
        elif status == 404:
            message = f"Cloud Quotas does not find project {project}, or this service in it."
        elif status in BUSY:
            message = f"Cloud Quotas is busy (HTTP {status}) after {RETRIES} retries; try again later."
        else:
            message = f"Cloud Quotas refuses the listing for {project} (HTTP {status})."
        return GoogleError(f"{message} {words}", status)


def _quota_info(info: Mapping[str, Any], path: str) -> QuotaInfo:
    quota_id = info.get("quotaId")
    if not isinstance(quota_id, str) or not quota_id:
        raise UserError(f"{path} lists a quota without an id.")
    rows = []
    for entry in _objects(info, "dimensionsInfos"):
        value = str((entry.get("details") or {}).get("value", "0"))  # the API leaves 0 out
        dimensions = entry.get("dimensions") or {}
        if not _WHOLE.fullmatch(value) or int(value) < -1 or not isinstance(dimensions, dict):
            raise UserError(f"{path} returns {value!r} as the limit of {quota_id}, which is not a valid limit.")
        rows.append(LimitRow({str(name): str(text) for name, text in dimensions.items()}, int(value)))
    return QuotaInfo(quota_id, tuple(str(name) for name in info.get("dimensions") or ()), rows=tuple(rows))


def _objects(body: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = body.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise UserError(f"The response's {key} is not a list of objects.")
    return value


class LimitChange(NamedTuple):
    """A limit that differs from the file. ``old`` is None if the row is new, and ``new`` is None if it is removed."""

    service: str
    quota_id: str
    dimensions: Dimensions
    old: int | None
    new: int | None

    def __str__(self) -> str:
        """Return the change as a line: ``CPUS-per-project-region us-central1: 200 -> 400``."""
        where = " ".join(value for _, value in self.dimensions)
        subject = f"{self.quota_id} {where}" if where else self.quota_id
        return f"{subject}: {_limit_text(self.old)} -> {_limit_text(self.new)}"


def _limit_text(limit: int | None) -> str:
    if limit is None:
        return "not listed"
    return "unlimited" if limit == -1 else f"{limit:,}"


class Pulled(NamedTuple):
    """One project's snapshot: its file, the new text, the changes, and quota ids that stacks need but that it lacks."""

    project: str
    file: str
    text: str
    changes: tuple[LimitChange, ...]
    missing: tuple[str, ...]


def pull(
    api: CloudQuotas,
    *,
    old: Snapshot | None,
    needed: Collection[tuple[str, str]],
    today: date,
    text: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Pulled:
    """Read a project's limits and return the new text of its snapshot. ``text`` is the old text, if the file exists.

    ``needed`` contains the service and quota id of each quota that the stacks use. Raises UserError.
    """
    if (old and old.placeholder) or (text and unmarked(text)):  # placeholders, which are not read from a project
        old = text = None
    project = api.project
    before = _limits_of(old)
    written = {(service, name) for service, ids in before.items() for name in ids}
    kept = {*known_quotas(), *needed, *written}
    after: Limits = {}
    for service in sorted({*services(), *before, *(service for service, _ in needed)}):
        progress(f"{project}: {service}")
        infos = [info for info in api.quotas(service) if (service, info.quota_id) in kept]
        if infos:
            after[service] = {info.quota_id: rows_of(info) for info in infos}
    missing = sorted(quota_id for service, quota_id in needed if quota_id not in after.get(service, {}))
    return Pulled(
        project,
        f"{FOLDER}/{project}.yaml",
        text=rewritten(project, text, after, today),
        changes=changes(before, after),
        missing=tuple(missing),
    )


def rows_of(info: QuotaInfo) -> dict[Dimensions, int]:
    """Return the rows to write for a quota, the most general last. If a limit has no location, ``others`` is written.

    A limit of 0 is written only if a row with fewer dimensions would otherwise set another limit.
    """
    named = {*info.dimensions, *(name for row in info.rows for name in row.dimensions)}
    place = next((name for name in _PLACES if name in named), None)
    rows: dict[Dimensions, int] = {}
    for row in sorted(info.rows, key=lambda row: (-len(row.dimensions), sorted(row.dimensions.items()))):
        dimensions = row.dimensions.items()
        if row.limit or any(other.limit and other.dimensions.items() < dimensions for other in info.rows):
            missing = {} if place is None or place in row.dimensions else {place: OTHERS}
            rows[_ordered({**missing, **row.dimensions})] = row.limit
    return rows


def changes(before: Limits, after: Limits) -> tuple[LimitChange, ...]:
    """Return the changes, sorted by service, quota id and dimensions."""
    changed: list[LimitChange] = []
    for service in sorted({*before, *after}):
        old_ids = before.get(service, {})
        new_ids = after.get(service, {})
        for quota_id in sorted({*old_ids, *new_ids}):
            old = old_ids.get(quota_id, {})
            new = new_ids.get(quota_id, {})
            rows = (
                LimitChange(service, quota_id, dimensions=row, old=old.get(row), new=new.get(row))
                for row in sorted({*old, *new})
            )
            changed.extend(change for change in rows if change.old != change.new)
    return tuple(changed)


def rewritten(project: str, text: str | None, limits: Limits, today: date) -> str:
    """Return a snapshot's text with new limits. Comments and order are kept, and new rows are added at the end.

    Raises UserError if the library for editing YAML is not installed.
    """
    try:
        from ruamel.yaml import YAML  # noqa: PLC0415 # the extra brings it
        from ruamel.yaml.comments import CommentedMap  # noqa: PLC0415
        from ruamel.yaml.scalarstring import DoubleQuotedScalarString  # noqa: PLC0415
    except ImportError as error:
        raise UserError(f"quota pull needs the extra `quota`: {install('quota')}") from error
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = _WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    document = yaml.load(text) if text is not None else CommentedMap(project=project)
    document["taken"] = DoubleQuotedScalarString(today.isoformat())
    _merge(document.setdefault("limits", CommentedMap()), limits, CommentedMap)
    stream = io.StringIO()
    yaml.dump(document, stream)
    return (_HEAD if text is None else "") + stream.getvalue()


def _merge(document: Any, limits: Limits, new_map: Any) -> None:
    for service in [service for service in document if service not in limits]:
        del document[service]
    for service, ids in limits.items():
        home = document.setdefault(service, new_map())
        for quota_id in [quota_id for quota_id in home if quota_id not in ids]:
            del home[quota_id]
        for quota_id, rows in sorted(ids.items()):
            listed = home.get(quota_id)
            if listed is None:
                home[quota_id] = [_new_row(row, limit, new_map) for row, limit in rows.items()]
            else:
                _merge_rows(listed, rows, new_map)


def _merge_rows(listed: Any, rows: Mapping[Dimensions, int], new_map: Any) -> None:
    """Change a quota's rows in place, so that the surrounding text is kept."""
    new_rows = dict(rows)
    for index in reversed(range(len(listed))):
        limit = new_rows.pop(_named(listed[index]), None)
        if limit is None:
            del listed[index]
        elif listed[index]["limit"] != limit:
            listed[index]["limit"] = limit
    for row, limit in new_rows.items():
        listed.append(_new_row(row, limit, new_map))


def _new_row(dimensions: Dimensions, limit: int, new_map: Any) -> Any:
    row = new_map([("limit", limit), *dimensions])
    row.fa.set_flow_style()
    return row


def _named(row: Mapping[str, Any]) -> Dimensions:
    """Return a row's dimensions as ``rows_of`` returns them."""
    return _ordered({str(name): str(value) for name, value in row.items() if name not in ("limit", "unit")})


def _ordered(dimensions: Mapping[str, str]) -> Dimensions:
    places = [(name, dimensions[name]) for name in _PLACES if name in dimensions]
    return (*places, *sorted((name, value) for name, value in dimensions.items() if name not in _PLACES))


def _limits_of(old: Snapshot | None) -> Limits:
    if old is None:
        return {}
    return {
        service: {
            quota_id: {_named(row.model_dump(exclude_none=True)): row.limit for row in rows}
            for quota_id, rows in ids.items()
        }
        for service, ids in old.limits.items()
    }
