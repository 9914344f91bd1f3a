"""A client of one cluster's API. Objects are plain dictionaries, and error messages are one sentence.

It uses the official ``kubernetes`` client (extra ``jobs``), which takes credentials from a kubeconfig as kubectl does.
Dependencies are imported only when a command needs them.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from training_platform.catalog.types import Json
from training_platform.clients.failures import ApiError, cause
from training_platform.config.reading.finding import install

if TYPE_CHECKING:
    from kubernetes import client

_SECONDS = (10, 60)  # seconds to connect, and between two bytes of a response
_PAGE = 500
_CHUNK = 4096  # bytes of a log
MEMBER = "training-platform-verify"  # the user that is impersonated with a group, and has no rights


class ClusterError(ApiError):
    """Raised if a cluster cannot be reached or refuses a request."""


class NoKubeconfigError(ClusterError):
    """Raised if there is no kubeconfig, so that no cluster can be reached. ``reason`` does not name a cluster."""

    def __init__(self, reason: str, name: str, log_in: str) -> None:
        super().__init__(f"{reason} For cluster {name}: {log_in}")
        self.reason = reason


class ApiKind(NamedTuple):
    """A kind of object: its group and version as in a URL path (``apis/jobset.x-k8s.io/v1alpha2``), and its plural."""

    path: str
    plural: str

    @property
    def api_version(self) -> str:
        """The apiVersion of its objects: ``jobset.x-k8s.io/v1alpha2``, or ``v1`` for the core API."""
        return self.path.partition("/")[2]


JOBSETS = ApiKind("apis/jobset.x-k8s.io/v1alpha2", "jobsets")
WORKLOADS = ApiKind("apis/kueue.x-k8s.io/v1beta2", "workloads")
LOCAL_QUEUES = ApiKind("apis/kueue.x-k8s.io/v1beta2", "localqueues")
CLUSTER_QUEUES = ApiKind("apis/kueue.x-k8s.io/v1beta2", "clusterqueues")
COHORTS = ApiKind("apis/kueue.x-k8s.io/v1beta2", "cohorts")
PROVISIONING_REQUESTS = ApiKind("apis/autoscaling.x-k8s.io/v1", "provisioningrequests")
PODS = ApiKind("api/v1", "pods")
NODES = ApiKind("api/v1", "nodes")
EVENTS = ApiKind("api/v1", "events")
SECRETS = ApiKind("api/v1", "secrets")


class ClusterApi:
    """Calls to one API server. ``name`` is the cluster's name in messages; ``headers`` are sent with each request."""

    def __init__(self, api: client.ApiClient, name: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        self._api = api
        self.name = name
        self._headers = headers

    def as_member(self, group: str) -> ClusterApi:
        """Return the same API, but with requests that impersonate a user who is only in one group."""
        return ClusterApi(self._api, self.name, {"Impersonate-User": MEMBER, "Impersonate-Group": group})

    def create(self, kind: ApiKind, namespace: str, obj: Mapping[str, Any], *, dry_run: bool) -> Json:
        """Create an object. The server refuses unknown and duplicate fields. Raises ClusterError."""
        query = {
            "fieldValidation": "Strict",
            "fieldManager": "training-platform",
        }
        if dry_run:
            query["dryRun"] = "All"
        return self._call("POST", _path(kind, namespace), query, obj)

    def run(self, namespace: str, pod: str, container: str) -> None:
        """Request that a container of a pod run ``true``. ``container`` may be empty. Raises ClusterError."""
        query = {"command": "true", "stdout": "true"}
        if container:
            query["container"] = container
        self._call("POST", f"api/v1/namespaces/{namespace}/pods/{pod}/exec", query)

    def get(self, kind: ApiKind, namespace: str, name: str) -> Json | None:
        """Return an object, or None if it does not exist. Raises ClusterError."""
        return self._found("GET", f"{_path(kind, namespace)}/{name}")

    def objects(self, kind: ApiKind, namespace: str, selector: str = "", *, fields: str = "") -> Iterator[Json]:
        """Yield the objects in a namespace (in all if it is empty), page by page. Raises ClusterError.

        ``selector`` is a label selector. ``fields`` is a field selector, such as ``involvedObject.name=a`` for events.
        """
        query: dict[str, str | int] = {"limit": _PAGE}
        if selector:
            query["labelSelector"] = selector
        if fields:
            query["fieldSelector"] = fields
        while True:
            page = self._call("GET", _path(kind, namespace), query)
            yield from page.get("items") or ()
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return
            query["continue"] = token

    def kinds(self, api_version: str) -> dict[str, tuple[ApiKind, bool]]:
        """Return the kinds of an API version, keyed by name, and whether they are namespaced. Raises ClusterError.

        The result is empty if the cluster does not have the API group.
        """
        path = f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"
        listed = (self._found("GET", path) or {}).get("resources") or ()
        return {
            row["kind"]: (ApiKind(path, row["name"]), bool(row["namespaced"]))
            for row in listed
            if "/" not in row["name"]  # the others are subresources, such as status
        }

    def delete(self, kind: ApiKind, namespace: str, name: str, *, uid: str = "") -> bool:
        """Delete an object, then its dependents. Return False if it does not exist. Raises ClusterError.

        If ``uid`` is given, the server refuses (409) to delete another object with the same name. If a request has a
        body, the server reads the options from the body and not from the query.
        """
        options: Json = {"propagationPolicy": "Foreground"}
        path = f"{_path(kind, namespace)}/{name}"
        body = {**options, "preconditions": {"uid": uid}} if uid else None
        return self._found("DELETE", path, options if body is None else None, body=body) is not None

    def pending(self, namespace: str, queue: str) -> list[Json] | None:
        """Return the workloads that wait in a LocalQueue, in order, or None if Kueue does not show them."""
        path = f"apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/{namespace}/localqueues/{queue}/pendingworkloads"
        page = self._found("GET", path, {"limit": 1000}, absent=(403, 404, 503))
        return None if page is None else page.get("items") or []

    def logs(self, namespace: str, pod: str, container: str, *, follow: bool) -> Iterator[str]:
        """Yield the lines of a container's log. If ``follow``, continue until the log ends. Raises ClusterError."""
        query = {"container": container, "follow": str(follow).lower()}
        with _sentences(self.name):
            seconds = (_SECONDS[0], None) if follow else _SECONDS
            answer = self._send("GET", f"api/v1/namespaces/{namespace}/pods/{pod}/log", query, seconds=seconds)
            decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a chunk may end within a character
            partial_line = ""
            with closing(answer.response) as response:
                for chunk in response.stream(_CHUNK, decode_content=True):
                    *lines, partial_line = (partial_line + decoder.decode(chunk)).split("\n")
                    yield from lines
            partial_line += decoder.decode(b"", final=True)
            if partial_line:
                yield partial_line

    def user(self) -> str:
        """Return the name under which the server knows the caller, or an empty string. Raises ClusterError."""
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        path = "apis/authentication.k8s.io/v1/selfsubjectreviews"
        try:
            answer = self._call("POST", path, body=review)
        except ClusterError as error:
            if error.status in (403, 404):
                return ""
            raise
        return str(answer.get("status", {}).get("userInfo", {}).get("username", ""))

    def _found(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        absent: Sequence[int] = (404,),
        body: Mapping[str, Any] | None = None,
    ) -> Json | None:
        """Return a response, or None if its status code is in ``absent``, the codes for "does not exist"."""
        try:
            return self._call(method, path, query, body)
        except ClusterError as error:
            if error.status in absent:
                return None
            raise

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Json:
        with _sentences(self.name):
            answer: Json = json.loads(self._send(method, path, query or {}, body).read())
            return answer

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int],
        body: Mapping[str, Any] | None = None,
        seconds: tuple[int, int | None] = _SECONDS,
    ) -> Any:
        content = {"Content-Type": "application/json"} if body is not None else {}
        headers = {"Accept": "application/json", **content, **self._headers}
        request = self._api.param_serialize(
            method, f"/{path}", query_params=list(query.items()), header_params=headers, body=body,
            auth_settings=["BearerToken"],
        )  # fmt: skip
        answer: Any = self._api.call_api(*request, _request_timeout=seconds)
        if answer.status >= 400:
            raise ClusterError(_refusal(self.name, answer.status, answer.read()), answer.status)
        return answer


def context_in(kubeconfig: str | None, name: str, *, contexts: Sequence[str], log_in: str) -> str:
    """Return the first of a cluster's ``contexts`` that is in the kubeconfig.

    ``kubeconfig`` is a path, or None for KUBECONFIG and kubectl's default. ``log_in`` is the command that adds a
    context. Raises NoKubeconfigError, or ClusterError if the client is not installed or no context exists.
    """
    try:
        from kubernetes import config as untyped  # noqa: PLC0415 # the extra brings it
        from kubernetes.config.config_exception import ConfigException  # noqa: PLC0415 # the extra brings it
    except ModuleNotFoundError as error:
        raise ClusterError(f"Jobs on GKE need the kubernetes client: {install('jobs')}.") from error
    config: Any = untyped
    try:
        names = {row["name"] for row in config.list_kube_config_contexts(config_file=kubeconfig)[0]}
    except (ConfigException, OSError, ValueError) as error:
        raise NoKubeconfigError(f"No kubeconfig can be read ({cause(error)}).", name, log_in) from error
    context = next((context for context in contexts if context in names), None)
    if context is None:
        raise ClusterError(f"The kubeconfig has no context {' or '.join(contexts)}. For cluster {name}: {log_in}")
    return context


def connect(name: str, *, contexts: Sequence[str], kubeconfig: str | None, log_in: str) -> ClusterApi:
    """Return the API of a cluster. ``context_in`` chooses the context; this function raises the same errors."""
    context = context_in(kubeconfig, name, contexts=contexts, log_in=log_in)
    from kubernetes import config as untyped  # noqa: PLC0415 # the extra brings it
    from kubernetes.config.config_exception import ConfigException  # noqa: PLC0415 # the extra brings it

    config: Any = untyped
    try:
        api = config.new_client_from_config(config_file=kubeconfig, context=context, persist_config=False)
    except (ConfigException, OSError, ValueError) as error:
        raise ClusterError(f"Context {context} cannot be used: {cause(error)}. For cluster {name}: {log_in}") from error
    api.configuration.retries = False  # an unreachable cluster is reported at once
    return ClusterApi(type(api)(api.configuration), name)


def _path(kind: ApiKind, namespace: str) -> str:
    return f"{kind.path}/namespaces/{namespace}/{kind.plural}" if namespace else f"{kind.path}/{kind.plural}"


@contextmanager
def _sentences(name: str) -> Iterator[None]:
    """Convert exceptions of the client into ClusterError with a one-sentence message."""
    from kubernetes.client.exceptions import ApiException  # noqa: PLC0415 # the extra brings it
    from urllib3.exceptions import HTTPError  # noqa: PLC0415 # the extra brings it

    try:
        yield
    except ApiException as error:
        raise ClusterError(_refusal(name, error.status or 0, str(error.body or "").encode()), error.status) from error
    except (HTTPError, OSError) as error:
        raise ClusterError(
            f"Cluster {name} cannot be reached: {cause(error)}. Its control plane may be down, or your "
            "account may not have container.clusters.connect: the cluster answers only at its DNS name."
        ) from error
    except ValueError as error:
        raise ClusterError(f"Cluster {name} answers with something that is not JSON: {cause(error)}.") from error


def _refusal(name: str, status: int, data: bytes) -> str:
    try:
        message = str(json.loads(data)["message"])
    except (ValueError, KeyError, TypeError):
        message = data[:200].decode("utf-8", "replace").strip() or "no reason given"
    if status == 401:
        return (
            f"Cluster {name} rejected your credentials: they have expired or belong to another project. Log in again."
        )
    if status == 403:
        return f"Cluster {name} denies access: {message}"
    return f"Cluster {name} rejects the request ({status}): {message}"
