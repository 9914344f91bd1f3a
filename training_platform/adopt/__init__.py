"""An existing platform as stack files: the resources of a project, their sections, and the files that import them."""
