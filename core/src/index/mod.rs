//! The index: immutable segments, the documents that have been deleted from them, and searches over both.

/// Begins a term that belongs to a field, a key or a value; terms of the text have no mark (`indlet.model.FIELD_MARK`).
pub const FIELD_MARK: u8 = 0x1F;

/// The mark that begins a term, with the byte that names its field; empty for a term of the text.
fn mark_of(term: &[u8]) -> &[u8] {
    if term.first() == Some(&FIELD_MARK) { &term[..term.len().min(2)] } else { &[] }
}

/// The least term that may have this mark. Terms of the text follow those with marks.
fn first_with(mark: &[u8]) -> &[u8] {
    if mark.is_empty() { &[FIELD_MARK + 1] } else { mark }
}

pub mod bitset;
pub mod builder;
pub mod bytes;
pub mod codec;
pub mod columns;
pub mod derived;
pub mod dictionary;
pub mod distance;
pub mod facets;
pub mod file;
pub mod groups;
pub mod hash;
pub mod matching;
pub mod merge;
pub mod pruning;
pub mod records;
pub mod searcher;
pub mod segment;
pub mod top;
