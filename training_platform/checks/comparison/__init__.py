"""The effects of a change: the stacks of the work tree against those of the commit that it branched off from."""
