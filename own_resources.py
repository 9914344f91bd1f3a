"""An organisation's own resources, added to the plan of its stacks: rules, ledgers, comparison and pack see them.

Releases of training-platform never touch this file. docs/own-resources.md has an example.
"""

from training_platform.resources.stack_plan import OwnResources


def add_resources(own: OwnResources) -> None:
    """Add resources to the plan of one stack, an environment's or a team's; called once for each stack.

    ``topic = declares("gcp:pubsub/topic:Topic", lambda: pubsub.Topic)`` binds a type, whose inputs an editor completes,
    and ``own.plan.add(topic("events", name=...))`` adds one. A Kubernetes object is a ``Resource`` with its manifest,
    in a component with its cluster's provider. ``own.team`` is None in the stack of an environment.
    """
