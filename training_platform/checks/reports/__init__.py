"""Reports of a check, one file per format."""
