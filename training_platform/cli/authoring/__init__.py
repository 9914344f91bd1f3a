"""Commands for who writes files: their first text, and the schemas that editors read."""
