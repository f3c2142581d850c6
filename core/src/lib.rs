//! The hot loops of indlet: reading pages, analysing text, indexing and ranking.
//!
//! Python is in charge; this crate holds no I/O policy, no settings and no SQL. Functions take and return plain
//! values. [`python`] is the only module that knows Python, and `map` the only one with `unsafe` code.

/// A regular expression that is compiled when it is first needed.
macro_rules! pattern {
    ($name:ident, $expression:expr) => {
        static $name: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| regex::Regex::new($expression).expect("a regular expression"));
    };
}

pub mod dates;
mod error;
pub mod index;
pub mod keys;
mod map;
pub mod metadata;
pub mod page;
#[cfg(feature = "python")]
mod python;
pub mod rank;
pub mod text;

pub use error::{Error, Result};
pub use map::Stamp;
