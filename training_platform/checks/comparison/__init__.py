"""The effects of a change: compares the stacks of the work tree with those of the commit that it branched off from."""
