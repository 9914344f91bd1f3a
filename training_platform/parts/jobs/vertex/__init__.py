"""Renders a job for Vertex AI."""
