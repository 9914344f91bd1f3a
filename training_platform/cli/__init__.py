"""The ``training-platform`` command: arguments and printing; the work is done elsewhere."""
