"""A model of Kueue's queues that predicts how a change of queues affects waiting times, without a cluster.

``read_manifests`` reads the objects of a cluster, ``read_trace`` reads its jobs, and ``play`` simulates them::

    queues = read_manifests(Path("queues"))
    trace = read_trace(Path("jobs.csv"), [queues.cluster])
    played = play(queues.cluster, trace.jobs, queues.times)
    waits = [run.started - run.of.submitted for run in played.runs]

The command ``kueue-model`` does the same, and prints tables. Nothing here depends on stack files or Google Cloud.

Programs import the names below and three modules: ``imports`` reads records of other schedulers as traces, ``results``
computes the figures of a simulation, and ``output`` prints them.
"""

from kueue_model.cluster import Cluster, Counting, FlavorMachines
from kueue_model.cluster_queues import Pods
from kueue_model.machines import ArrivalTime, CapacityTimes, LossTime, expected_losses
from kueue_model.manifests import Manifests, read_manifests
from kueue_model.quotas import amount, units
from kueue_model.replay import NEVER, Played, Run, play
from kueue_model.traces import (
    MOST_SECONDS,
    JobKind,
    Trace,
    TraceJob,
    invented,
    read_rows,
    read_trace,
    trace_text,
)

__all__ = [
    "MOST_SECONDS",
    "NEVER",
    "ArrivalTime",
    "CapacityTimes",
    "Cluster",
    "Counting",
    "FlavorMachines",
    "JobKind",
    "LossTime",
    "Manifests",
    "Played",
    "Pods",
    "Run",
    "Trace",
    "TraceJob",
    "amount",
    "expected_losses",
    "invented",
    "play",
    "read_manifests",
    "read_rows",
    "read_trace",
    "trace_text",
    "units",
]
