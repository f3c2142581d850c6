//! Text becomes terms.

pub mod accents;
pub mod terms;
