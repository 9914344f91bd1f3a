"""Sections of stack files from bodies of APIs, the inverse of ``training_platform/resources``."""
