"""Checks stacks: plans them offline, and runs the rules on the plans."""
