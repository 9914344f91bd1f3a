"""Types of pulumi-gcp without a document are judged by the names and kinds of their top-level inputs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.support.places import ROOT
from tests.training_platform.rules.documents.whole_objects import found

DATABASE = "gcp:firestore/database:Database"
SQL = "gcp:sql/databaseInstance:DatabaseInstance"


@pytest.mark.parametrize(
    ("kind", "severity", "nearest"),
    [
        ("gcp:firestore/databse:Database", "error", DATABASE),
        ("gcp:pubsub/topics:Topic", "error", "gcp:pubsub/topic:Topic"),
        ("gcp:pubsb/topic:Topic", "error", "gcp:pubsub/topic:Topic"),
        ("gcp:pubsub/elsewhere:Thing", "warning", None),  # a later provider may have it
        ("gcp:quux/elsewhere:Thing", "warning", None),
    ],
)
def test_a_type_that_the_provider_does_not_have_is_found(kind: str, severity: str, nearest: str | None) -> None:
    (finding,) = found(kind, nmae="a")

    assert (finding.rule, finding.severity, finding.nearest) == ("document-missing", severity, nearest)
    assert finding.path == "type"
    assert finding.allowed


@pytest.mark.parametrize(
    ("kind", "inputs", "rule", "path"),
    [
        (DATABASE, {"nmae": "own"}, "document-unknown-field", "nmae"),
        (DATABASE, {"tags": "own"}, "document-type", "tags"),
        (SQL, {"deletionProtection": "yes"}, "document-type", "deletionProtection"),
        (SQL, {"nodeCount": "two"}, "document-type", "nodeCount"),
        (SQL, {"databaseVersion": ["POSTGRES_17"]}, "document-type", "databaseVersion"),
        (SQL, {"replicaNames": "own"}, "document-type", "replicaNames"),
        (SQL, {"settings": "small"}, "document-type", "settings"),
    ],
)
def test_a_top_level_input_has_a_name_and_a_kind_of_its_type(
    kind: str, inputs: dict[str, Any], rule: str, path: str
) -> None:
    (finding,) = [row for row in found(kind, **inputs) if not row.unjudged]

    assert (finding.rule, finding.path, finding.severity) == (rule, path, "error")


def test_what_is_below_the_top_is_not_judged_and_counted_so() -> None:
    settings = {"tier": "db-custom-2-7680", "nonsense": [1]}

    instance = found(SQL, name="own", region="here", deletionProtection=True, nodeCount=2, settings=settings)
    database = found(DATABASE, name="own", locationId="nam5", type="FIRESTORE_NATIVE", tags={"any": "thing"})

    assert [(row.severity, row.unjudged) for row in (*instance, *database)] == [
        ("note", "resource of gcp:sql beyond names and kinds of inputs"),
        ("note", "resource of gcp:firestore beyond names and kinds of inputs"),
    ]


def test_the_list_is_read_only_for_a_type_without_a_document() -> None:
    """In a process of its own, since this one has read the list."""
    program = (
        "import sys; opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "from tests.training_platform.rules.documents.whole_objects import POOL, found\n"
        "def read(): return any('sdk_types.txt' in name for name in opened)\n"
        "found(POOL, cluster='main'); before = read()\n"
        f"found('{SQL}'); print(before, read())"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert result.stdout.split() == ["False", "True"]
