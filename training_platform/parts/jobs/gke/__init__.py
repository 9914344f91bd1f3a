"""A job as a JobSet of Kubernetes."""
