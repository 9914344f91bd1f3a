"""Probes of a deployed platform: which promises of the documentation hold in a project, each with its evidence."""
