"""The Pulumi program: build the selected stack, an environment or a team, and export what others read."""

import pulumi

from modules.environment import build_environment
from modules.program import selected_stack
from modules.team import build_team

stack, workspace = selected_stack()
home = workspace.environment_of(stack)
assert home is not None  # selected_stack refuses a team without its environment

outputs = build_team(stack.team, home, workspace) if stack.team else build_environment(stack.name, home)
for name, value in outputs.items():
    pulumi.export(name, value)
