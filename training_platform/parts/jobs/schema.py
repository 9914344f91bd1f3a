"""The JSON Schema of a job file, for editors. It is generated from the model, and never edited."""

from __future__ import annotations

from typing import Any

from training_platform.config.schema import file_schema
from training_platform.parts.jobs.job_model import Job

SCHEMA_FILE = "jobs/job.schema.json"


def job_schema() -> dict[str, Any]:
    """Return the schema of a job file, including constraints from the model's validators."""
    schema = file_schema(Job, "A training job of training-platform")
    for target, model in (("gke", "GkeTarget"), ("vertex", "VertexTarget")):
        # The model has one place of a target; a file with several places is read once for each.
        places = {"items": {"$ref": f"#/$defs/{model}"}, "minItems": 1, "type": "array"}
        schema["properties"][target]["anyOf"].append(places)
    vertex = schema["$defs"]["VertexTarget"]
    vertex["required"].remove("machine_type")  # a file may take it from its persistent resource
    vertex["anyOf"] = [{"required": ["machine_type"]}, {"required": ["persistent_resource"]}]
    schema["anyOf"] = [{"required": ["gke"]}, {"required": ["vertex"]}]
    return schema


def schema_files() -> dict[str, dict[str, Any]]:
    """Return the schema, keyed by the file that ``training-platform schema`` writes."""
    return {SCHEMA_FILE: job_schema()}
