"""Helm releases: what Helm records of them. No chart is fetched or rendered, so a release makes no objects.

The one exception is the namespace that ``createNamespace`` asks for; as with Helm, it outlives the release.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any, Final

from pulumi.runtime.rpc import UNKNOWN as UNKNOWN_ON_WIRE
from typing_extensions import override

from training_platform.checks.planning.wire import readable
from training_platform.sandbox.kubernetes.calls import Ask, AutoName, Failure, Kept, Made, Verdict, auto_name
from training_platform.sandbox.kubernetes.changes import Change
from training_platform.sandbox.kubernetes.store import Key, ObjectStore, Refused, Store
from training_platform.sandbox.kubernetes.values import Json, pruned, with_secrets

GROUP: Final = "helm.sh"
TIMEOUT_SECONDS: Final = 300  # the provider's default, which it writes into the inputs
_IDENTITY: Final = (("name",), ("namespace",))


class Releases(Kept):
    """Releases by namespace and name; ``objects`` is where their namespaces are."""

    def __init__(self, store: Store, objects: ObjectStore) -> None:
        self._store = store
        self._objects = objects

    @override
    def check(self, ask: Ask, olds: Json, news: Json, how: AutoName) -> tuple[Json, list[Failure]]:
        """Fill in the inputs that the provider fills in: name, namespace and time-out."""
        inputs = dict(news)
        inputs["name"] = inputs.get("name") or olds.get("name") or auto_name(ask, how)
        inputs["namespace"] = inputs.get("namespace") or ask.settings.default_namespace
        if not readable(inputs).get("skipAwait"):
            inputs.setdefault("timeout", TIMEOUT_SECONDS)
        return inputs, [] if inputs.get("chart") else [Failure("chart", "required, but missing")]

    @override
    def judge(self, ask: Ask, olds: Json, news: Json, found: list[Change]) -> Verdict:
        """A release of another name or namespace is another release."""
        return Verdict([str(change) for change in found if any(change.within(path) for path in _IDENTITY)])

    @override
    def create(self, ask: Ask, inputs: Json, *, preview: bool) -> Made:
        if preview:
            return Made("", {**inputs, "status": UNKNOWN_ON_WIRE, "resourceNames": UNKNOWN_ON_WIRE})
        plain, cluster = readable(inputs), ask.settings.cluster
        key = _key(plain["namespace"], plain["name"])
        if self._store.read(cluster, key) is not None:
            raise Refused(f'release "{key.name}": cannot re-use a name that is still in use, it already exists')
        if plain.get("createNamespace"):
            self._objects.ensure_namespace(cluster, key.namespace)
        if self._objects.has_namespace(cluster, key.namespace):
            self._store.ensure_namespace(cluster, key.namespace)  # which may be another place
        live = self._store.create(cluster, key, {**plain, "status": _status(plain, 1)}, "releases")
        self._keep_secret(cluster, live)
        return Made(f"{key.namespace}/{key.name}", _outputs(inputs, live))

    @override
    def read(self, ask: Ask, identity: str, inputs: Json) -> Made:
        live = self._store.read(ask.settings.cluster, _key(*identity.split("/", 1)))
        if live is None:
            return Made("", {})
        live.pop("metadata")
        own = pruned(live, readable(inputs)) if inputs else {k: v for k, v in live.items() if k != "status"}
        return Made(identity, with_secrets(_outputs(live, live), inputs), with_secrets(own, inputs))

    @override
    def update(self, ask: Ask, identity: str, inputs: Json, *, preview: bool) -> Made:
        if preview:
            return Made(identity, {**inputs, "status": UNKNOWN_ON_WIRE, "resourceNames": UNKNOWN_ON_WIRE})
        key, cluster = _key(*identity.split("/", 1)), ask.settings.cluster
        old = self._store.read(cluster, key)
        if old is None:
            raise Refused(f'release "{key.name}" not found')
        plain = readable(inputs)
        status = _status(plain, old["status"]["revision"] + 1)
        live = self._store.update(cluster, key, {**plain, "status": status}, "releases")
        self._forget_secret(cluster, old)
        self._keep_secret(cluster, live)
        return Made(identity, _outputs(inputs, live))

    @override
    def delete(self, ask: Ask, identity: str) -> None:
        key, cluster = _key(*identity.split("/", 1)), ask.settings.cluster
        if (old := self._store.read(cluster, key)) is not None:
            self._forget_secret(cluster, old)
        self._store.delete(cluster, key)

    def _keep_secret(self, cluster: str, release: Json) -> None:
        """Write what Helm keeps of a release into an API server, where others look for it."""
        status = release["status"]
        if self._objects is self._store or not self._objects.has_namespace(cluster, status["namespace"]):
            return
        key = _secret(status)
        kept = {"chart": {"metadata": {"version": status["version"]}}, "config": release.get("values") or {}}
        packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(kept).encode())))
        labels = {"owner": "helm", "name": status["name"], "status": "deployed", "version": str(status["revision"])}
        about = {"name": key.name, "namespace": key.namespace, "labels": labels}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": about, "type": "helm.sh/release.v1"}
        self._objects.create(cluster, key, {**secret, "data": {"release": packed.decode()}}, "secrets")

    def _forget_secret(self, cluster: str, release: Json) -> None:
        if self._objects is not self._store:
            self._objects.delete(cluster, _secret(release["status"]))


def _secret(status: Json) -> Key:
    return Key("", "Secret", status["namespace"], f"sh.helm.release.v1.{status['name']}.v{status['revision']}")


def _key(namespace: str, name: str) -> Key:
    return Key(GROUP, "Release", namespace, name)


def _status(plain: Json, revision: int) -> Json:
    """Where no version is asked for, the newest would be installed, and which one that is cannot be known here."""
    return {
        "name": plain["name"],
        "namespace": plain["namespace"],
        "revision": revision,
        "status": "deployed",
        "chart": str(plain["chart"]).rstrip("/").rpartition("/")[2],
        "version": plain.get("version", ""),
    }


def _outputs(inputs: Json, live: Json) -> dict[str, Any]:
    return {**inputs, "status": live["status"], "resourceNames": {}}
