"""Programs that run in containers of jobs."""
