"""Renders a job as a JobSet."""
