"""A model of Kueue's queues: what a change of queues does to waits, without a cluster.

``read_manifests`` reads the objects of any cluster, ``read_trace`` its jobs, and ``play`` plays them::

    queues = read_manifests(Path("queues"))
    trace = read_trace(Path("jobs.csv"), [queues.cluster])
    played = play(queues.cluster, trace.jobs, queues.times)
    waits = [run.started - run.of.submitted for run in played.runs]

The command ``kueue-model`` does the same, and prints tables. Nothing here knows stack files or Google Cloud.
"""

from kueue_model.cluster import Cluster, Counting, FlavorMachines
from kueue_model.manifests import Manifests, read_manifests
from kueue_model.replay import NEVER, Played, Run, play
from kueue_model.traces import Trace, TraceJob, read_trace

__all__ = [
    "NEVER",
    "Cluster",
    "Counting",
    "FlavorMachines",
    "Manifests",
    "Played",
    "Run",
    "Trace",
    "TraceJob",
    "play",
    "read_manifests",
    "read_trace",
]
