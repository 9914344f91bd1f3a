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


MODULES = sorted({rule.check.__module__ for rule in view_rules()})


@pytest.mark.parametrize("module", MODULES)
def test_a_module_of_rules_has_a_test_file_that_names_each_rule(module: str) -> None:
    *folders, name = module.split(".")
    tests = ROOT.joinpath("tests", *folders, f"test_{name}.py").read_text(encoding="utf-8")

    missing = [rule.id for rule in view_rules() if rule.check.__module__ == module and f'"{rule.id}"' not in tests]

    assert missing == []
