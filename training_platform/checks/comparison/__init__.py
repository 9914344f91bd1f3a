"""Finds the effects of a change: compares the work tree's stacks with those of the commit that it branched off from."""
