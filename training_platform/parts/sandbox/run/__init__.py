"""Runs the real Pulumi engine on this repository's stacks, against the local stand-ins."""
