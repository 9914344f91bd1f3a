"""The commands for traces and simulated queues."""
