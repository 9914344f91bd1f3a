"""Checks whole objects against upstream documents about their kind: names, types, enums, ranges, formats.

``make documents`` generates the JSON files; ``tools/documents`` describes their origin.
"""

from training_platform.rules.documents import document_rules  # noqa: F401 # importing a module registers its document_rules
