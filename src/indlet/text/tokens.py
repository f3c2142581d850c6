"""Text to tokens: the same for every language. The rules are in `core/src/text/tokens.rs`."""

from indlet._core import fold, join_lines, split, words
from indlet._core import tokens_with_places as tokens

__all__ = ["fold", "join_lines", "split", "tokens", "words"]
