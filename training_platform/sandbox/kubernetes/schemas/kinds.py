"""What must be known of a kind without asking a cluster: scope, plural, and fields that cannot change.

Sources, read 2026-11-21: scopes, kubernetes/api v1.34 type definitions; fields whose change replaces the object,
pulumi/pulumi-kubernetes 9497796 provider/pkg/provider/diff.go (kinds that a platform writes; pods are left out).
"""

from __future__ import annotations

from typing import Final, NamedTuple

Path = tuple[str, ...]


class Kind(NamedTuple):
    """Group (empty for core), version and kind."""

    group: str
    version: str
    kind: str

    @property
    def namespaced(self) -> bool | None:
        """Whether objects live in a namespace; ``None`` for a custom kind, which only its CRD can tell."""
        if (self.group, self.kind) in CLUSTER_SCOPED:
            return False
        return True if "." not in self.group or self.group.endswith(".k8s.io") else None

    @property
    def resource(self) -> str:
        """The plural that messages of an API server use, such as ``clusterroles.rbac.authorization.k8s.io``."""
        name = self.kind.lower()
        if name.endswith(("s", "x", "ch")):
            name += "es"
        else:
            name = name[:-1] + "ies" if name.endswith("y") and name[-2] not in "aeou" else name + "s"
        return f"{name}.{self.group}" if self.group else name


def parse(token: str) -> Kind:
    """Read a Pulumi type such as ``kubernetes:core/v1:Namespace``; ``ValueError`` for a token of another shape."""
    parts = token.split(":")
    if len(parts) != 3 or parts[1].count("/") != 1:
        raise ValueError(f"{token!r} names no Kubernetes kind: expected kubernetes:<group>/<version>:<kind>")
    group, version = parts[1].split("/")
    return Kind("" if group == "core" else group, version, parts[2])


_RBAC: Final = "rbac.authorization.k8s.io"
CLUSTER_SCOPED: Final = frozenset(
    {
        ("", "Namespace"),
        ("", "Node"),
        ("", "PersistentVolume"),
        (_RBAC, "ClusterRole"),
        (_RBAC, "ClusterRoleBinding"),
        ("storage.k8s.io", "StorageClass"),
        ("storage.k8s.io", "VolumeAttachment"),
        ("storage.k8s.io", "VolumeAttributesClass"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("node.k8s.io", "RuntimeClass"),
        ("networking.k8s.io", "IngressClass"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("resource.k8s.io", "DeviceClass"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    }
)

IDENTITY: Final[tuple[Path, ...]] = (("kind",), ("metadata", "name"), ("metadata", "namespace"))
_SELECTOR: Final[tuple[Path, ...]] = (("spec", "selector"),)
IMMUTABLE: Final[dict[tuple[str, str], tuple[Path, ...]]] = {
    ("", "PersistentVolume"): (("spec", "csi"), ("spec", "nfs"), ("spec", "local"), ("spec", "hostPath")),
    ("", "PersistentVolumeClaim"): (
        *_SELECTOR,
        ("spec", "accessModes"),
        ("spec", "storageClassName"),
        ("spec", "volumeName"),
    ),
    ("", "Service"): (("spec", "clusterIP"),),
    ("storage.k8s.io", "StorageClass"): (("parameters",), ("provisioner",)),
    (_RBAC, "RoleBinding"): (("roleRef",),),
    (_RBAC, "ClusterRoleBinding"): (("roleRef",),),
    ("apps", "Deployment"): _SELECTOR,
    ("apps", "DaemonSet"): _SELECTOR,
    ("apps", "StatefulSet"): (
        *_SELECTOR,
        ("spec", "podManagementPolicy"),
        ("spec", "revisionHistoryLimit"),
        ("spec", "serviceName"),
        ("spec", "volumeClaimTemplates"),
    ),
    ("batch", "Job"): (*_SELECTOR, ("spec", "completions"), ("spec", "parallelism"), ("spec", "template")),
}
