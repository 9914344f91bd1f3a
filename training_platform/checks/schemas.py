"""The generated JSON Schemas, by the file that each is written to."""

from __future__ import annotations

import json

from training_platform.config.schema import SCHEMA_FILE, stack_schema
from training_platform.jobs.schema import SCHEMA_FILE as JOB_SCHEMA_FILE
from training_platform.jobs.schema import job_schema
from training_platform.quota.snapshot_schema import SCHEMA_FILE as SNAPSHOT_SCHEMA_FILE
from training_platform.quota.snapshot_schema import snapshot_schema
from training_platform.rules.exemptions_schema import SCHEMA_FILE as EXEMPTIONS_SCHEMA_FILE
from training_platform.rules.exemptions_schema import exemptions_schema


def schema_files() -> dict[str, str]:
    """Return the text of every generated schema by its path in the repository."""
    schemas = {
        SCHEMA_FILE: stack_schema(),
        SNAPSHOT_SCHEMA_FILE: snapshot_schema(),
        EXEMPTIONS_SCHEMA_FILE: exemptions_schema(),
        JOB_SCHEMA_FILE: job_schema(),
    }
    return {file: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for file, schema in schemas.items()}
