"""Kubernetes objects: what the released provider and an API server do with them, controllers apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from typing_extensions import override

from training_platform.checks.planning.wire import holds_unknown, readable
from training_platform.resources.planned import UNKNOWN
from training_platform.rules.documents.problems import Problem
from training_platform.rules.documents.shapes import check_of
from training_platform.sandbox.kubernetes.calls import Ask, AutoName, Failure, Kept, Made, Verdict, auto_name
from training_platform.sandbox.kubernetes.changes import Change, Path
from training_platform.sandbox.kubernetes.schemas.crds import CrdSchema
from training_platform.sandbox.kubernetes.schemas.kinds import IDENTITY, IMMUTABLE
from training_platform.sandbox.kubernetes.store import CREATED, Key, ObjectStore, Refused
from training_platform.sandbox.kubernetes.values import Json, dig, put, with_secrets

AUTONAMED: Final = "pulumi.com/autonamed"  # the annotation by which the provider knows names of its own making
_SERVERS_OWN: Final = ("uid", "resourceVersion", "creationTimestamp")
# A server makes these up for a dry run, and the provider takes them for known; the object itself will have others.
_DRY_RUN: Final = {"uid": "00000000-0000-0000-0000-000000000000", "creationTimestamp": CREATED}


class Objects(Kept):
    """Objects of every kind, judged by ``schemas`` where one is at hand for the kind, else by our documents."""

    def __init__(self, store: ObjectStore, schemas: Mapping[tuple[str, str, str], CrdSchema]) -> None:
        self._store = store
        self._schemas = schemas

    @override
    def check(self, ask: Ask, olds: Json, news: Json, how: AutoName) -> tuple[Json, list[Failure]]:
        """Name the object, put it in the provider's namespace, and judge it by its CRD or its documents."""
        inputs, failures = news, list(_unsupported(ask))
        if not dig(readable(news), "metadata", "name"):
            inputs, unnamed = _named(ask, readable(olds), news, how)
            failures += unnamed
        given = dig(readable(inputs), "metadata", "namespace")
        if ask.settings.forces_namespace and not given and self._namespaced(ask, inputs):
            inputs = put(inputs, ("metadata", "namespace"), ask.settings.default_namespace)
        schema = self._schemas.get(ask.kind)
        if schema:
            return inputs, failures + [Failure(path, reason) for path, reason in schema.problems(inputs)]
        return inputs, failures + list(_against_documents(ask, inputs))

    @override
    def judge(self, ask: Ask, olds: Json, news: Json, found: list[Change]) -> Verdict:
        """Replace where identity or an immutable field changed; first delete what would stand in its own way."""
        forced = tuple(self._forced(ask, olds))
        replaces = [str(change) for change in found if any(change.within(path) for path in forced)]
        named = dig(news, "metadata", "name")
        autonamed = dig(news, "metadata", "annotations", AUTONAMED) == "true"
        same = all(dig(olds, "metadata", field) == dig(news, "metadata", field) for field in ("name", "namespace"))
        return Verdict(replaces, bool(replaces and named and same and not autonamed))

    @override
    def create(self, ask: Ask, inputs: Json, *, preview: bool) -> Made:
        """As the provider does, a preview adds what a dry run tells only if the inputs are wholly known."""
        if preview and holds_unknown(readable(inputs)):
            return Made("", inputs)
        key = self._key(ask, inputs)
        if preview:
            self._store.rehearse(ask.settings.cluster, key, readable(inputs))
            return Made("", _filled(inputs, {"metadata": _DRY_RUN}))
        live = self._store.create(ask.settings.cluster, key, readable(inputs), ask.kind.resource)
        return Made(_id(key), _filled(inputs, live))

    @override
    def read(self, ask: Ask, identity: str, inputs: Json) -> Made:
        """The object as it is, and as much of it as the program had set; all of it when it is imported."""
        cluster, key = ask.settings.cluster, _key_of(ask, identity)
        live = self._store.read(cluster, key)
        if live is None:
            return Made("", {})
        own = self._store.own(cluster, key, live, readable(inputs)) if inputs else without_servers_own(live)
        return Made(identity, with_secrets(live, inputs), with_secrets(own, inputs))

    @override
    def update(self, ask: Ask, identity: str, inputs: Json, *, preview: bool) -> Made:
        """As the server's own dry run does, a preview refuses what the update would, unless a value is unknown."""
        cluster, key = ask.settings.cluster, _key_of(ask, identity)
        live = self._store.read(cluster, key)
        schema = self._schemas.get(ask.kind)
        problems = schema.errors(inputs, live) if schema and live else []
        if problems:
            raise Refused(f'{ask.kind.kind} "{key.name}" is invalid: {"; ".join(problems)}')
        if not preview:
            live = self._store.update(cluster, key, readable(inputs), ask.kind.resource)
        elif not holds_unknown(readable(inputs)):
            self._store.rehearse(cluster, key, readable(inputs))
        return Made(identity, _filled(inputs, live) if live else inputs)

    @override
    def delete(self, ask: Ask, identity: str) -> None:
        self._store.delete(ask.settings.cluster, _key_of(ask, identity))

    def _key(self, ask: Ask, inputs: Json) -> Key:
        metadata = dig(readable(inputs), "metadata") or {}
        name, namespace = metadata.get("name"), metadata.get("namespace") or ask.settings.default_namespace
        if not name or name is UNKNOWN:
            raise Refused(f"{ask.kind.kind}: name is required")
        return Key(ask.kind.group, ask.kind.kind, namespace if self._namespaced(ask, inputs) else "", name)

    def _namespaced(self, ask: Ask, inputs: Json) -> bool:
        """Scope by the CRD, else by what is known of the kind; of a stranger, by whether a namespace is given."""
        schema = self._schemas.get(ask.kind)
        known = schema.namespaced if schema else ask.kind.namespaced
        return bool(dig(readable(inputs), "metadata", "namespace")) if known is None else known

    def _forced(self, ask: Ask, olds: Json) -> Iterator[Path]:
        yield from IDENTITY
        yield from IMMUTABLE.get((ask.kind.group, ask.kind.kind), ())
        frozen = dig(olds, "immutable") is True
        if ask.kind[::2] == ("", "Secret"):
            yield ("type",)
            if frozen or not ask.settings.secret_mutable:
                yield from (("data",), ("stringData",))
        if ask.kind[::2] == ("", "ConfigMap") and (frozen or not ask.settings.config_map_mutable):
            yield from (("data",), ("binaryData",))


def without_servers_own(live: Json) -> Json:
    """What of an object is its author's: all but what a server fills in."""
    metadata = {name: value for name, value in live["metadata"].items() if name not in _SERVERS_OWN}
    return {**live, "metadata": metadata}


def _key_of(ask: Ask, identity: str) -> Key:
    namespace, _, name = identity.rpartition("/")
    return Key(ask.kind.group, ask.kind.kind, namespace, name)


def _against_documents(ask: Ask, inputs: Json) -> Iterator[Failure]:
    """Yield what ``check`` would call an error by the documents of a kind that no CRD is at hand for."""
    found: list[Problem] = []
    if check := check_of(f"kubernetes:{ask.kind.group or 'core'}/{ask.kind.version}:{ask.kind.kind}"):
        check(readable(inputs), (), found.append)
    for problem in found:
        if problem.severity == "error":
            allowed = f"; allowed: {problem.allowed}" if problem.allowed else ""
            yield Failure(problem.path, f"{problem.message}{allowed}")


def _unsupported(ask: Ask) -> Iterator[Failure]:
    if ask.kind.kind.endswith("List"):
        yield Failure("kind", "lists cannot be created; create the objects in them")
    if ask.kind.kind.endswith("Patch"):
        yield Failure("kind", "the stand-in provider patches no objects that others made")


def _named(ask: Ask, olds: Json, news: Json, how: AutoName) -> tuple[Json, list[Failure]]:
    """Give an object the name it got before, else one of ours, and mark it as such."""
    if dig(olds, "metadata", "annotations", AUTONAMED) == "true":
        name = dig(olds, "metadata", "name")
    elif how.disabled:
        return news, [Failure("metadata.name", "must be set, since auto-naming is disabled")]
    else:
        name = auto_name(ask, how)
    return put(put(news, ("metadata", "name"), name), ("metadata", "annotations", AUTONAMED), "true"), []


def _filled(inputs: Json, live: Json) -> Json:
    """The inputs with what the server added, secrets and unknowns as they came."""
    filled = inputs
    for field in (*_SERVERS_OWN, "name", "namespace"):
        if field in live["metadata"]:
            filled = put(filled, ("metadata", field), live["metadata"][field])
    return filled


def _id(key: Key) -> str:
    return f"{key.namespace}/{key.name}" if key.namespace else key.name
