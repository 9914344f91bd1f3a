"""Parts beside the core: each has its commands, its extra and its page, and says in ``PART`` what it adds."""
