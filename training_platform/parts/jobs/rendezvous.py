"""Variables with which a run's processes find each other, the same on GKE and Vertex AI.

torchrun reads ``PET_*``. Without ``PET_NPROC_PER_NODE``, it starts one process, regardless of the VM. On GPUs, JAX
reads only the coordinator's address, and a program has to pass ``NUM_NODES`` and ``NODE_RANK`` itself. On TPUs, JAX
finds the hosts with variables of GKE and Vertex AI. ``RANK`` and ``WORLD_SIZE`` count processes. They are set together,
and only if a VM has one process, since launchers of several processes set both for each process. Sources: torch 2.15
``distributed/run.py`` and ``argparse_util.py``, jax 0.10 ``_src/distributed.py``, read 2026-11-23.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from training_platform.config.reading.declaration import Draft, finding
from training_platform.config.reading.finding import Path, Severity
from training_platform.parts.jobs.job_rules import job_rule
from training_platform.parts.jobs.resolve import ResolvedJob

PORT: Final = "29500"  # torchrun's own
# Values that are only known in the container: the launcher fills them in when the program starts.
RANK = "{rank}"
NODES = "{nodes}"
NAMES = "{names}"
HOST = "{host}"
ITS_PORT = "{port}"
LONGEST_NAMES = 100_000  # characters; Linux starts no program with a variable of 128 KiB


def rendezvous(
    job: ResolvedJob, *, tpu: bool, chips: int, nodes: str, rank: Any, names: str, host: str, port: str = PORT
) -> dict[str, Any]:
    """Return the variables of a container on a VM with ``chips`` accelerators.

    Each value may be a placeholder that the launcher replaces. ``rank`` may also refer to a field of the pod. Names of
    nodes are left out if they are too long.
    """
    variables: dict[str, Any] = {"NUM_NODES": nodes, "NODE_RANK": rank}
    if len(names) <= LONGEST_NAMES:
        variables["NODE_NAMES"] = names
    variables |= {"MASTER_ADDR": host, "MASTER_PORT": port, "ACCELERATORS_PER_NODE": str(chips)}
    if tpu:
        return variables
    if chips <= 1:
        variables |= {"RANK": rank, "WORLD_SIZE": nodes}
    variables |= {
        "PET_NNODES": nodes,
        "PET_NODE_RANK": rank,
        "PET_NPROC_PER_NODE": str(chips or 1),
        "PET_MASTER_ADDR": host,
        "PET_MASTER_PORT": port,
    }
    texts = [*job.spec.command, *job.spec.args, *job.spec.env.values()]
    if any("c10d" in text for text in texts):
        variables["PET_RDZV_ENDPOINT"] = f"{host}:{port}"
    variables["JAX_COORDINATOR_ADDRESS"] = f"{host}:{port}"
    return variables


def at_run_time(variables: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables with placeholders that the launcher replaces."""
    return {name: value for name, value in variables.items() if isinstance(value, str) and "{" in value}


_LAUNCHER = re.compile(r"(.*/)?(torchrun|accelerate|deepspeed)|torch\.distributed\.(run|launch)")
_TORCHRUN = re.compile(r"(.*/)?torchrun|torch\.distributed\.(run|launch)")
_PYTHON = re.compile(r"python3?(\.\d+)?")
_PLATFORMS = frozenset({"JAX_PLATFORMS", "JAX_PLATFORM_NAME", "PJRT_DEVICE"})
_OTHER_PLATFORMS: Final = {True: ("cpu", "cuda", "gpu", "rocm"), False: ("cpu", "tpu")}  # by whether it has TPUs
_NODES = frozenset({"--nnodes", "--num-machines", "--num-nodes", "PET_NNODES"})
_PROCESSES = frozenset({"--nproc-per-node", "--num-gpus", "PET_NPROC_PER_NODE"})
_OF_EACH_NODE = frozenset({"MASTER_ADDR", "NODE_RANK", "PET_NODE_RANK", "RANK", "LOCAL_RANK"})


JOB_LAUNCHER = job_rule(
    "job-launcher",
    "Find a launcher, such as torchrun, or a variable that contradicts the job's nodes, processes or GPUs.",
    severity="warning",
)


def launcher_findings(job: ResolvedJob, *, where: str, nodes: int, chips: int, tpu: bool) -> Iterator[Draft]:
    """Find launchers and variables whose numbers of nodes or processes differ from the job's on a target."""
    spec = job.spec
    rule = JOB_LAUNCHER
    yield from _variables(job, nodes=nodes, chips=chips, tpu=tpu)
    if spec.command:
        yield from _program(job, nodes=nodes, chips=chips, tpu=tpu)
    texts = [("command", index, text) for index, text in enumerate(spec.command)]
    texts += [("args", index, text) for index, text in enumerate(spec.args)]
    words: list[tuple[str, Path]] = [(word, (field, index)) for field, index, text in texts for word in text.split()]
    options: list[tuple[str, str, Path]] = [(name, spec.env[name], ("env", name)) for name in spec.env]
    if any(_LAUNCHER.fullmatch(word) for word, _ in words):
        following = [*(word for word, _ in words[1:]), ""]
        for (word, path), after in zip(words, following, strict=True):
            name, equals, value = word.partition("=")
            options.append((name.replace("_", "-"), value if equals else after, path))
    accelerate = any(word.rpartition("/")[2] == "accelerate" for word, _ in words)
    for name, value, path in options:
        if name == "--standalone" and nodes > 1:
            message = f"--standalone starts a separate run on each node, but the job has {nodes} nodes on {where}"
            allowed = "the option left out: the platform's variables set it"
            yield finding(job, path, message, rule=rule, severity="warning", allowed=allowed)
            continue
        if name in _NODES:
            kind = "nodes"
            number = nodes
        elif name in _PROCESSES:
            kind = "processes per node"
            number = chips or 1
        elif name == "--num-processes" and accelerate:  # it counts those of all nodes
            kind = "processes on all nodes"
            number = nodes * (chips or 1)
        else:
            continue
        minimum, _, maximum = value.partition(":")
        if minimum.isdecimal() and not int(minimum) <= number <= int(maximum or minimum):
            yield finding(
                job,
                path,
                f"{name} sets {value} {kind}, but the job has {number} on {where}",
                rule=rule,
                severity="warning",
                allowed=f"{number}, or the option left out: the platform's variables set it",
                nearest=number,
            )


SHELLS: Final = frozenset({"sh", "ash", "bash", "dash", "zsh"})
_OF_SCHEDULERS: Final = {"srun": "Slurm", "sbatch": "Slurm", "salloc": "Slurm", "qsub": "PBS", "bsub": "LSF"}
_ON_ONE_VM: Final = {
    "mpirun": "--hostfile", "mpiexec": "--hostfile", "horovodrun": "--hosts", "deepspeed": "--hostfile",
    "accelerate": "--num-machines",
}  # fmt: skip

_COUNTS: Final = ("--config-file", "--num-processes", "--num-gpus", "--num-nodes")  # compared with the job's, above


def _program(job: ResolvedJob, *, nodes: int, chips: int, tpu: bool) -> Iterator[Draft]:
    """Find programs of other schedulers, and programs that start processes for other machines than the job has."""
    words = (*job.spec.command, *job.spec.args)
    program = words[0].rpartition("/")[2]
    if program in SHELLS and "-c" in words[1:-1]:
        script = words[words.index("-c") + 1].split()
        scheduler = next((word for word in script if word in _OF_SCHEDULERS), None)
        program = scheduler or program
    options = {word.partition("=")[0].replace("_", "-") for word in words}
    severity: Severity = "warning"
    allowed: str = "torchrun, which reads the platform's variables"
    nearest: str | None = "torchrun"
    if program in _OF_SCHEDULERS:
        message = f"{program} is a command of {_OF_SCHEDULERS[program]}, which does not run this job"
    elif program in ("docker", "podman"):
        message = f"{program} starts containers, but the job already runs in one"
        allowed = "the container's image under image, and its program under command"
        nearest = None
    elif tpu and any(_TORCHRUN.fullmatch(word) for word in words):
        message = "starts processes for GPUs, but one process drives all TPU chips of a VM"
        allowed = "python, with JAX or torch_xla.launch in the program"
        nearest = "python"
    elif nodes > 1 and program in _ON_ONE_VM and not {_ON_ONE_VM[program], *_COUNTS} & options:
        message = f"{program} uses only its own VM, so it starts a separate run on each of {nodes} VMs"
        allowed += f"; or {_ON_ONE_VM[program]}"
    elif chips > 1 and not tpu and _PYTHON.fullmatch(program) and not _starts_processes(job):
        severity = "note"
        message = f"is one process for the {chips} GPUs of a VM: without torchrun, PyTorch's DDP uses one of them"
        allowed += "; JAX and Lightning need no launcher"
    else:
        return
    yield finding(job, ("command", 0), message, rule=JOB_LAUNCHER, severity=severity, allowed=allowed, nearest=nearest)


def starts_torch(job: ResolvedJob) -> bool:
    """Return True if a PyTorch launcher starts the program."""
    return any(_LAUNCHER.fullmatch(word) for word in (*job.spec.command, *job.spec.args))


def _starts_processes(job: ResolvedJob) -> bool:
    """Return True if a program has a launcher, or seems to use a library that needs none for several GPUs."""
    words = (*job.spec.command, *job.spec.args)
    names = " ".join((*words, *job.spec.env)).casefold()
    return starts_torch(job) or "jax" in names or "lightning" in names


def _variables(job: ResolvedJob, *, nodes: int, chips: int, tpu: bool) -> Iterator[Draft]:
    """Find variables of the job that must differ between nodes, that are wrong for them, or that hide accelerators."""
    for name, value in job.spec.env.items():
        if name == "WORLD_SIZE" and value.isdecimal() and int(value) != nodes * max(chips, 1) and not tpu:
            message = f"is {value}, but the job has {nodes * max(chips, 1)} processes"
        elif name in _PLATFORMS and chips and value.partition(",")[0].casefold() in _OTHER_PLATFORMS[tpu]:
            message = f"keeps the program from using the job's {'TPUs' if tpu else 'GPUs'}"
        elif name == "CUDA_VISIBLE_DEVICES" and tpu:
            message = "applies to GPUs, but the job has TPUs"
        elif name == "NCCL_P2P_DISABLE" and value == "1" and chips > 1:
            message = f"switches off NVLink between the {chips} GPUs of a VM"
        elif name in _OF_EACH_NODE and nodes > 1:
            message = f"sets the same value on all {nodes} nodes, and overrides the platform's values"
        elif name == "CUDA_VISIBLE_DEVICES" and len(value.split(",")) < chips:
            message = f"hides some of the {chips} GPUs that the job has on each node"
        else:
            continue
        path = ("env", name)
        yield finding(job, path, message, rule=JOB_LAUNCHER, allowed="the variable left out")
