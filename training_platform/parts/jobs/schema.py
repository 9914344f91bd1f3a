"""The JSON Schema of a job file, for editors: generated from the model, never edited."""

from __future__ import annotations

from typing import Any

from training_platform.config.schema import file_schema
from training_platform.parts.jobs.job_model import Job

SCHEMA_FILE = "jobs/job.schema.json"


def job_schema() -> dict[str, Any]:
    """Return the schema of a job file, with the rules that the model's validators hold beside their fields."""
    schema = file_schema(Job, "A training job of training-platform")
    gke = schema["properties"]["gke"]  # the model has one place; a file with several places is read once for each
    gke["anyOf"].append({"items": {"$ref": "#/$defs/GkeTarget"}, "minItems": 1, "type": "array"})
    vertex = schema["$defs"]["VertexTarget"]
    vertex["required"].remove("machine_type")  # a file may take it from its persistent resource
    vertex["anyOf"] = [{"required": ["machine_type"]}, {"required": ["persistent_resource"]}]
    schema["anyOf"] = [{"required": ["gke"]}, {"required": ["vertex"]}]
    return schema


def schema_files() -> dict[str, dict[str, Any]]:
    """Return the schema by the file that ``training-platform schema`` writes."""
    return {SCHEMA_FILE: job_schema()}
