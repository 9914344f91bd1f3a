"""The ``training-platform`` command. It parses arguments and prints output; other packages do the work."""
