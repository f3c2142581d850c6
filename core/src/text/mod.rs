//! Text becomes terms.

pub mod accents;
pub mod analyzer;
pub mod langid;
pub mod language;
pub mod terms;
pub mod tokens;
