"""A secret of a team in Secret Manager: what holds its versions, and never a value."""

from __future__ import annotations

from training_platform.config.names import declared_name
from training_platform.resources import gcp
from training_platform.resources.cloud_names import secret_id
from training_platform.resources.declared import Declared, Options
from training_platform.resources.register import SECRET
from training_platform.resources.scope import Scope

ACCESS_ROLE = "roles/secretmanager.secretAccessor"


def team_secret(key: str, scope: Scope, name: str | None = None) -> Declared:
    """Return a secret, kept where Google Cloud keeps it; people add its versions, so that no value is in any state.

    ``name`` is its logical one, where it is not a team's.
    """
    inputs = gcp.secret(
        secret_id=secret_id(scope, key),
        project=scope.project,
        replication={"auto": {}},
        labels=scope.labels,
    )
    # Its versions go with it. The name is fixed, and taken until the old one is gone.
    options = Options(protect=scope.deletion_protection, delete_before_replace=True)
    return Declared(type=SECRET, name=name or f"{declared_name('secrets', key)}-secret", inputs=inputs, options=options)
