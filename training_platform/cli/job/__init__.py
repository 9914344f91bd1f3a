"""``training-platform job`` and ``image``: job files, their runs, and the images that they run."""
