"""Services whose instances are file systems."""
