"""Programs that generate committed files. Run them by hand when their input has a new version."""
