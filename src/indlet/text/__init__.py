"""What becomes of a text: tokens, folding, stop words, stems, language, pruning.

tokens.py     text to tokens, the same for every language
rules.py      what a language does to a token
language.py   codes and names of languages
policy.py     the choices, with their machine-readable form and digest
analyse.py    text to term vector, by a policy
reconcile.py  a foreign vector to our policy, and what that loses
"""

from indlet.text.analyse import SEARCHED, Analyzer, detect
from indlet.text.language import code
from indlet.text.policy import Policy, policy_of
from indlet.text.reconcile import Reconciliation, loss, renormalise
from indlet.text.rules import LANGUAGES, stop_words
from indlet.text.tokens import fold, tokens

__all__ = [
    "LANGUAGES",
    "SEARCHED",
    "Analyzer",
    "Policy",
    "Reconciliation",
    "code",
    "detect",
    "fold",
    "loss",
    "policy_of",
    "renormalise",
    "stop_words",
    "tokens",
]
