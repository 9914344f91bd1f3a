"""Checks: plans stacks offline and runs rules on the plans."""
