"""Runs the real Pulumi engine on this repository's stacks, against local stand-ins for Google Cloud and Kubernetes."""
