"""Registries: the versions of a Helm chart, and whether an image exists.

The client uses the OCI distribution protocol for registries, and the index file for chart repositories. Charts are read
without credentials; a registry that requires a token issues one to anybody for public content. Google's registries
issue a token for application default credentials, which are not sent to any other host. Responses are treated as data:
the client reads names of versions, and does not run or keep anything.

Sources: OCI distribution specification 1.1, pulling manifests and listing tags; Docker registry token authentication;
Artifact Registry docs, authentication by access token (user ``oauth2accesstoken``; unverified here); Helm docs, chart
repository guide; read 2026-11-23. A registry on the loopback interface is accessed over HTTP, as with Helm's
``--plain-http``.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from training_platform.clients.failures import ApiError, cause
from training_platform.clients.google_api import BUSY, LOOPBACK, RETRIES, access_token
from training_platform.config.reading.finding import install

if TYPE_CHECKING:
    from requests import Response, Session

ImageVersion = tuple[int, int, int]
_RELEASE = re.compile(r"v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})")
_GOOGLE = re.compile(r"([a-z0-9-]+\.)?(pkg\.dev|gcr\.io)")
_MANIFESTS: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_OCI: Final = "oci://"
_SECONDS: Final = 60
_MOST_PAGES: Final = 100
_MOST_BYTES: Final = 50_000_000  # the index of a large repository has a few million


class RegistryImage(NamedTuple):
    """The parts of an image's name. ``reference`` is its tag or digest."""

    registry: str
    name: str
    reference: str


def image_name(image: str) -> RegistryImage:
    """Return the parts of an image's name with a tag or digest. The default registry is Docker Hub."""
    tagged_name, _, digest = image.partition("@")
    base, _, tag = (tagged_name, "", digest) if digest else tagged_name.rpartition(":")
    first, _, name = base.partition("/")
    if name and (set(first) & {".", ":"} or first == "localhost"):
        return RegistryImage("registry-1.docker.io" if first == "docker.io" else first, name, reference=tag)
    return RegistryImage("registry-1.docker.io", base if name else f"library/{base}", reference=tag)


def google_token(registry: str) -> str:
    """Return an access token for one of Google's registries, or "" for any other. Raises GoogleError."""
    return access_token() if _GOOGLE.fullmatch(registry) else ""


class Registries:
    """A client of registries and chart repositories. It needs the extra ``jobs``.

    ``token`` returns, for a registry, the access token that it exchanges for its own token, or "" if there is none.
    """

    def __init__(self, *, seconds: int = _SECONDS, token: Callable[[str], str] = lambda _: "") -> None:
        try:
            from requests import Session  # noqa: PLC0415 # the extra brings it
            from requests.adapters import HTTPAdapter  # noqa: PLC0415 # the extra brings it
            from urllib3.util import Retry  # noqa: PLC0415 # the extra brings it
        except ImportError as error:
            raise ApiError(f"Access to registries needs the extra `jobs`: {install('jobs')}.") from error
        self._session: Session = Session()
        self._seconds = seconds
        self._google = token
        self._authorized: dict[str, dict[str, str]] = {}  # by chart or image
        retry = Retry(RETRIES, connect=1, backoff_factor=1, status_forcelist=BUSY, raise_on_status=False)
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=retry))

    def versions(self, chart: str, repository: str | None) -> list[str]:
        """Return the released versions of a chart, oldest first, without pre-releases.

        ``chart`` is an OCI reference, or a name in the repository. Raises ApiError.
        """
        if chart.startswith(_OCI):
            place, _, name = chart.removeprefix(_OCI).partition("/")
            names = self._tags(chart, place, name)
        else:
            names = self._index(chart, str(repository))
        return sorted({name for name in names if parse(name)}, key=parse)

    def has(self, image: str) -> bool:
        """Return whether an image exists under its tag or digest. Raises ApiError if the response does not show it."""
        return self._manifest(image) is not None

    def digest(self, image: str) -> str:
        """Return the digest to which an image's tag refers. Raises ApiError."""
        answer = self._manifest(image)
        digest = answer.headers.get("Docker-Content-Digest", "") if answer is not None else ""
        if not _DIGEST.fullmatch(digest):
            raise ApiError(f"{image}: its registry {'has no such image' if answer is None else 'returns no digest'}.")
        return digest

    def _manifest(self, image: str) -> Response | None:
        """Return the registry's response about an image, or None if the image does not exist. Raises ApiError."""
        name = image_name(image)
        url = f"{_base(name.registry)}/{name.name}/manifests/{name.reference}"
        answer = self._asked("HEAD", url, image, name.registry, {"Accept": ", ".join(_MANIFESTS)})
        return None if answer.status_code == 404 else _content(answer, image)

    def tags(self, image: str) -> list[str]:
        """Return the tags of an image. Raises ApiError."""
        name = image_name(image)
        return list(self._tags(image, name.registry, name.name))

    def _tags(self, subject: str, registry: str, name: str) -> Iterator[str]:
        url = f"{_base(registry)}/{name}/tags/list"
        for _page in range(_MOST_PAGES):
            answer = _content(self._asked("GET", url, subject, registry), subject)
            tags = _object(answer.json, subject).get("tags")
            if not isinstance(tags, list):
                raise ApiError(f"{subject}: its registry lists no tags.")
            yield from map(str, tags)
            if "next" not in answer.links:
                return
            url = urljoin(url, answer.links["next"]["url"])

    def _asked(
        self, method: str, url: str, subject: str, registry: str, headers: Mapping[str, str] = MappingProxyType({})
    ) -> Response:
        """Send a request to a registry. If the registry requires a token, request one from it first."""
        answer = self._send(method, url, subject, {**headers, **self._authorized.get(subject, {})})
        if answer.status_code == 401 and subject not in self._authorized:
            self._authorized[subject] = {"Authorization": f"Bearer {self._token(answer, subject, registry)}"}
            answer = self._send(method, url, subject, {**headers, **self._authorized[subject]})
        return answer

    def _token(self, answer: Response, subject: str, registry: str) -> str:
        challenge = dict(_CHALLENGE.findall(answer.headers.get("WWW-Authenticate", "")))
        if "realm" not in challenge:
            raise ApiError(f"{subject}: its registry needs credentials but names no token server.")
        scope = {key: value for key, value in challenge.items() if key in ("service", "scope")}
        headers: dict[str, str] = {}
        if urlsplit(challenge["realm"]).netloc == registry and (google := self._google(registry)):
            headers["Authorization"] = f"Basic {b64encode(f'oauth2accesstoken:{google}'.encode()).decode()}"
        token = _object(
            _content(self._send("GET", challenge["realm"], subject, headers, **scope), subject).json, subject
        )
        return str(token.get("token") or token.get("access_token") or "")

    def _index(self, chart: str, repository: str) -> Iterator[str]:
        import yaml  # noqa: PLC0415 # only for chart repositories

        answer = _content(self._send("GET", f"{repository.rstrip('/')}/index.yaml", chart, {}), chart)
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        index = _object(lambda: yaml.load(answer.content, Loader=loader), chart)  # noqa: S506 # a safe loader
        entries = index.get("entries")
        rows = entries.get(chart) if isinstance(entries, dict) else None
        if not isinstance(rows, list):
            raise ApiError(f"{repository} has no chart {chart}.")
        yield from (str(row.get("version")) for row in rows if isinstance(row, dict))

    def _send(self, method: str, url: str, subject: str, headers: Mapping[str, str], **query: str) -> Response:
        from requests.exceptions import RequestException  # noqa: PLC0415 # the extra brings it

        self._session.trust_env = urlsplit(url).hostname not in LOOPBACK  # no proxy on this machine
        try:
            return self._session.request(method, url, headers=headers, params=query, timeout=self._seconds)
        except RequestException as error:
            raise ApiError(f"{subject}: {urlsplit(url).netloc} cannot be reached: {cause(error)}.") from error


def is_local(registry: str) -> bool:
    """Return True if a registry is on this machine."""
    return urlsplit(f"//{registry}").hostname in LOOPBACK


def _base(place: str) -> str:
    return f"{'http' if is_local(place) else 'https'}://{place}/v2"


def parse(version: str) -> ImageVersion:
    """Return the numbers in the version of a release. Any other version, such as a release candidate, has none."""
    match = _RELEASE.fullmatch(version)
    return tuple(map(int, match.groups())) if match else ()  # type: ignore[return-value]


def _content(answer: Response, chart: str) -> Response:
    if answer.status_code >= 400:
        verb = "does not let you read it" if answer.status_code in (401, 403) else f"answers {answer.status_code}"
        raise ApiError(f"{chart}: {urlsplit(answer.url).netloc} {verb}.", answer.status_code)
    if len(answer.content) > _MOST_BYTES:
        raise ApiError(f"{chart}: {urlsplit(answer.url).netloc} answers with more than {_MOST_BYTES:,} bytes.")
    return answer


def _object(read: Any, chart: str) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 # only when something is read

    try:
        content = read()
    except (ValueError, yaml.YAMLError) as error:
        raise ApiError(f"{chart}: the answer cannot be read: {cause(error)}.") from error
    if not isinstance(content, dict):
        raise ApiError(f"{chart}: the answer is not a JSON object.")
    return content
