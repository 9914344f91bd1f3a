"""Findings about the arguments of a job's program. They are passed unchanged, without a shell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import PurePosixPath

from training_platform.config.reading.declaration import Draft, finding
from training_platform.config.reading.finding import Path
from training_platform.parts.jobs.container import mount_path
from training_platform.parts.jobs.job_rules import job_rule
from training_platform.parts.jobs.rendezvous import SHELLS
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.resources.scope import bucket_id

JOB_WORDS = job_rule(
    "job-words",
    "Find parts of a command or a variable that only a shell would understand, such as `&&` or `$NAME`.",
)
_OPERATORS = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1", "2>", "&>"})
_BUILT_IN = frozenset({"cd", "source", ".", "export", "set", "ulimit", "alias", "eval"})
_SHELL_VARIABLE = re.compile(r"(?<!\$)\$(\{[A-Z_][A-Z0-9_]*\}|[A-Z_][A-Z0-9_]*)")
_TWO_WORDS = re.compile(r"(--?[A-Za-z][\w-]*) +(\S+)")
_PLACEHOLDER = re.compile(r"\{\{[^{}]*\}\}")
_BUCKET_PATH = re.compile(r"/gcs/([\w.-]+)")
_ALIKE = 0.9  # a slip of one or two letters; a bucket of somebody else is no mistake on Vertex AI


def word_findings(job: ResolvedJob) -> Iterator[Draft]:
    """Find program names with spaces, shell operators and shell variables, and paths that are not mounted."""
    spec = job.spec
    program = spec.command[0] if spec.command else ""
    if " " in program.strip() and not program.startswith("/"):
        message = "is one string with spaces: no shell splits it, and no program has this name"
        allowed = "an entry for each word, such as [python, train.py, --lr, 3e-4]"
        yield finding(job, ("command", 0), message, rule=JOB_WORDS, allowed=allowed)
        return
    words: list[tuple[Path, str]] = [(("command", index), word) for index, word in enumerate(spec.command)]
    words += [(("args", index), word) for index, word in enumerate(spec.args)]
    yield from _bucket_paths(job, words)
    if not any(PurePosixPath(word).name in SHELLS for word in spec.command):
        yield from _needs_a_shell(job, words)
    yield from _variables(job, [(("env", name), value) for name, value in spec.env.items()])


def _needs_a_shell(job: ResolvedJob, words: list[tuple[Path, str]]) -> Iterator[Draft]:
    """Find shell syntax in the arguments of a program that is not started by a shell."""
    script = " ".join(word for _, word in words)
    with_shell = f'command: [bash, -c, "{script}"]'
    operator = next(((path, word) for path, word in words if word in _OPERATORS), None)
    if operator:
        path, word = operator
        message = f"{word} is passed to {words[0][1]} as an argument: no shell interprets it"
        yield finding(
            job, path, message, rule=JOB_WORDS, severity="warning", allowed="a shell as command", nearest=with_shell
        )
        return
    if words and words[0][1] in _BUILT_IN:
        message = f"{words[0][1]} is a command of shells, and no program has this name"
        yield finding(job, ("command", 0), message, rule=JOB_WORDS, allowed="a shell as command", nearest=with_shell)
        return
    yield from _variables(job, words)
    for path, word in words:
        if two_words := _TWO_WORDS.fullmatch(word):
            message = "is one argument with a space: no shell splits it"
            allowed = "an entry for each word"
            nearest = f"{two_words[1]}, {two_words[2]}"
        elif word.startswith("~/") or "=~/" in word:
            message = "~ reaches the program unchanged: no shell expands it"
            allowed = "an absolute path, such as a mount's path"
            nearest = None
        elif placeholder := _PLACEHOLDER.search(word):
            message = f"{placeholder[0]} reaches the program unchanged: it is not a placeholder"
            allowed = "{run}, the run's name"
            nearest = _PLACEHOLDER.sub("{run}", word)
        else:
            continue
        yield finding(job, path, message, rule=JOB_WORDS, severity="warning", allowed=allowed, nearest=nearest)


def _variables(job: ResolvedJob, texts: list[tuple[Path, str]]) -> Iterator[Draft]:
    """Find shell variables."""
    for path, text in texts:
        variable = _SHELL_VARIABLE.search(text)
        if variable is None:
            continue
        message = f"{variable[0]} reaches the program unchanged: no shell expands it"
        name = variable[1].strip("{}")
        allowed = "a program that reads the variable itself, [sh, -c, ...] as command, or on GKE $(NAME)"
        nearest = f"$({name})" if job.spec.vertex is None else None
        if name.startswith("SLURM_"):
            message = f"{variable[0]} is a variable of Slurm, which does not run this job"
            allowed = "NODE_RANK, NUM_NODES and MASTER_ADDR, read by the program, or torchrun, which sets RANK"
            nearest = None
        yield finding(job, path, message, rule=JOB_WORDS, severity="warning", allowed=allowed, nearest=nearest)


def _bucket_paths(job: ResolvedJob, words: list[tuple[Path, str]]) -> Iterator[Draft]:
    """Find a path below /gcs with a misspelt bucket, or on GKE with an unmounted one. Vertex AI mounts all buckets."""
    buckets = [bucket_id(job.scope, key) for key in job.team.buckets]
    buckets += [data.bucket.name for data in job.environment.data_sets.values() if data.bucket]
    mounted = [mount_path(job, mount) for mount in job.spec.mounts]
    for path, word in words:
        named = _BUCKET_PATH.search(word)
        if named is None:
            continue
        meant = get_close_matches(named[1], buckets, n=1, cutoff=_ALIKE)
        if meant and named[1] not in buckets:
            message = f"{named[0]} belongs neither to a bucket of the team nor to a data set"
            allowed = "a bucket's full name, or the variable MOUNT_NAME of a mount"
            nearest = word.replace(named[0], f"/gcs/{meant[0]}")
            yield finding(job, path, message, rule=JOB_WORDS, severity="warning", allowed=allowed, nearest=nearest)
        elif job.spec.gke and not any(f"{place}/".startswith(f"{named[0]}/") for place in mounted):
            message = f"{named[0]} is a folder only on Vertex AI: on GKE the job does not mount this bucket"
            allowed = "mounts with source: {bucket: NAME} or {data_set: NAME}, and MOUNT_NAME for the path"
            yield finding(job, path, message, rule=JOB_WORDS, severity="warning", allowed=allowed)
