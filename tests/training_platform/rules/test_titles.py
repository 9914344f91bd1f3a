"""Titles of policies, by which an organisation switches sets of rules on and off."""

from __future__ import annotations

import re

from training_platform.rules import view_rules
from training_platform.rules.descriptions import TITLES

# Words that say nothing of what is judged; pools and nodes are what most sets are about.
_FILLING = """
above another before below beside cannot does each every find from have made makes more none only other
program resource several since take taken than that their them there they this value what where which whose with
without would cloud google node pool
"""
FILLING = frozenset(re.findall(r"\w+", _FILLING))


def test_the_title_of_a_policy_names_what_each_of_its_rules_judges() -> None:
    """By a word that the rule's id or summary shares with the title: ``tags`` of nodes, ``placement`` of a slice."""
    words_of_rules = {rule: _words(f"{rule.id.replace('-', ' ')} {rule.title}") - FILLING for rule in view_rules()}

    assert [rule.id for rule, words in words_of_rules.items() if not words & _words(TITLES[rule.ruleset])] == []


def test_a_title_of_something_else_does_not_name_a_rule() -> None:
    words_of_rule = _words("node-tags Find more resource manager tags than nodes support.") - FILLING

    assert words_of_rule & _words("Tags of nodes.")
    assert not words_of_rule & _words("Node pools by themselves: names, and how they scale.")


def _words(text: str) -> set[str]:
    """Return the words of four letters or more, and shorter ones in capitals, in the singular."""
    words = (word for word in re.findall(r"[A-Za-z0-9]+", text) if len(word) > 3 or word.isupper())
    return {_singular(word.lower()) for word in words}


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
