"""The SDKs as `make setup` compiles them: what Pulumi reads of them, and what it registers, is the same."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pulumi_gcp
import pytest
from pulumi import _types

from tools.byte_code import compile_file
from training_platform.checks.planning.recorder import record

SDK = Path(pulumi_gcp.__file__).parent / "filestore"
EARLY = sys.version_info < (3, 14)


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module of the SDK twice, as Python compiles it and as we do."""
    folder = tmp_path_factory.mktemp("sdk")
    (folder / "twice").mkdir()
    (folder / "twice/__init__.py").touch()
    (folder / "twice/_utilities.py").write_text("from pulumi_gcp._utilities import *\n", encoding="utf-8")
    for name in ("plain", "ours"):
        shutil.copytree(SDK, folder / "twice" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (folder / "twice/ours").glob("*.py"):
        compile_file(file)
    return folder


@pytest.fixture(scope="module", name="copies")
def _copies(folder: Path) -> Iterator[tuple[ModuleType, ModuleType]]:
    sys.path.insert(0, str(folder))
    invalidate_caches()
    yield import_module("twice.plain"), import_module("twice.ours")
    sys.path.remove(str(folder))


def test_pulumi_reads_the_same_types_of_every_class(copies: tuple[ModuleType, ModuleType]) -> None:
    plain, ours = ({name: _types_of(made) for name, made in _classes(copy)} for copy in copies)

    assert len(plain) > 20
    assert (
        "COPY._inputs.InstanceFileSharesNfsExportOptionArgs"
        in plain["_inputs.InstanceFileSharesArgs"]["nfsExportOptions"]
    )
    assert ours == plain


def test_the_same_is_registered(copies: tuple[ModuleType, ModuleType]) -> None:
    plain, ours = (record(partial(_instance, copy), project="a", stack_name="b") for copy in copies)

    assert plain.resources[0].inputs["fileShares"]["nfsExportOptions"] == [{"ipRanges": ["10.0.0.0/8"]}]
    assert ours == plain


def test_both_have_the_same_names(copies: tuple[ModuleType, ModuleType]) -> None:
    plain, ours = ({name for name in dir(copy) if not name.startswith("__")} for copy in copies)

    assert {"Instance", "InstanceNetworkArgs", "get_instance", "outputs", "instance", "_inputs"} <= plain
    assert ours - plain == {"_Package", "_ModuleType", "_files", "_import_module", "_modules"}
    assert plain <= ours
    assert {name for name in plain if name[0] != "_"} == set(copies[1].__all__) | {"backup", "instance", "snapshot"}
    plain, ours = ({name for name in dir(copy.outputs) if name[0].isupper()} for copy in copies)
    assert len(plain) > 10
    assert ours == plain


def test_what_is_not_looked_up_is_not_made(folder: Path) -> None:
    script = """
import sys, twice.ours as sdk
from pulumi._types import _types_from_py_properties
from unittest.mock import patch
made = lambda: {name.removeprefix("InstanceFile") for name in vars(sdk._inputs) if name.endswith("Args")}
assert not [name for name in sys.modules if name.startswith("twice.ours.") and not name.endswith("outputs")]
import twice.ours.get_instance
assert sdk.get_instance.__name__ == "get_instance" and callable(sdk.get_instance)  # and not the file of this name
assert sdk.Instance.__module__ == "twice.ours.instance" and not made()
assert sdk.InstanceFileSharesArgs is sdk.instance.InstanceFileSharesArgs and made() == {"SharesArgs"}
_types_from_py_properties(sdk.InstanceFileSharesArgs)
assert made() == {"SharesArgs", "SharesNfsExportOptionArgs"}
try:
    with patch.object(sdk._inputs, "_loads", side_effect=KeyboardInterrupt):
        sdk.InstanceNetworkArgs
except KeyboardInterrupt:
    pass
assert sdk.InstanceNetworkArgs.__name__ in sdk._inputs.__all__
assert "backup" not in vars(sdk) and sdk.backup.Backup is sdk.Backup
for module in (sdk, sdk.instance, sdk._inputs):
    try:
        module.Unknown
    except AttributeError as error:
        assert str(error) == f"module {module.__name__!r} has no attribute 'Unknown'"
    else:
        raise AssertionError(module)
"""
    ran = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False)

    assert not ran.stderr


@pytest.mark.skipif(not EARLY, reason="Python 3.14 evaluates no annotation early")
def test_annotations_are_not_evaluated_and_a_changed_file_is_compiled_again(tmp_path: Path) -> None:
    file = tmp_path / "with_an_unknown_name.py"
    file.write_text("def start(when: unknown) -> None: ...\n", encoding="utf-8")
    compile_file(file)
    sys.path.insert(0, str(tmp_path))
    invalidate_caches()
    try:
        assert import_module(file.stem).start.__annotations__ == {"when": "unknown", "return": "None"}
        del sys.modules[file.stem]
        file.write_text("def start(when: unknown_too) -> None: ...\n", encoding="utf-8")
        with pytest.raises(NameError, match="unknown_too"):
            import_module(file.stem)
    finally:
        sys.path.remove(str(tmp_path))


def test_a_name_of_a_package_can_be_replaced(copies: tuple[ModuleType, ModuleType]) -> None:
    backup = copies[1].Backup
    with mock.patch.object(copies[1], "Backup", None):
        assert copies[1].Backup is None
    assert copies[1].Backup is backup


def test_a_package_is_pickled_by_its_name(copies: tuple[ModuleType, ModuleType]) -> None:
    assert pickle.loads(pickle.dumps(copies[1])) is copies[1]  # noqa: S301 # our own; dynamic providers do it with dill


def test_a_subclass_may_have_names_of_its_own(copies: tuple[ModuleType, ModuleType]) -> None:
    module = ModuleType("of_a_user")
    module.__dict__.update(_inputs=None, base=copies[1].InstanceFileSharesArgs)
    with mock.patch.dict(sys.modules, {module.__name__: module}):
        exec("class Mine(base): ...", module.__dict__)  # noqa: S102 # in a module that Pulumi finds by its name
        assert "InstanceFileSharesNfsExportOptionArgs" in _types_of(module.Mine)["nfsExportOptions"]


def test_a_text_that_is_one_of_a_few_values_names_no_class() -> None:
    made = import_module("pulumi_kubernetes.node.v1").outputs.RuntimeClass

    assert str(_types._types_from_py_properties(made)["kind"]) == "typing.Literal['RuntimeClass']"


def _classes(copy: ModuleType) -> Iterator[tuple[str, type]]:
    for module in (copy, *(import_module(f"{copy.__name__}.{name}") for name in ("_inputs", "outputs"))):
        for name in dir(module):
            made = getattr(module, name)
            if not name.startswith("_") and isinstance(made, type) and made.__module__.startswith(copy.__name__):
                yield f"{made.__module__.rpartition('.')[2]}.{name}", made


def _types_of(made: type) -> dict[str, str]:
    """Return what Pulumi reads of a class, by the names of its properties, of either copy alike."""
    read = _types._types_from_py_properties(made)  # what the SDK serialises by
    return {name: str(kind).replace("twice.plain", "twice.COPY").replace("twice.ours", "twice.COPY")
            for name, kind in read.items()}  # fmt: skip


def _instance(sdk: Any) -> None:
    sdk.Instance(
        "shared", tier="ZONAL", location="us-central1-a", networks=[{"network": "a", "modes": ["MODE_IPV4"]}],
        file_shares={"name": "data", "capacity_gb": 1024, "nfs_export_options": [{"ip_ranges": ["10.0.0.0/8"]}]},
    )  # fmt: skip
