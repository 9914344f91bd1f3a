"""Commands on traces and simulated queues."""
