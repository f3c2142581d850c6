//! What can go wrong, by what the caller can do about it.

use std::fmt;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// Foreign bytes that cannot be read: a page, a record, a vector.
    Malformed(String),
    /// Foreign bytes whose derived output exceeds its budget.
    TooLarge(String),
    /// An index file that is not as it was written.
    Damaged(String),
    /// The operating system refused to read or write a file.
    Io { path: String, errno: i32 },
    /// A value that the caller should not have passed.
    Value(String),
}

impl Error {
    pub fn io(path: &std::path::Path, error: &std::io::Error) -> Error {
        Error::Io { path: path.display().to_string(), errno: error.raw_os_error().unwrap_or(5) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Malformed(reason) | Error::TooLarge(reason) | Error::Damaged(reason) | Error::Value(reason) => {
                f.write_str(reason)
            }
            Error::Io { path, errno } => write!(f, "{path}: operating system error {errno}"),
        }
    }
}

impl std::error::Error for Error {}
