"""A job on Vertex AI."""
