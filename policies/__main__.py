"""The policy pack; `pulumi preview --policy-pack policies` runs it."""

from pulumi_policy import EnforcementLevel, PolicyPack

from policies.pack import policies

PolicyPack(
    "training-platform",
    policies=policies(),
    enforcement_level=EnforcementLevel.MANDATORY,
    description="What Google Cloud, Kueue and the house refuse, on every planned resource",
)
