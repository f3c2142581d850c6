//! Text becomes terms.

pub mod terms;
