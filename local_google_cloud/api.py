"""The public names for programs that start a local cloud: the cloud, its server, its state, and its validator.

``local_google_cloud.kubernetes`` has the public names of the substitute for Pulumi's Kubernetes provider. Both modules
need the extra ``sandbox``.
"""

from local_google_cloud.endpoints import endpoints
from local_google_cloud.faults import FaultError, check_fault
from local_google_cloud.files import BrokenFile, read_json
from local_google_cloud.http.server import serve
from local_google_cloud.local_cloud import LocalCloud
from local_google_cloud.requests.errors import Refusal
from local_google_cloud.state.authorization import Caller
from local_google_cloud.state.clock import Clock
from local_google_cloud.state.cloud import REAL_DURATIONS, CloudSettings
from local_google_cloud.state.questions import (
    Access,
    Grant,
    Judge,
    Missing,
    Policies,
    Quota,
    QuotaLimit,
    TrainingVms,
)
from local_google_cloud.state.store import Record, Store

__all__ = [
    "REAL_DURATIONS",
    "Access",
    "BrokenFile",
    "Caller",
    "Clock",
    "CloudSettings",
    "FaultError",
    "Grant",
    "Judge",
    "LocalCloud",
    "Missing",
    "Policies",
    "Quota",
    "QuotaLimit",
    "Record",
    "Refusal",
    "Store",
    "TrainingVms",
    "check_fault",
    "endpoints",
    "read_json",
    "serve",
]
