"""Programs that make what is committed, run by hand when what they read has a new version."""
