"""An organisation's own resources, added to the plan of its stacks: rules, ledgers, comparison and pack see them.

Releases of training-platform never touch this file. docs/own-resources.md has an example.
"""

from training_platform.resources.stack_plan import OwnResources


def add_resources(own: OwnResources) -> None:
    """Add resources to the plan of one stack, an environment's or a team's; called once for each stack.

    ``own.plan.add(Resource(type=..., name=..., inputs=...))`` adds one, spelt as pulumi-gcp's Python spells it. A
    Kubernetes object is its manifest, in a component with its cluster's provider. ``own.team`` is None in the stack of
    an environment.
    """
