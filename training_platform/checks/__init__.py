"""Planning stacks offline, running the rules over them, and what is found."""
