"""Training jobs: one file under ``jobs/<team>/`` becomes a JobSet for GKE or a CustomJob for Vertex AI."""
