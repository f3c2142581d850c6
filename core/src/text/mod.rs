//! Text becomes terms.

/// The first characters of a text.
pub fn cut(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

pub mod accents;
pub mod analyzer;
pub mod langid;
pub mod language;
pub mod terms;
pub mod tokens;
