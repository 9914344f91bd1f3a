"""Who refuses: the provider's plugin as a preview asks it, and a real API server with Kueue's and JobSet's webhooks."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import httpx
from google.protobuf import struct_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from tests.kube.api_servers import ControlPlanes
from tests.kube.controller_programs import find_binaries, run_controllers
from tests.kube.rendered_objects import ApiServer
from training_platform.resources.kueue import configuration
from training_platform.resources.scope import TEAM_LABEL
from training_platform.rules.documents.definitions import read_definitions

Json = dict[str, Any]
SCHEMAS = Path(__file__).parents[2].parent / "shared" / "schemas"
SECONDS = 120.0
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"  # how Pulumi's engine says that a text is not known yet
OPERATORS = ("lws", "kuberay", "trainer")  # which are not asked here
# Those whose CRD is not at hand, and an old version's objects, which no webhook here converts.
NOT_SERVED = ("ComputeClass", "ComputeDomain", "FrontendConfig", "LeaderWorkerSet", "ManagedCertificate",
              "v1beta1:ClusterQueue", "v1beta1:LocalQueue", "v1beta1:AdmissionCheck",
              "v1beta1:ResourceFlavor", "v1beta1:ProvisioningRequestConfig")  # fmt: skip
_DRY = {"dryRun": "All", "fieldValidation": "Strict"}


class Provider:
    """The released plugin of Google Cloud, asked as the engine asks in a preview: check, then plan a creation."""

    def __init__(self, port: int, more: Mapping[str, str]) -> None:
        limit = [("grpc.max_receive_message_length", 1 << 28)]
        self.stub = provider_pb2_grpc.ResourceProviderStub(grpc.insecure_channel(f"127.0.0.1:{port}", options=limit))
        settings = {"project": "example-train", "region": "us-central1", "accessToken": "none", **more}
        self.stub.Configure(
            provider_pb2.ConfigureRequest(
                args=struct({**settings, "skipRegionValidation": "true"}), acceptSecrets=True, acceptResources=True,
                variables={f"gcp:config:{key}": value for key, value in settings.items()},
            ),
            timeout=SECONDS,
        )  # fmt: skip

    def refusal(self, kind: str, inputs: Json) -> str:
        """Return the refusal of a resource, or "" if it passes.

        Raises ConnectionError where it crashes, as it does of some inputs that are not known.
        """
        urn = f"urn:pulumi:foreign::foreign::{kind}::thing"
        try:
            request = provider_pb2.CheckRequest(
                urn=urn, news=struct(inputs), olds=struct_pb2.Struct(), randomSeed=b"0" * 32
            )
            checked = self.stub.Check(request, timeout=SECONDS)
            if checked.failures:
                return "; ".join(f"{failure.property} {failure.reason}".strip() for failure in checked.failures)
            create = provider_pb2.CreateRequest(urn=urn, properties=checked.inputs, preview=True)
            self.stub.Create(create, timeout=SECONDS)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                raise ConnectionError(error.details()) from error
            return str(error.details())
        return ""


def struct(values: Json) -> struct_pb2.Struct:
    """Return inputs as the plugin takes them."""
    inputs = struct_pb2.Struct()
    inputs.update(values)
    return inputs


@contextmanager
def provider(settings: Mapping[str, str] | None = None) -> Iterator[Provider]:
    """Run the plugin that is on PATH; ``settings`` are more of its own."""
    program = shutil.which("pulumi-resource-gcp")
    assert program is not None
    environment = {**os.environ, "GOOGLE_OAUTH_ACCESS_TOKEN": "none"}
    with subprocess.Popen(
        [program, "127.0.0.1:1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            yield Provider(int(process.stdout.readline()), settings or {})
        finally:
            process.terminate()


class Server:
    """A real API server, asked to create objects as a dry run that knows every field."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._kinds = ApiServer(http).kinds

    def refusal(self, kind: str, inputs: Json) -> str:
        """Return the refusal of an object, or "" if it is accepted."""
        path, body = self._addressed(kind, inputs)
        return _said(self._http.post(path, json=body, params=_DRY))

    def applied(self, kind: str, inputs: Json) -> str:
        """Create an object and apply it server-side, as pulumi-kubernetes does; return the refusal, or ""."""
        path, body = self._addressed(kind, inputs)
        if refusal := self.refusal(kind, inputs):
            return refusal
        headers = {"Content-Type": "application/apply-patch+yaml"}
        query = {**_DRY, "fieldManager": "violations", "force": "true"}
        name = body["metadata"]["name"]
        return _said(self._http.patch(f"{path}/{name}", content=json.dumps(body), headers=headers, params=query))

    def _addressed(self, kind: str, inputs: Json) -> tuple[str, Json]:
        """Return the collection of an object, and the object as it is sent."""
        _, version, name = kind.split(":")
        version = version.removeprefix("core/")
        metadata = inputs.get("metadata")
        named = metadata if isinstance(metadata, dict) else {}
        plural, namespaced = self._kinds.get((version, name), (name.lower(), False))
        space = f"/namespaces/{named.get('namespace', 'default')}" if namespaced else ""
        path = f"/{'apis' if '/' in version else 'api'}/{version}{space}/{plural}"
        return path, {**copy.deepcopy(inputs), "apiVersion": version, "kind": name}


def _said(answer: httpx.Response) -> str:
    if answer.is_success:
        return ""
    message = re.sub(r"\s+", " ", str(answer.json().get("message", answer.text)))
    # An entry that is there twice is a server's error where it is applied.
    # So is a webhook that ends in a panic, as that of LeaderWorkerSet 0.10.0 does of some values.
    fine = answer.status_code in (400, 403, 404, 422) or "typed patch" in message or "denied the request" in message
    assert fine, f"{answer.status_code} {answer.request.url.path}: {message}"
    return message


@contextmanager
def server(folder: Path, *, teams: bool = False) -> Iterator[Server]:
    """Run an API server with the upstream CRDs and the webhooks of Kueue and JobSet.

    With ``teams`` the namespace is one of a team, where Kueue looks at jobs, and LeaderWorkerSet is there too.
    """
    assets = Path(os.environ["KUBEBUILDER_ASSETS"])
    definitions = [
        definition
        for name in ("jobset", "kueue", "autoscaler", "gmp")
        for definition in read_definitions(SCHEMAS / name)
    ]
    if teams:
        definitions += read_definitions(Path(os.environ["TRAINING_PLATFORM_LWS_DEFINITIONS"]))
    left_out = set(OPERATORS) - ({"lws"} if teams else set())
    settings = configuration(["on-demand"], pods=teams)
    with ExitStack() as stack:
        server = stack.enter_context(ControlPlanes(assets, folder)).server("violations")
        binaries = {name: path for name, path in find_binaries(assets).items() if name not in left_out}
        stack.enter_context(run_controllers(server, binaries, folder / "controllers", definitions, settings))
        client = stack.enter_context(server.client())
        if teams:
            labels = {"metadata": {"labels": {TEAM_LABEL: "vision"}}}
            headers = {"Content-Type": "application/merge-patch+json"}
            client.patch("/api/v1/namespaces/default", content=json.dumps(labels), headers=headers).raise_for_status()
        yield Server(client)


def written(value: Any, unknown: str) -> Any:
    """Return inputs as a refuser gets them, with its own text for what is not known."""
    if value == "<unknown>":
        return unknown
    if isinstance(value, dict):
        return {key: written(part, unknown) for key, part in value.items()}
    return [written(part, unknown) for part in value] if isinstance(value, list) else value
