"""Starts a training program in its container, with its secrets and its package, and restarts it if it fails.

It remains the program's parent process. In a container, the first process has id 1, and Linux has no default action for
SIGTERM to this process. A program without a handler would be killed only at the end of its grace period and keep its
accelerators until then.

It uses only the standard library of Python 3.8 or newer. The service account's token is from the metadata server.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path, PurePosixPath

TOKEN_URL = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token"
SECRETS = "https://secretmanager.googleapis.com/v1"
STORAGE = "https://storage.googleapis.com/storage/v1"
PUBSUB = "https://pubsub.googleapis.com/v1"
SECONDS = 60


def call(url: str, headers: dict[str, str], body: bytes | None = None) -> bytes:
    """Return the response of a URL. If there is a body, the request is a POST."""
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=SECONDS) as response:
        return bytes(response.read())


def access_token() -> str:
    """Return an access token of this container's service account."""
    return str(json.loads(call(TOKEN_URL, {"Metadata-Flavor": "Google"}))["access_token"])


def authorized() -> dict[str, str]:
    """Return the headers of a request with the token of this container's service account."""
    return {"Authorization": f"Bearer {access_token()}", "Content-Type": "application/json"}


def secret(version: str) -> str:
    """Return the value of a secret version."""
    payload = json.loads(call(f"{SECRETS}/{version}:access", authorized()))["payload"]
    return base64.b64decode(payload["data"]).decode()


def download(uri: str) -> Path:
    """Download a source archive that job submit packed, ``gs://bucket/sources/digest/name``, into a new file.

    The digest is verified, because others can write to the bucket.
    """
    bucket, _, name = uri[len("gs://") :].partition("/")
    url = f"{STORAGE}/b/{bucket}/o/{urllib.parse.quote(name, safe='')}?alt=media"
    file = Path(tempfile.mkdtemp()) / Path(name).name
    content = call(url, authorized())
    if not hashlib.sha256(content).hexdigest().startswith(uri.split("/")[-2]):
        raise SystemExit(f"launch: {uri} is not the file that job submit uploaded: its digest differs")
    file.write_bytes(content)
    return file


def enter(folder: str) -> None:
    """Unpack an archive that contains one folder, and make it the working directory and part of the import path.

    Not every Python 3.8 has the filters of ``tarfile``.
    """
    file = download(folder)
    with tarfile.open(file) as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            if not member.isfile() or name.is_absolute() or ".." in name.parts:
                raise SystemExit(f"launch: {folder} has {member.name}, which is not a file inside its folder")
        archive.extractall(file.parent)  # noqa: S202 # files inside the folder alone
        os.chdir(file.parent / archive.getnames()[0].partition("/")[0])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path.cwd()), os.environ.get("PYTHONPATH"))))


def install(package: str, index: str | None) -> None:
    """Install a package and its requirements from an Artifact Registry index, unless the job sets its own index.

    Only pip gets the access token. Otherwise the training program would find it in its environment variables. Source:
    Artifact Registry docs, basic authentication of Python repositories, read 2026-11-28.
    """
    variables = dict(os.environ)
    if index:
        address = index.replace("https://", f"https://oauth2accesstoken:{access_token()}@")
        variables.setdefault("PIP_INDEX_URL", address)
    file = str(download(package))
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", file], check=True, env=variables)


def tell(topic: str, message: dict[str, object]) -> None:
    """Publish a message. If that fails, training continues."""
    data = base64.b64encode(json.dumps(message).encode()).decode()
    try:
        call(f"{PUBSUB}/{topic}:publish", authorized(), json.dumps({"messages": [{"data": data}]}).encode())
    except OSError as error:
        print(f"launch: no message was sent to {topic}: {error}", file=sys.stderr)


def place() -> tuple[int, list[str]]:
    """Return this container's rank among the run's nodes and, on Vertex AI, the nodes' addresses.

    An evaluator has rank -1. GKE numbers the VMs within each slice. Source: Vertex AI docs, CLUSTER_SPEC, read
    2026-08-22.
    """
    spec = json.loads(os.environ.get("CLUSTER_SPEC") or "{}")
    task = spec.get("task") or {}
    pools = spec.get("cluster") or {}
    if not task:
        counted = ("SLICE_INDEX", "SLICE_HOSTS", "JOB_COMPLETION_INDEX")
        slice_index, hosts, host = (int(os.environ.get(name) or 0) for name in counted)
        return slice_index * hosts + host, []
    nodes = [(pool, index) for pool in ("workerpool0", "workerpool1") for index, _ in enumerate(pools.get(pool, ()))]
    here = (task.get("type"), int(task.get("index") or 0))
    return nodes.index(here) if here in nodes else -1, [pools[pool][index] for pool, index in nodes]


def join(variables: dict[str, str]) -> None:
    """Set the environment variables with which the run's nodes find each other, unless the job sets them itself."""
    rank, addresses = place()
    if rank < 0:
        return
    host, _, port = (addresses or [""])[0].partition(":")
    names = ",".join(address.partition(":")[0] for address in addresses)
    for name, template in variables.items():
        value = template.format(rank=rank, nodes=len(addresses), names=names, host=host, port=port)
        os.environ.setdefault(name, value)


def source(script: str) -> None:
    """Run a shell script and set the variables that it sets, unless they are already set.

    If the script fails, training continues.
    """
    try:
        shell = ["bash", "-c", 'set -a && . "$0" >&2 && env -0', script]
        rows = subprocess.run(shell, check=True, stdout=subprocess.PIPE).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"launch: {script} could not be read: {error}", file=sys.stderr)
        return
    for row in rows:
        if "=" in row:
            name, _, value = row.partition("=")
            os.environ.setdefault(name, value)


def run(command: list[str], restarts: int, codes: list[int]) -> int:
    """Run the program, forward SIGTERM to it, and return its exit code.

    A program that fails is restarted up to ``restarts`` times; with ``codes``, only after one of these exit codes. If
    the program received SIGTERM, it has not finished its work, even if it exits with 0. In that case, 128 plus the
    signal's number is returned, as shells do for a program without a handler. A program that cannot start returns 127,
    or 126 if it may not be executed.
    """
    signals: list[int] = []
    for started in range(1, restarts + 2):
        try:
            child = subprocess.Popen(command, start_new_session=True)
        except OSError as error:
            print(f"launch: {command[0]} could not be started: {error.strerror}", file=sys.stderr)
            return 127 if isinstance(error, FileNotFoundError) else 126

        def end(number: int, _frame: object, child: subprocess.Popen[bytes] = child) -> None:
            signals.append(number)
            if child.returncode is None:
                os.kill(child.pid, number)

        signal.signal(signal.SIGTERM, end)
        if signals:  # it came between two attempts, without a program to forward it to
            os.kill(child.pid, signal.SIGTERM)
        code = ended(child)
        if signals:
            end_others(child.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)  # processes that it left behind hold accelerators and ports
        if not code or signals or started > restarts or (codes and code not in codes):
            break
        print(
            f"launch: the program ended with {code} and is restarted ({started} of {restarts})",
            file=sys.stderr,
            flush=True,
        )
    return 128 + signals[0] if signals and not code else code


def ended(child: subprocess.Popen[bytes]) -> int:
    """Wait for the program to end and return its exit code, or 128 plus the number of the signal that ended it.

    The launcher is process 1 of its container. It inherits orphaned processes and has to reap them.
    """
    while True:
        process = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        if process is not None and process.si_pid == child.pid:
            code = child.wait()
            return 128 - code if code < 0 else code
        if process is not None:
            os.waitpid(process.si_pid, 0)


def end_others(group: int) -> None:
    """Send SIGTERM to what remains of the program's process group, and wait: a shell may end before its children.

    The wait has no time limit, because writing a checkpoint may take long. The kubelet kills the container at the end
    of its grace period.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGTERM)
        while True:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)
            os.killpg(group, 0)
            time.sleep(0.1)


def main(command: list[str]) -> int:
    """Prepare the container according to the plan, and run the command. A signal during the preparation ends it."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    plan = json.loads(os.environ.pop("TRAINING_LAUNCH", "{}"))
    for name, version in plan.get("secrets", {}).items():
        os.environ[name] = secret(version)
    if "package" in plan:
        install(plan["package"], plan.get("index"))
    if "folder" in plan:
        enter(plan["folder"])
    join(plan.get("nodes", {}))
    if "script" in plan:
        source(plan["script"])
    if plan.get("exec"):  # a shell that somebody opened, which needs its terminal
        os.execvp(command[0], command)
    reports = "topic" in plan and place()[0] == 0
    if reports:
        tell(plan["topic"], {**plan["message"], "state": "started"})
    code = run(command, plan.get("restarts", 0), plan.get("retry_on", []))
    if reports:
        tell(plan["topic"], {**plan["message"], "state": "failed" if code else "succeeded", "exit_code": code})
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
