"""The guards around every test: no network, and engine tests that skip or, where they are required, fail."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from training_platform.rules import view_rules

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
CONFTEST = Path(__file__).parents[1] / "conftest.py"


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "registry.example.com", b"example.com"])
def test_no_test_reaches_the_network(host: str | bytes) -> None:
    with pytest.raises(pytest.fail.Exception, match="reached for the network"):
        socket.getaddrinfo(host, 443)


@pytest.mark.parametrize("method", ["connect", "connect_ex"])
def test_no_test_connects_to_an_address(method: str) -> None:
    with socket.socket() as client, pytest.raises(pytest.fail.Exception, match=r"192\.0\.2\.1"):
        getattr(client, method)(("192.0.2.1", 443))


def test_no_test_sends_a_datagram() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as client, pytest.raises(pytest.fail.Exception, match=r"192\.0\.2\.1"):
        client.sendto(b"x", ("192.0.2.1", 53))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_test_may_talk_to_itself(host: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection((host, server.getsockname()[1]), timeout=5) as client,
    ):
        assert client.getpeername() == server.getsockname()


@pytest.mark.parametrize(
    ("required", "outcome"), [("0", {"skipped": 1}), ("1", {"errors": 1})], ids=["may skip", "must run"]
)
def test_a_missing_engine_skips_unless_it_is_required(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, required: str, outcome: dict[str, int]
) -> None:
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile("import pytest\n@pytest.mark.engine\ndef test_preview():\n    pass\n")
    monkeypatch.setenv("PATH", str(pytester.path))
    monkeypatch.setenv("TRAINING_PLATFORM_REQUIRE_ENGINE", required)

    ran = pytester.runpytest_subprocess("-rs")

    ran.assert_outcomes(**outcome)
    ran.stdout.fnmatch_lines(["*not on PATH: pulumi, pulumi-language-python, pulumi-resource-gcp*"])


def test_no_test_rests_on_a_sample(pytester: pytest.Pytester) -> None:
    pytester.mkdir("tests").joinpath("conftest.py").write_text(CONFTEST.read_text())
    pytester.mkdir("stacks").joinpath("Pulumi.dev.yaml").touch()
    pytester.path.joinpath("tests", "test_some.py").write_text(
        "from pathlib import Path\n"
        "def test_reads():\n    Path('stacks/Pulumi.dev.yaml').resolve().read_text()\n"
        "def test_reads_nothing():\n    assert Path('stacks').is_dir()\n"
    )

    ran = pytester.runpytest_subprocess()

    ran.assert_outcomes(passed=2, errors=1)
    ran.stdout.fnmatch_lines(["*Pulumi.dev.yaml: take what tests/organisation/ has*"])


def test_other_tests_may_skip_where_the_engine_is_required(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile("import pytest\ndef test_other():\n    pytest.skip('for its own reason')\n")
    monkeypatch.setenv("TRAINING_PLATFORM_REQUIRE_ENGINE", "1")

    pytester.runpytest_subprocess().assert_outcomes(skipped=1)


@pytest.mark.parametrize(
    ("arguments", "side_by_side"), [((), True), (("-k", "other"), False), (("test_some.py",), False)], ids=str
)
def test_a_selection_is_run_without_processes_beside(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], side_by_side: bool
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # these tests may run beside others themselves
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(
        test_some="import os\ndef test_other():\n    print(os.environ.get('PYTEST_XDIST_WORKER', 'no worker'))\n"
    )

    ran = pytester.runpytest_subprocess("-rP", "-n", "auto", *arguments)

    ran.assert_outcomes(passed=1)
    ran.stdout.re_match_lines([r"^gw\d+$" if side_by_side else "^no worker$"])


MODULES = sorted({rule.check.__module__ for rule in view_rules()})


@pytest.mark.parametrize("module", MODULES)
def test_a_module_of_rules_has_a_test_file_that_names_each_rule(module: str) -> None:
    *folders, name = module.split(".")
    tests = ROOT.joinpath("tests", *folders, f"test_{name}.py").read_text(encoding="utf-8")

    missing = [rule.id for rule in view_rules() if rule.check.__module__ == module and f'"{rule.id}"' not in tests]

    assert missing == []
