"""The ``training-platform`` command: arguments and output; other packages do the work."""
