//! Reading pages and values, for `indlet.oai`, `indlet.formats` and `indlet.service.records`.

// Tuples are what crosses the border; `_core.pyi` names their parts.
#![allow(clippy::type_complexity)]

use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyString, PyTuple};

use super::text::Text;
use super::work;
use crate::Error;
use crate::page::{self, record, values, vector};

/// A record in the order of `indlet.model.Packed`: identifier, deleted, sets, language, length, resource, digest, metadata,
/// properties, raw, vector, positions.
type PackedRow<'py> = (
    Bound<'py, PyString>,
    u32,
    String,
    String,
    u64,
    i64,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Option<Bound<'py, PyBytes>>,
    Option<Bound<'py, PyBytes>>,
);
/// identifier, datestamp, sets, deleted, packed, root, index, abouts, policy, begin, end
type ItemRow<'py> = (
    Bound<'py, PyString>,
    String,
    Bound<'py, PyTuple>,
    bool,
    Option<PackedRow<'py>>,
    String,
    Option<Bound<'py, PyBytes>>,
    Bound<'py, PyTuple>,
    String,
    usize,
    usize,
);
/// response_date, verb, is_extended, token, cursor, size, errors, repairs, problems, items, spent
type PageRow<'py> = (
    String,
    &'static str,
    bool,
    Option<String>,
    Option<u64>,
    Option<u64>,
    Vec<(String, String)>,
    Vec<&'static str>,
    Vec<(String, String, usize, usize)>,
    Vec<ItemRow<'py>>,
    usize,
);

/// The page of a response; None if it has to be repaired first. BadResponse if its namespaces are too large.
#[pyfunction]
pub fn read_page<'py>(py: Python<'py>, body: PyBackedBytes, budget: usize) -> PyResult<Option<PageRow<'py>>> {
    let read = work(py, || match page::read_page(&body, budget) {
        Err(Error::Malformed(_)) => Ok(None),
        other => other.map(Some),
    })?;
    let Some(page) = read else { return Ok(None) };
    let bytes = |span: &std::ops::Range<usize>| PyBytes::new(py, &page.derived[span.clone()]);
    let items = page.items.into_iter().map(|item| {
        let identifier = PyString::new(py, &item.identifier);
        let (vector, length, language) = match item.vector {
            Some(vector) => (Some(PyBytes::new(py, &vector.packed)), vector.length, vector.language),
            None => (None, 0, String::new()),
        };
        let mut root = String::new();
        let packed = item.part.map(|part| {
            root = part.root;
            (
                identifier.clone(),
                0,
                item.sets.join(" "),
                language,
                length,
                part.resource,
                PyBytes::new(py, &part.digest),
                bytes(&part.described),
                bytes(&part.properties),
                bytes(&part.raw),
                vector,
                None,
            )
        });
        Ok((
            identifier,
            item.datestamp,
            PyTuple::new(py, item.sets)?,
            item.deleted,
            packed,
            root,
            item.index.as_ref().map(bytes),
            PyTuple::new(py, item.abouts.iter().map(bytes))?,
            item.policy,
            item.source.start,
            item.source.end,
        ))
    });
    let items = items.collect::<PyResult<Vec<_>>>()?;
    let problems = page.problems.into_iter();
    let problems = problems.map(|one| (one.identifier, one.reason, one.source.start, one.source.end)).collect();
    Ok(Some((
        page.response_date,
        page.verb,
        page.is_extended,
        page.token,
        page.cursor,
        page.size,
        page.errors,
        page.repairs,
        problems,
        items,
        page.spent,
    )))
}

#[pyfunction]
pub fn is_utf8(py: Python<'_>, body: PyBackedBytes) -> PyResult<bool> {
    work(py, || Ok(std::str::from_utf8(&body).is_ok()))
}

/// Metadata as JSON, of elements with values as they came; other elements than those of Dublin Core are left out.
#[pyfunction]
pub fn describe_metadata<'py>(py: Python<'py>, pairs: Vec<(String, Text)>) -> PyResult<Bound<'py, PyBytes>> {
    let json = work(py, || {
        let mut found = values::Values::default();
        for (name, value) in &pairs {
            if let Some(element) = values::ELEMENTS.iter().position(|element| element == name) {
                found.add(element, &value.0);
            }
        }
        found.deduplicate();
        Ok(found.to_json())
    })?;
    Ok(PyBytes::new(py, &json))
}

/// The element of Dublin Core that a local name stands for; empty if none.
#[pyfunction]
pub fn element_of(name: Text) -> &'static str {
    values::element_of(&name.0).map_or("", |element| values::ELEMENTS[element])
}

#[pyfunction]
pub fn is_media_type(value: Text) -> bool {
    values::is_media_type(&value.0)
}

/// The date as YYYY, YYYY-MM or YYYY-MM-DD; empty if its form is not known.
#[pyfunction]
pub fn iso_date(value: Text) -> String {
    values::iso_date(&value.0).unwrap_or_default()
}

/// A value without characters that XML forbids, and with white space folded.
#[pyfunction]
pub fn fold_value(value: Text) -> String {
    values::fold(&value.0).into_owned()
}

/// A PDF's string that was copied as it stands in the file; others unchanged.
#[pyfunction]
pub fn pdf_text(value: Text) -> String {
    values::pdf_text(&value.0).unwrap_or(value.0)
}

/// The key of the resource that a record is about, by its OAI identifier and the identifiers among its metadata.
#[pyfunction]
pub fn resource_key(identifier: Text, identifiers: Vec<Text>) -> String {
    let identifiers: Vec<String> = identifiers.into_iter().map(|value| value.0).collect();
    record::resource_key(&identifier.0, &identifiers)
}

/// The hash of a resource's key, never 0; 0 for no key.
#[pyfunction]
pub fn resource_hash(key: Text) -> i64 {
    record::resource_hash(&key.0)
}

/// What tells whether a record is the one that is stored already: sets, language, length, resource, then metadata,
/// properties, raw, vector and positions.
#[pyfunction]
pub fn record_digest<'py>(
    py: Python<'py>,
    header: (PyBackedStr, PyBackedStr, u64, i64),
    parts: (PyBackedBytes, PyBackedBytes, PyBackedBytes, Option<PyBackedBytes>, Option<PyBackedBytes>),
) -> Bound<'py, PyBytes> {
    let content = record::Content {
        sets: &header.0,
        language: &header.1,
        length: header.2,
        resource: header.3,
        metadata: &parts.0,
        properties: &parts.1,
        raw: &parts.2,
        vector: parts.3.as_deref(),
        positions: parts.4.as_deref(),
    };
    PyBytes::new(py, &content.digest())
}

/// How many terms a packed vector has, and the sum of their frequencies.
#[pyfunction]
pub fn vector_size(packed: PyBackedBytes) -> (u64, u64) {
    vector::size(&packed)
}

/// The texts of the elements below the root that are Dublin Core by their local names. BadResponse if they exceed the
/// budget.
#[pyfunction]
pub fn element_values(py: Python<'_>, xml: PyBackedBytes, budget: usize) -> PyResult<Vec<(&'static str, String)>> {
    work(py, || page::element_values(&xml, budget))
}

/// How many different numbers of eight bytes there are.
#[pyfunction]
pub fn count_distinct(py: Python<'_>, parts: Vec<PyBackedBytes>) -> PyResult<usize> {
    work(py, || {
        let mut numbers: Vec<&[u8]> = parts.iter().flat_map(|part| part.chunks_exact(8)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers.len())
    })
}
