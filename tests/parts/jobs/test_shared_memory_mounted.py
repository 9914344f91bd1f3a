"""A pod's /dev/shm, mounted by the kernel at the rendered size in a mount namespace, and workers that fill it.

The workers do what PyTorch's data loaders do with a batch, without PyTorch: an object of POSIX shared memory is made,
cut to its size and mapped, and its pages are taken when they are written. Skipped where no namespace can be had.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache

import pytest

from training_platform.parts.jobs.gke.jobset import jobset
from training_platform.parts.jobs.resolve import ResolvedJob

Take = Callable[..., ResolvedJob]
RUNTIME = "64Mi"  # what containerd mounts without a volume
BATCHES, BATCH_MIB = 4, 24
WORKERS = """
import mmap, multiprocessing, os, sys
def load(number, size):
    file = os.open(f"/dev/shm/batch-{number}", os.O_CREAT | os.O_RDWR)
    os.ftruncate(file, size)
    with mmap.mmap(file, size) as batch:
        batch[:] = bytes([number + 1]) * size
batches, size = int(sys.argv[1]), int(sys.argv[2]) << 20
workers = [multiprocessing.get_context("fork").Process(target=load, args=(number, size)) for number in range(batches)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
failed = [worker.exitcode for worker in workers if worker.exitcode]
for number in range(batches if not failed else 0):
    assert os.stat(f"/dev/shm/batch-{number}").st_size == size
sys.exit(-failed[0] if failed else 0)
"""
NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")


def mounted(size: str) -> int:
    """Return the exit code of the workers under a /dev/shm of a size as Kubernetes writes it, ``1Gi``."""
    mount = f'mount -t tmpfs -o size={size.removesuffix("i").lower()} tmpfs /dev/shm && exec "$@"'
    program = [sys.executable, "-c", WORKERS, str(BATCHES), str(BATCH_MIB)]
    return subprocess.run([*NAMESPACE, mount, "sh", *program], check=False).returncode


@cache
def namespaces() -> bool:
    """Whether this machine gives a process a mount namespace with a tmpfs of its own."""
    try:
        made = subprocess.run([*NAMESPACE, "mount -t tmpfs tmpfs /dev/shm"], check=False, capture_output=True)
    except OSError:
        return False
    return made.returncode == 0


@pytest.mark.skipif(not namespaces(), reason="no mount namespace can be had here")
def test_workers_fill_the_shared_memory_that_is_rendered_and_not_the_runtimes(take: Take) -> None:
    job = take("memory_gib: 2\ngke: {cluster: gpus, flavor: a100-40, gpus: 1}")
    (replicated,) = jobset(job)["spec"]["replicatedJobs"]
    pod = replicated["template"]["spec"]["template"]["spec"]
    (rendered,) = [row["emptyDir"]["sizeLimit"] for row in pod["volumes"] if row["name"] == "shared-memory"]

    assert mounted(rendered) == 0
    assert mounted(RUNTIME) == signal.SIGBUS
