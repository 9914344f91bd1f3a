"""The Pulumi program: build the selected stack, an environment or a team, and export what others read."""

import pulumi

from modules.environment import build_environment
from modules.program import selected_stack
from modules.team import build_team
from training_platform.config.workspace import lending

stack, workspace = selected_stack()
home = workspace.environment_of(stack)
assert home is not None  # selected_stack refuses a team without its environment

if stack.team:
    outputs = build_team(stack.team, home, workspace)
else:
    outputs = build_environment(stack.name, lending(workspace, stack.name))
for name, value in outputs.items():
    pulumi.export(name, value)
