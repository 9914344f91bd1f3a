"""Optional parts in addition to the core. Each declares its commands, its extra and its page in ``PART``."""
