//! The extension module `indlet._core`: plain values in and out, the interpreter's lock released around work.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

mod index;
mod page;
mod text;

use crate::Error;

pyo3::import_exception!(indlet.errors, BadResponse);
pyo3::import_exception!(indlet.errors, IndexDamaged);
pyo3::import_exception!(indlet.errors, IndletError);

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        match error {
            Error::Malformed(reason) | Error::TooLarge(reason) => BadResponse::new_err(reason),
            Error::Damaged(reason) => IndexDamaged::new_err(reason),
            Error::Io { path, errno } => PyOSError::new_err((errno, "cannot be read or written", path)),
            Error::Value(reason) => PyValueError::new_err(reason),
        }
    }
}

/// Run work without the interpreter's lock. A panic becomes an exception, and the process goes on.
pub fn work<T: Send>(py: Python<'_>, f: impl FnOnce() -> crate::Result<T> + Send) -> PyResult<T> {
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(f)));
    match outcome {
        Ok(result) => result.map_err(PyErr::from),
        Err(panic) => {
            let reason = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("unknown");
            Err(IndletError::new_err(format!("a bug in indlet's core: {reason}; please report it")))
        }
    }
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::index::{
        Searcher, Segment, SegmentBuilder, deleted_since_merge, learn_thresholds, merge_segments, stable_hash,
        words_near,
    };

    #[pymodule_export]
    use super::page::{
        count_distinct, describe_metadata, element_of, element_values, fold_value, is_media_type, is_utf8, iso_date,
        pdf_text, read_page, record_digest, resource_hash, resource_key, vector_size,
    };

    #[pymodule_export]
    use super::text::{
        LanguageModel, TextAnalyzer, bound_key, date_number, doi, file_format, filing_name, fold, fold_name,
        identifier_keys, join_lines, known_identifiers, language_code, most_telling, pack_value, person_parts,
        person_query_keys, person_record_keys, person_words, record_key_terms, split, title_key, title_words,
        tokens_with_places, trim_identifier, value_key, without_accents, words,
    };

    /// The version of the product; `core/Cargo.toml` is its only place.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// The ranking models that are compiled.
    #[pymodule_export]
    const MODELS: &[&str] = crate::rank::MODELS;

    /// DCMI's refinements, each with the element of Dublin Core that it refines.
    #[pymodule_export]
    const REFINEMENTS: &[(&str, &str)] = &crate::page::values::REFINEMENTS;
}
