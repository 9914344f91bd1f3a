"""Reports of a check, with one module for each format."""
