"""Cloud KMS: every key that is asked for is there, with a policy; none is made, and nothing is encrypted."""

from __future__ import annotations

from training_platform.sandbox.cloud.resources.iam_policies import read_policy, write_policy
from training_platform.sandbox.cloud.resources.model import Call, Json, Service
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record


def _key(cloud: Cloud, call: Call) -> Record:
    found = cloud.store.get(call.name)
    if found is None:
        found = Record(name=call.name, project=call.project, body={"name": call.path, "purpose": "ENCRYPT_DECRYPT"})
        cloud.store.put(found)
    return found


def _get(cloud: Cloud, call: Call) -> Json:
    return _key(cloud, call).body


def _get_policy(cloud: Cloud, call: Call) -> Json:
    return read_policy(_key(cloud, call))


def _set_policy(cloud: Cloud, call: Call) -> Json:
    return write_policy(cloud, _key(cloud, call), call.body.get("policy", {}))


SERVICE = Service(
    name="cloudkms",
    needs_enabling=False,  # keys are in a project of their own, which no stack of ours prepares
    handlers={
        "cryptoKeys.get": _get,
        "cryptoKeys.getIamPolicy": _get_policy,
        "cryptoKeys.setIamPolicy": _set_policy,
    },
)
