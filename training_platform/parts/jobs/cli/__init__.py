"""The commands of jobs."""
