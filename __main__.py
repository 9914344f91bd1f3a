"""The Pulumi program: register the plan of the selected stack, and export what other stacks read."""

import pulumi

from training_platform.modules.program import selected_plan
from training_platform.modules.register import make_later_resources_wait, register_plan

plan = selected_plan()
registered = register_plan(plan)
for name, value in plan.outputs.items():
    pulumi.export(name, registered.resolve(value))
make_later_resources_wait(plan, registered)  # plain Pulumi code from here on: docs/own-resources.md
