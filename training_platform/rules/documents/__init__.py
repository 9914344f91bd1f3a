"""Whole objects against what upstream documents say of their kind: names, types, enums, ranges, forms.

Its JSON files are written by ``make documents``; ``tools/documents`` says where they come from.
"""

from training_platform.rules.documents import document_rules  # noqa: F401 # importing a module registers its document_rules
