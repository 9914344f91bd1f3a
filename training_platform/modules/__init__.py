"""Components for Pulumi programs, and the classes of their arguments: docs/components.md."""

from training_platform.modules.args import *  # noqa: F403 # every class that a program may name
from training_platform.modules.components import *  # noqa: F403
