"""An existing platform as stack files: what stands in a project, what the model can say of it, and what imports it."""
