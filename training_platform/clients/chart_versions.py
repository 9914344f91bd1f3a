"""The versions of a Helm chart that its registry or repository has.

Registries are asked by the OCI distribution protocol, repositories for their index file. Both are read without
credentials; a registry that wants a token gives one to anybody for what is public. What one answers is data: names of
versions are read, and nothing is run or kept.
Sources: OCI distribution specification 1.1, listing tags; Docker registry token authentication; Helm docs, chart
repository guide; read 2026-11-23. ``oci://`` on the loopback is asked over HTTP, as Helm's ``--plain-http`` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from training_platform.clients.google_api import BUSY, LOOPBACK, RETRIES
from training_platform.clients.rest import ApiError, cause
from training_platform.config.reading.finding import install

if TYPE_CHECKING:
    from requests import Response, Session

Version = tuple[int, int, int]
_RELEASE = re.compile(r"v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_OCI: Final = "oci://"
_SECONDS: Final = 60
_MOST_PAGES: Final = 100
_MOST_BYTES: Final = 50_000_000  # the index of a large repository has a few


class ChartVersions:
    """Registries and repositories, each asked by one session; the extra ``jobs`` brings it."""

    def __init__(self) -> None:
        try:
            from requests import Session  # noqa: PLC0415 # of the extra
            from requests.adapters import HTTPAdapter  # noqa: PLC0415 # of the extra
            from urllib3.util import Retry  # noqa: PLC0415 # of the extra
        except ImportError as error:
            raise ApiError(f"Asking for versions needs the extra `jobs`: {install('jobs')}.") from error
        self._session: Session = Session()
        retry = Retry(RETRIES, connect=1, backoff_factor=1, status_forcelist=BUSY, raise_on_status=False)
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=retry))

    def of(self, chart: str, repository: str | None) -> list[str]:
        """Return the released versions of a chart, oldest first, without what comes before a release.

        ``chart`` is an OCI reference, or a name in the repository. Raises ApiError.
        """
        names = self._tags(chart) if chart.startswith(_OCI) else self._index(chart, str(repository))
        return sorted({name for name in names if parse(name)}, key=parse)

    def _tags(self, chart: str) -> Iterator[str]:
        place, _, name = chart.removeprefix(_OCI).partition("/")
        scheme = "http" if urlsplit(f"//{place}").hostname in LOOPBACK else "https"
        url = f"{scheme}://{place}/v2/{name}/tags/list"
        headers: dict[str, str] = {}
        for _page in range(_MOST_PAGES):
            answer = self._get(url, chart, headers)
            if answer.status_code == 401 and not headers:
                headers = {"Authorization": f"Bearer {self._token(answer, chart)}"}
                answer = self._get(url, chart, headers)
            tags = _object(_content(answer, chart).json, chart).get("tags")
            if not isinstance(tags, list):
                raise ApiError(f"{chart}: its registry lists no tags.")
            yield from map(str, tags)
            if "next" not in answer.links:
                return
            url = urljoin(url, answer.links["next"]["url"])

    def _token(self, answer: Response, chart: str) -> str:
        asked = dict(_CHALLENGE.findall(answer.headers.get("WWW-Authenticate", "")))
        if "realm" not in asked:
            raise ApiError(f"{chart}: its registry wants credentials, and says of no place that gives them.")
        wanted = {key: value for key, value in asked.items() if key in ("service", "scope")}
        given = _object(_content(self._get(asked["realm"], chart, {}, **wanted), chart).json, chart)
        return str(given.get("token") or given.get("access_token") or "")

    def _index(self, chart: str, repository: str) -> Iterator[str]:
        import yaml  # noqa: PLC0415 # only where a repository is asked

        answer = _content(self._get(f"{repository.rstrip('/')}/index.yaml", chart, {}), chart)
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        index = _object(lambda: yaml.load(answer.content, Loader=loader), chart)  # noqa: S506 # a safe loader
        entries = index.get("entries")
        rows = entries.get(chart) if isinstance(entries, dict) else None
        if not isinstance(rows, list):
            raise ApiError(f"{repository} has no chart {chart}.")
        yield from (str(row.get("version")) for row in rows if isinstance(row, dict))

    def _get(self, url: str, chart: str, headers: dict[str, str], **query: str) -> Response:
        from requests.exceptions import RequestException  # noqa: PLC0415 # of the extra

        self._session.trust_env = urlsplit(url).hostname not in LOOPBACK  # no proxy there
        try:
            return self._session.get(url, headers=headers, params=query, timeout=_SECONDS)
        except RequestException as error:
            raise ApiError(f"{chart}: {urlsplit(url).netloc} cannot be reached: {cause(error)}.") from error


def parse(version: str) -> Version:
    """Return the numbers of a release; empty for everything else, such as a release candidate."""
    found = _RELEASE.fullmatch(version)
    return tuple(map(int, found.groups())) if found else ()  # type: ignore[return-value]


def _content(answer: Response, chart: str) -> Response:
    if answer.status_code >= 400:
        verb = "does not let you read it" if answer.status_code in (401, 403) else f"answers {answer.status_code}"
        raise ApiError(f"{chart}: {urlsplit(answer.url).netloc} {verb}.", answer.status_code)
    if len(answer.content) > _MOST_BYTES:
        raise ApiError(f"{chart}: {urlsplit(answer.url).netloc} answers with more than {_MOST_BYTES:,} bytes.")
    return answer


def _object(read: Any, chart: str) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 # only where something is read

    try:
        found = read()
    except (ValueError, yaml.YAMLError) as error:
        raise ApiError(f"{chart}: the answer cannot be read: {cause(error)}.") from error
    if not isinstance(found, dict):
        raise ApiError(f"{chart}: the answer is no object.")
    return found
