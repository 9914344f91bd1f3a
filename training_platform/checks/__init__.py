"""Checks: stacks are planned offline, and rules run on the plans."""
