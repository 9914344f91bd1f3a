"""What holds for every test: no network, and no engine or cluster test where its tools are missing."""

from __future__ import annotations

import gc
import ipaddress
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from training_platform.resources.scope import Scope

# Byte code is kept, as where people work: without it each process that a test starts compiles the program anew, 0.7 s,
# and pytest rewrites every test, 10 s.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Seconds a test, by pytest-timeout. It ends what hangs; a test of 8 seconds takes a minute beside others' work.
os.environ.setdefault("PYTEST_TIMEOUT", "300")
# jsonschema judges a few formats by it, none of them in a schema here, and it makes 38 parsers as it is imported: 2 s.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

if find_spec("hypothesis"):  # tests of kueue_model also run in the base environment
    from google.rpc import status_pb2  # type: ignore[import-untyped]
    from hypothesis import settings

    # Google's clients and pulumi.provider each bring the message google.rpc.Status, which a process can have but once.
    sys.modules["pulumi.runtime.proto.status_pb2"] = status_pb2
    settings.register_profile("repeatable", derandomize=True, deadline=None)
    settings.register_profile("random", deadline=None, print_blob=True)
    settings.load_profile("repeatable")  # faults repeat; --hypothesis-profile=random finds others

TOOLS = {
    "engine": ("pulumi", "pulumi-language-python", "pulumi-resource-gcp"),
    "kube": ("kube-apiserver", "etcd"),
    "containers": ("containerd", "containerd-shim-runc-v2", "ctr", "kubelet"),
}
FOLDERS = {"kube": "KUBEBUILDER_ASSETS", "containers": "TRAINING_PLATFORM_CONTAINERS"}
"""The variable that names the folder of a marker's tools, if it is not PATH."""


def pytest_configure() -> None:
    """Hear interrupts where a shell started the tests in the background: else their programs would be deaf to them."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the collector away from the objects of imports, which stay to the end: a tenth of the time of all tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000)
        gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose marker names tools that are not on PATH, or in the marker's own folder."""
    for marker, tools in TOOLS.items():
        variable = FOLDERS.get(marker, "PATH")
        missing = [tool for tool in tools if shutil.which(tool, path=os.environ.get(variable, "")) is None]
        if missing and item.get_closest_marker(marker):
            pytest.skip(f"not on {variable}: {', '.join(missing)}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Start no processes for a selection by name or path: it is done before they have loaded Pulumi."""
    named = bool(config.option.keyword) or config.args_source is pytest.Config.ArgsSource.ARGS
    return 0 if named else None  # None: as many as there are cores


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped engine test into a failure under ``make test-engine``, where a missing tool is an error."""
    report = yield
    required = os.environ.get("TRAINING_PLATFORM_REQUIRE_ENGINE") == "1"
    if required and report.skipped and not hasattr(report, "wasxfail") and item.get_closest_marker("engine"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"an engine test may not be skipped here: {reason}"
    return report


SAMPLES = tuple(f"{Path(__file__).parents[1] / name}{os.sep}" for name in ("stacks", "jobs"))
OF_SAMPLES = (
    "tests/repository/test_samples.py", "tests/training_platform/modules/test_register.py::test_a_sample",
    "tests/repository/test_repository.py::test_no_file_holds",
    "tests/engine/test_samples.py",
    "tests/kube/test_every_object.py",  # whose objects a cluster has to take, whoever wrote the stacks
)  # fmt: skip
_opened: set[str] = set()


def _see_samples(event: str, arguments: tuple[Any, ...]) -> None:
    """Note a file of a user's own, or of the samples; schemas, which are generated, are everybody's."""
    if event == "open" and str(arguments[0]).startswith(SAMPLES) and str(arguments[0]).endswith(".yaml"):
        _opened.add(str(arguments[0]))


sys.addaudithook(_see_samples)


@pytest.fixture(autouse=True)
def _own_organisation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that rests on ``stacks/`` or ``jobs/``, which users replace by their own files."""
    yield
    opened = sorted(_opened)
    _opened.clear()
    if opened and not request.node.nodeid.startswith(OF_SAMPLES):
        pytest.fail(f"read {', '.join(opened)}: take what tests/organisation/ has")


@pytest.fixture
def scope() -> Scope:
    """Return the scope of a protected environment stack."""
    return Scope(
        environment="prod",
        team=None,
        project="example-train-prod",
        labels={"environment": "prod", "managed-by": "training-platform"},
        deletion_protection=True,
    )


@pytest.fixture(scope="session", autouse=True)
def _own_surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep outcomes of plans out of the user's own cache, and the width of somebody's terminal out of reports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("COLUMNS", raising=False)  # which processes of pytest-xdist have
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> Iterator[None]:
    """Refuse every name look-up and connection off the loopback; gRPC's own sockets are out of Python's sight."""
    look_up = socket.getaddrinfo

    def getaddrinfo(host: str | bytes | None, *args: Any, **kwargs: Any) -> Any:
        _refuse_unless_local(host)
        return look_up(host, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", getaddrinfo)
        for name in ("connect", "connect_ex", "sendto"):
            patch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))
        yield


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: socket.socket, *args: Any) -> Any:
        if self.family in {socket.AF_INET, socket.AF_INET6}:
            _refuse_unless_local(args[-1][0])  # the address comes last, and its host first
        return method(self, *args)

    return call


def _refuse_unless_local(host: str | bytes | None) -> None:
    text = host.decode() if isinstance(host, bytes) else str(host or "localhost")
    if text in {"localhost", socket.gethostname()}:
        return
    try:
        local = ipaddress.ip_address(text).is_loopback
    except ValueError:
        local = False
    if not local:
        pytest.fail(f"a test reached for the network: {text}")
