//! Text becomes terms.

use std::borrow::Cow;

/// The first characters of a text.
pub fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

/// A text with single spaces between its words.
pub fn fold_spaces(text: &str) -> Cow<'_, str> {
    let (mut after_space, mut is_folded) = (true, true);
    for c in text.chars() {
        let is_space = tokens::is_space(c);
        is_folded &= !is_space || (c == ' ' && !after_space);
        after_space = is_space;
    }
    if is_folded && (!after_space || text.is_empty()) {
        return text.into();
    }
    text.split(tokens::is_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ").into()
}

/// A text without differences of case (Unicode, default case folding).
pub fn fold_case(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { caseless::default_case_fold_str(text) }
}

pub mod accents;
pub mod analyzer;
pub mod langid;
pub mod language;
pub mod terms;
mod tex;
pub mod tokens;
