"""Whole objects against what upstream documents say of their kind: names, types, enums, ranges, forms.

``google.json`` and ``kubernetes.json`` are written by ``python -m tools.documents``, which says where they come from.
"""

from training_platform.rules.documents import rules  # noqa: F401 # importing a module registers its rules
