"""Sections of stack files from bodies of APIs, the way back of ``training_platform/resources``."""
