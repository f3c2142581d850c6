//! Analysis and keys, for `indlet.text`, `indlet.formats` and `indlet.service.index`.

// Tuples are what crosses the border; `_core.pyi` names their parts.
#![allow(clippy::type_complexity)]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyString};

use super::work;
use crate::dates;
use crate::index::records::{Record, describe_records, metadata_vector};
use crate::keys::{RecordKeys, identifiers, media, people, values};
use crate::metadata::Metadata;
use crate::text::analyzer::{self, Analyzer, Policy, Resources, Vector};
use crate::text::langid::{self, Span};
use crate::text::language::{self, Evidence};
use crate::text::{accents, tokens};
use crate::{Error, Result};

/// A string of Python. A lone surrogate, which no text has, becomes a question mark.
pub struct Text(pub String);

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(value: pyo3::Borrowed<'_, 'py, PyAny>) -> PyResult<Text> {
        let text = value.cast::<PyString>()?;
        match text.to_str() {
            Ok(text) => Ok(Text(text.to_owned())),
            Err(_) => {
                let bytes: PyBackedBytes = text.call_method1("encode", ("utf-8", "replace"))?.extract()?;
                Ok(Text(String::from_utf8_lossy(&bytes).into_owned()))
            }
        }
    }
}

/// The statistical model of languages, in a file.
#[pyclass(module = "indlet._core", frozen)]
pub struct LanguageModel {
    model: Arc<langid::LanguageModel>,
}

#[pymethods]
impl LanguageModel {
    /// `spans`: where weights, priors, moves, rows and features are in the file.
    #[new]
    fn new(path: PathBuf, spans: [Span; 5], classes: Vec<String>) -> PyResult<LanguageModel> {
        Ok(LanguageModel { model: Arc::new(langid::LanguageModel::open(&path, spans, classes)?) })
    }

    /// The language that a text most probably is in, and how probable that is.
    fn classify(&self, py: Python<'_>, text: Text) -> PyResult<(String, f32)> {
        work(py, || {
            let (language, probability) = self.model.classify(&text.0);
            Ok((language.to_owned(), probability))
        })
    }
}

/// What Python provides: `stem(language, words)` and `model()`.
struct Provided {
    stem: Py<PyAny>,
    model: Py<PyAny>,
    loaded: OnceLock<Option<Arc<langid::LanguageModel>>>,
}

impl Resources for Provided {
    fn stem(&self, language: &str, words: Vec<String>) -> Result<Vec<String>> {
        Python::attach(|py| self.stem.call1(py, (language, words))?.extract(py))
            .map_err(|error: PyErr| Error::Value(format!("the stemmer failed: {error}")))
    }

    fn language_model(&self) -> Option<Arc<langid::LanguageModel>> {
        let load = || {
            Python::attach(|py| {
                let found = self.model.call0(py).ok()?;
                Some(found.cast_bound::<LanguageModel>(py).ok()?.get().model.clone())
            })
        };
        self.loaded.get_or_init(load).clone()
    }
}

/// Makes terms of texts by one policy. Keep it: it is fast because it remembers.
#[pyclass(module = "indlet._core", frozen)]
pub struct TextAnalyzer {
    analyzer: Mutex<Analyzer>,
    provided: Provided,
}

impl TextAnalyzer {
    /// The analyser and what it needs; only for threads that do not hold the interpreter's lock.
    pub fn lock(&self) -> (MutexGuard<'_, Analyzer>, &dyn Resources) {
        (self.analyzer.lock().unwrap_or_else(|poisoned| poisoned.into_inner()), &self.provided)
    }
}

type VectorRow<'py> = (Bound<'py, PyBytes>, u32, Option<Bound<'py, PyBytes>>, String);

fn vector_row(py: Python<'_>, made: Vector) -> VectorRow<'_> {
    let positions = made.positions.map(|positions| PyBytes::new(py, &positions));
    (PyBytes::new(py, &made.packed), made.length, positions, made.language)
}

/// A record as the store has it: identifier, length, language, metadata, vector, positions.
pub type StoredRow = (Text, i64, PyBackedStr, PyBackedBytes, Option<PyBackedBytes>, Option<PyBackedBytes>);

#[pymethods]
impl TextAnalyzer {
    /// `stops`: each language that has rules, with its stop words.
    #[new]
    #[pyo3(signature = (*, language, default_language, stop, stem, positions, prune, lead, min_length, max_length,
                        stops, stemmer, model))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        language: String,
        default_language: String,
        stop: bool,
        stem: bool,
        positions: bool,
        prune: Option<f64>,
        lead: Option<f64>,
        min_length: usize,
        max_length: usize,
        stops: Vec<(String, Vec<String>)>,
        stemmer: Py<PyAny>,
        model: Py<PyAny>,
    ) -> TextAnalyzer {
        let policy = Policy { language, default_language, stop, stem, positions, prune, lead, min_length, max_length };
        TextAnalyzer {
            analyzer: Mutex::new(Analyzer::new(policy, Arc::new(Evidence::new(stops)))),
            provided: Provided { stem: stemmer, model, loaded: OnceLock::new() },
        }
    }

    /// A text's packed vector, its length, its positions, and its language.
    fn vector<'py>(&self, py: Python<'py>, text: Text, stated: Text) -> PyResult<VectorRow<'py>> {
        let made = work(py, || {
            let (mut analyzer, resources) = self.lock();
            analyzer.vector(&text.0, &stated.0, resources)
        })?;
        Ok(vector_row(py, made))
    }

    /// The same of the metadata of a record that came without a vector.
    fn metadata_vector<'py>(&self, py: Python<'py>, metadata: PyBackedBytes) -> PyResult<VectorRow<'py>> {
        let made = work(py, || {
            let (mut analyzer, resources) = self.lock();
            metadata_vector(&metadata, &mut analyzer, resources)
        })?;
        Ok(vector_row(py, made))
    }

    /// A text's terms in their order, for a query.
    fn terms(&self, py: Python<'_>, text: Text, language: Text) -> PyResult<Vec<String>> {
        work(py, || {
            let (mut analyzer, resources) = self.lock();
            analyzer.query_terms(&text.0, &language.0, resources)
        })
    }

    /// What one word becomes.
    fn term(&self, py: Python<'_>, word: Text, language: Text) -> PyResult<Vec<String>> {
        work(py, || {
            let (mut analyzer, resources) = self.lock();
            analyzer.word_terms(&word.0, &language.0, resources)
        })
    }

    /// A text's terms in their order, under the rules of a language; None for a token that was dropped.
    fn sequence(&self, py: Python<'_>, text: Text, rules: &str) -> PyResult<Vec<Option<String>>> {
        work(py, || {
            let (mut analyzer, resources) = self.lock();
            analyzer.sequence(&text.0, rules, resources)
        })
    }

    /// What each of some words becomes under the rules of a language.
    fn map_words(&self, py: Python<'_>, words: Vec<Text>, rules: &str) -> PyResult<Vec<Vec<String>>> {
        work(py, || {
            let words: Vec<String> = words.into_iter().map(|word| word.0).collect();
            let (mut analyzer, resources) = self.lock();
            analyzer.map_words(&words, rules, resources)
        })
    }

    /// The language that a text itself tells; empty where it does not, or tells nothing against the one stated.
    fn detect(&self, py: Python<'_>, text: Text, stated: &str) -> PyResult<String> {
        work(py, || {
            let (mut analyzer, resources) = self.lock();
            let cut = analyzer.cut(&text.0);
            Ok(analyzer.detect(&text.0, &cut, stated, resources))
        })
    }

    /// Records with all their terms: vector, length, positions, language, and the vector of fields and keys.
    fn describe<'py>(
        &self,
        py: Python<'py>,
        rows: Vec<StoredRow>,
    ) -> PyResult<Vec<(Bound<'py, PyBytes>, u32, Option<Bound<'py, PyBytes>>, String, Bound<'py, PyBytes>)>> {
        let made = work(py, || {
            let (mut analyzer, resources) = self.lock();
            let records: Vec<Record> = rows.iter().map(record).collect();
            describe_records(&records, &mut analyzer, resources)
        })?;
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
        Ok(made
            .into_iter()
            .map(|one| {
                let positions = one.positions.as_deref().map(bytes);
                (bytes(&one.vector), one.length, positions, one.language, bytes(&one.fields))
            })
            .collect())
    }
}

pub fn record((identifier, length, language, metadata, vector, positions): &StoredRow) -> Record<'_> {
    Record {
        id: 0,
        origin: 0,
        identifier: &identifier.0,
        sets: "",
        resource: 0,
        further: &[],
        length: (*length).clamp(0, i64::from(u32::MAX)) as u32,
        language,
        metadata,
        vector: vector.as_deref(),
        positions: positions.as_deref(),
    }
}

/// The terms of the share that tells most about a document.
#[pyfunction]
pub fn most_telling(terms: Vec<(String, u32)>, share: f64) -> Vec<String> {
    analyzer::most_telling(&terms, share).into_iter().map(|place| terms[place].0.clone()).collect()
}

/// A text whose words are whole where a soft hyphen broke them at the end of a line.
#[pyfunction]
pub fn join_lines(text: Text) -> String {
    tokens::join_lines(&text.0).into_owned()
}

/// The pieces of a text between white space and ASCII punctuation, ASCII letters in lower case.
#[pyfunction]
pub fn split(text: Text) -> Vec<String> {
    tokens::pieces(&text.0).map(|(_, piece)| piece.to_ascii_lowercase()).collect()
}

/// The tokens of one piece, or of any text without a line break in it.
#[pyfunction]
pub fn words(piece: Text) -> Vec<String> {
    let mut out = Vec::new();
    tokens::for_each_word(&piece.0, |word| out.push(word.to_owned()));
    out
}

/// Each token with the start and end, in characters, of the piece that it comes from.
#[pyfunction]
pub fn tokens_with_places(text: Text) -> Vec<(usize, usize, String)> {
    let (mut out, mut chars, mut bytes) = (Vec::new(), 0, 0);
    for (begin, piece) in tokens::pieces(&text.0) {
        chars += text.0[bytes..begin].chars().count();
        bytes = begin;
        let end = chars + piece.chars().count();
        tokens::for_each_word(piece, |word| out.push((chars, end, word.to_owned())));
    }
    out
}

/// A text without case, compatible variants and ignorable characters.
#[pyfunction]
pub fn fold(text: Text) -> String {
    tokens::fold(&text.0)
}

#[pyfunction]
pub fn without_accents(text: Text) -> String {
    accents::without_accents(&text.0)
}

#[pyfunction]
pub fn language_code(value: Text) -> String {
    language::language_code(&value.0)
}

#[pyfunction]
pub fn identifier_keys(value: Text) -> Vec<String> {
    identifiers::keys_of(&value.0)
}

/// The keys that a value states, without those that are merely what a record calls itself, and not bounded.
#[pyfunction]
pub fn known_identifiers(value: Text) -> Vec<String> {
    identifiers::known(&value.0)
}

#[pyfunction]
pub fn bound_key(key: Text) -> String {
    identifiers::bound_key(key.0)
}

/// An identifier without the punctuation of the sentence around it.
#[pyfunction]
pub fn trim_identifier(value: Text) -> String {
    identifiers::trim(&value.0).to_owned()
}

#[pyfunction]
pub fn doi(value: Text) -> String {
    identifiers::doi(&value.0).to_owned()
}

#[pyfunction]
pub fn file_format(value: Text) -> String {
    media::file_format(&value.0)
}

/// A name's words before the first comma, those after, and how many of these precede the second.
#[pyfunction]
pub fn person_words(name: Text) -> (Vec<String>, Vec<String>, usize) {
    people::Name::parse(&name.0).parts_at_commas()
}

#[pyfunction]
pub fn person_parts(name: Text) -> (String, String) {
    people::Name::parse(&name.0).parts()
}

#[pyfunction]
pub fn person_record_keys(name: Text) -> Vec<String> {
    people::Name::parse(&name.0).record_keys()
}

#[pyfunction]
pub fn person_query_keys(name: Text) -> Vec<String> {
    people::Name::parse(&name.0).query_keys()
}

#[pyfunction]
pub fn filing_name(name: Text) -> String {
    people::Name::parse(&name.0).filing_form()
}

#[pyfunction]
pub fn fold_name(text: Text) -> String {
    people::fold(&text.0).into_owned()
}

#[pyfunction]
pub fn value_key(facet: &str, value: Text) -> String {
    values::value_key(facet, &value.0)
}

/// A text as a part of a term.
#[pyfunction]
pub fn pack_value(text: Text) -> String {
    let mut out = String::new();
    values::push_packed(&mut out, &text.0);
    out
}

#[pyfunction]
pub fn title_words(title: Text) -> Vec<String> {
    let filed = values::filed_title(&title.0);
    filed.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[pyfunction]
pub fn title_key(title: Text) -> Option<String> {
    values::title_key(&title.0)
}

/// The terms of all keys of a record, by its identifier and its metadata as JSON.
#[pyfunction]
pub fn record_key_terms(identifier: Text, metadata: PyBackedBytes) -> PyResult<Vec<String>> {
    let mut keys = RecordKeys::default();
    keys.describe(&identifier.0, &Metadata::parse(&metadata)?);
    Ok(keys.iter().map(|term| String::from_utf8_lossy(term).into_owned()).collect())
}

/// The date of a record as yyyymmdd; 0 if its values name none.
#[pyfunction]
pub fn date_number(values: Vec<Text>) -> u32 {
    dates::date_number(values.iter().map(|value| &value.0[..]))
}
