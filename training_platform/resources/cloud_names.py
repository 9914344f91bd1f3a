"""Names that Google Cloud limits in length, cut so that they stay unique and never change: no Pulumi, no state.

Components create things by these names and jobs refer to the same things by them, so that each is made up only here.
"""

from __future__ import annotations

import hashlib

from training_platform.resources.scope import Scope

SERVICE_ACCOUNT = "training"  # the Kubernetes service account of a team's namespace that its jobs run as
ACCOUNT_ID_LIMIT = 30
NAME_LIMIT = 63
SECRET_LIMIT = 255
_DIGITS = 6  # 24 bits: among 1,000 cut names with one beginning, two are equal with a probability of 3 %


def short_name(text: str, limit: int) -> str:
    """Return ``text`` where it fits ``limit`` characters, else its beginning, a dash and a hash of all of it.

    The result depends on the text and limit alone, so a resource keeps its name; it ends in a letter or digit where the
    text does. ``limit`` is at least 8: a letter, the dash and the hash.
    """
    if limit < _DIGITS + 2:
        raise ValueError(f"limit is {limit}, and a cut name has at least {_DIGITS + 2} characters")
    if len(text) <= limit:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return f"{text[: limit - _DIGITS - 1].rstrip('-')}-{digest}"


def account_id(*parts: str) -> str:
    """Return the id of a service account, ``{part}-{part}...`` in at most 30 characters.

    Google Cloud wants 6 to 30 lower-case letters, digits and dashes, a letter first; parts that are too short in all
    are left as they are. Source: IAM API, ``accountId`` of CreateServiceAccountRequest, as pulumi-gcp 10.2 gives it.
    """
    return short_name("-".join(parts), ACCOUNT_ID_LIMIT)


def jobs_account_id(scope: Scope) -> str:
    """Return the id of the service account that a team's jobs act as in Google Cloud: ``{environment}-{team}-jobs``."""
    return account_id(scope.prefix, "jobs")


def jobs_account_email(scope: Scope) -> str:
    """Return that account's email address, as IAM forms it from id and project."""
    return f"{jobs_account_id(scope)}@{scope.project}.iam.gserviceaccount.com"


def bucket_id(scope: Scope, key: str) -> str:
    """Return a bucket's name, unique in the world: ``{project}-{environment}-{team}-{key}``, cut to 63 characters."""
    return short_name(f"{scope.project}-{scope.prefix}-{key}", NAME_LIMIT)


def persistent_resource_id(scope: Scope, key: str) -> str:
    """Return the id by which jobs name a persistent resource: ``{environment}-{team}-{key}``, cut to 63 characters."""
    return short_name(f"{scope.prefix}-{key}", NAME_LIMIT)


def workbench_id(scope: Scope, key: str) -> str:
    """Return the name of a Workbench instance: ``{environment}-{team}-{key}``, cut to 63 characters."""
    return short_name(f"{scope.prefix}-{key}", NAME_LIMIT)


def secret_id(scope: Scope, key: str) -> str:
    """Return the id of a team's secret, ``{environment}-{team}-{key}``, cut to the 255 characters that ids have."""
    return short_name(f"{scope.prefix}-{key}", SECRET_LIMIT)


def slug(identity: str) -> str:
    """Return an address or IAM member as a part of a logical name, ``group-a-at-example.com``.

    Dots, dashes and case stay as they are, so that two identities do not become one resource.
    """
    return identity.replace(":", "-").replace("@", "-at-")
