//! The index, for `indlet.service.index.embedded`.

// Tuples are what crosses the border; `_core.pyi` names their parts.
#![allow(clippy::type_complexity)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyString, PyTuple};

use super::text::{StoredRow, TextAnalyzer, record};
use super::{IndexDamaged, work};
use crate::index::bitset::BitSet;
use crate::index::builder::SegmentBuilder as Builder;
use crate::index::distance::Distances;
use crate::index::hash;
use crate::index::matching::Expression;
use crate::index::merge::{self, KeepAll};
use crate::index::pruning::Thresholds;
use crate::index::records::{Record, add_records};
use crate::index::searcher::{Facet, Request, Scoring, Searcher as Snapshot, Sort};
use crate::index::segment::{Deletions, Segment as Part, SegmentData};
use crate::index::top::Hit;
use crate::keys::values::value_beginning;
use crate::map::Stamp;
use crate::rank::{Constants, Formula, QueryConstants};
use crate::{Error, Result};

/// The size and the checksum of a file that was written.
type Written = (u64, u32);

fn stamp((size, checksum): Written) -> Stamp {
    Stamp { size, checksum }
}

fn written(stamp: Stamp) -> Written {
    (stamp.size, stamp.checksum)
}

/// Read an index file: what cannot be decoded is damaged, whatever its checksum says.
fn read<T: Send>(py: Python<'_>, f: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    match py.detach(|| catch_unwind(AssertUnwindSafe(f))) {
        Ok(result) => result.map_err(PyErr::from),
        Err(_) => Err(IndexDamaged::new_err("an index file cannot be decoded; rebuild it with  indlet reindex")),
    }
}

/// A record on its way into the index: id, origin, sets, resource, further terms (packed), and as the store has it.
type Row = (i64, i64, PyBackedStr, i64, PyBackedBytes, StoredRow);

/// Documents on their way into a segment: the newest version of each.
#[pyclass(module = "indlet._core")]
#[derive(Default)]
pub struct SegmentBuilder {
    builder: Mutex<Builder>,
}

impl SegmentBuilder {
    fn lock(&self) -> std::sync::MutexGuard<'_, Builder> {
        self.builder.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[pymethods]
impl SegmentBuilder {
    #[new]
    fn new() -> SegmentBuilder {
        SegmentBuilder::default()
    }

    fn __len__(&self) -> usize {
        self.lock().len()
    }

    #[getter]
    fn memory(&self) -> usize {
        self.lock().memory()
    }

    /// Add records, or newer versions of those that are here. Without an analyser, their terms are those of their vectors
    /// and further ones alone.
    fn add(&self, py: Python<'_>, analyzer: Option<&Bound<'_, TextAnalyzer>>, rows: Vec<Row>) -> PyResult<()> {
        let analyzer = analyzer.map(|analyzer| analyzer.get());
        work(py, || {
            let mut builder = self.lock();
            let records: Vec<Record> = rows
                .iter()
                .map(|(id, origin, sets, resource, further, stored)| Record {
                    id: *id,
                    origin: *origin,
                    sets,
                    resource: *resource as u64,
                    further,
                    ..record(stored)
                })
                .collect();
            let mut locked = analyzer.map(TextAnalyzer::lock);
            add_records(
                &mut builder,
                &records,
                locked.as_mut().map(|(analyzer, resources)| (&mut **analyzer, *resources)),
            )
        })
    }

    /// Forget records that are here.
    fn remove(&self, ids: Vec<i64>) {
        let mut builder = self.lock();
        ids.into_iter().for_each(|id| builder.remove(id));
    }

    /// Write a segment of all records.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<Written> {
        work(py, || self.lock().write(&path).map(written))
    }
}

/// A segment with its deletions up to a commit.
#[pyclass(module = "indlet._core", frozen)]
pub struct Segment {
    part: Part,
}

#[pymethods]
impl Segment {
    /// Open a file that was written with this size and checksum; `deletions` are those of another file.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, file: Written) -> PyResult<Segment> {
        read(py, || {
            let data = Arc::new(SegmentData::open(&path, stamp(file))?);
            Ok(Segment { part: Part::new(data, None) })
        })
    }

    /// The same segment with the deletions of a file instead of its own.
    fn with_deletions(&self, py: Python<'_>, path: Option<PathBuf>, file: Option<Written>) -> PyResult<Segment> {
        read(py, || {
            let deletions = match path.zip(file) {
                None => None,
                Some((path, file)) => Some(Arc::new(Deletions::read(&path, stamp(file), self.part.size())?)),
            };
            Ok(Segment { part: Part::new(self.part.data.clone(), deletions) })
        })
    }

    /// Write the deletions of the segment together with those of these documents.
    fn write_deletions(&self, py: Python<'_>, docs: Vec<usize>, path: PathBuf) -> PyResult<Written> {
        read(py, || {
            let mut gone = BitSet::empty(self.part.size());
            docs.into_iter().for_each(|doc| gone.insert(doc));
            self.part.deleting(&gone)?.write(&path).map(written)
        })
    }

    /// Documents in the file, deleted ones too.
    #[getter]
    fn size(&self) -> usize {
        self.part.size()
    }

    /// Live documents.
    #[getter]
    fn documents(&self) -> usize {
        self.part.documents
    }

    /// The live documents of these records.
    fn find(&self, py: Python<'_>, ids: Vec<i64>) -> PyResult<Vec<usize>> {
        read(py, || {
            let data = &self.part.data;
            let found = ids.into_iter().filter_map(|id| data.document(id));
            Ok(found.filter(|&doc| self.part.is_live(doc)).collect())
        })
    }
}

fn parts(segments: &[PyRef<'_, Segment>]) -> Vec<Part> {
    segments.iter().map(|segment| segment.part.clone()).collect()
}

/// Write one segment with the live documents of all; None if `is_halted` says so meanwhile. With a file of thresholds, postings
/// that weigh less are left out.
#[pyfunction]
#[pyo3(signature = (segments, path, is_halted=None, thresholds=None))]
pub fn merge_segments(
    py: Python<'_>,
    segments: Vec<PyRef<'_, Segment>>,
    path: PathBuf,
    is_halted: Option<Py<PyAny>>,
    thresholds: Option<(PathBuf, Written)>,
) -> PyResult<Option<Written>> {
    let parts = parts(&segments);
    let is_halted = || {
        let ask = |call: &Py<PyAny>| Python::attach(|py| call.call0(py)?.extract::<bool>(py));
        is_halted.as_ref().is_some_and(|call| ask(call).unwrap_or(true))
    };
    read(py, || {
        let merged = match thresholds {
            None => merge::merge(&parts, &path, &mut KeepAll, &is_halted)?,
            Some((file, size)) => merge::merge(&parts, &path, &mut Thresholds::read(&file, stamp(size))?, &is_halted)?,
        };
        Ok(merged.map(written))
    })
}

/// The documents of a merged segment that have gone since: `before` are the segments as they were merged, `now` as they
/// are, None for one that is no longer there.
#[pyfunction]
pub fn deleted_since_merge(
    py: Python<'_>,
    before: Vec<PyRef<'_, Segment>>,
    now: Vec<Option<PyRef<'_, Segment>>>,
) -> PyResult<Vec<usize>> {
    let before = parts(&before);
    let now: Vec<Option<Part>> =
        now.iter().map(|segment| segment.as_ref().map(|segment| segment.part.clone())).collect();
    read(py, || {
        let mut out = Vec::new();
        for ((old, new), numbers) in before.iter().zip(&now).zip(merge::renumber(&before)) {
            let gone = |doc: usize| new.as_ref().is_none_or(|new| !new.is_live(doc));
            out.extend((0..old.size()).filter(|&doc| old.is_live(doc) && gone(doc)).map(|doc| numbers[doc] as usize));
        }
        Ok(out)
    })
}

/// Learn thresholds for pruning, and write them.
#[pyfunction]
pub fn learn_thresholds(
    py: Python<'_>,
    segments: Vec<PyRef<'_, Segment>>,
    share: f64,
    best: usize,
    path: PathBuf,
) -> PyResult<Written> {
    let parts = parts(&segments);
    read(py, || Thresholds::learn(&parts, share, best)?.write(&path).map(written))
}

/// A model's formula in Python, for models without a compiled one; with the first error that it raised.
struct PythonFormula {
    share: Py<PyAny>,
    finish: Py<PyAny>,
    error: Mutex<Option<PyErr>>,
}

impl PythonFormula {
    fn call(&self, f: impl FnOnce(Python<'_>) -> PyResult<f64>) -> f64 {
        Python::attach(f).unwrap_or_else(|error| {
            self.error.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(error);
            0.0
        })
    }
}

impl Formula for PythonFormula {
    fn share(&self, term: Constants, tf: u32, length: u32) -> f64 {
        self.call(|py| self.share.call1(py, ((term.0, term.1), tf, length))?.extract(py))
    }

    fn finish(&self, query: QueryConstants, total: f64, length: u32, norm: f64) -> f64 {
        self.call(|py| self.finish.call1(py, ((query.0, query.1), total, length, norm))?.extract(py))
    }
}

/// A hit: id, score, date, and the ids of all records of its resource, itself first.
type Found<'py> = (i64, f64, u32, Bound<'py, PyTuple>);

/// One committed state of the index, which never changes.
#[pyclass(module = "indlet._core", frozen)]
pub struct Searcher {
    snapshot: Snapshot,
}

#[pymethods]
impl Searcher {
    #[new]
    fn new(segments: Vec<PyRef<'_, Segment>>) -> Searcher {
        Searcher { snapshot: Snapshot::new(parts(&segments)) }
    }

    #[getter]
    fn documents(&self) -> usize {
        self.snapshot.documents()
    }

    #[getter]
    fn length(&self) -> u64 {
        self.snapshot.length()
    }

    /// Documents in the files that are deleted or hidden.
    #[getter]
    fn deleted(&self) -> usize {
        self.snapshot.segments.iter().map(|segment| segment.size() - segment.documents).sum()
    }

    /// This state as if the records of these origins did not exist; None if there are none.
    fn without(&self, py: Python<'_>, origins: Vec<String>) -> PyResult<Option<Searcher>> {
        read(py, || Ok(self.snapshot.without(&origins)?.map(|snapshot| Searcher { snapshot })))
    }

    /// The terms that count for a score, with weight, df and cf, in canonical order.
    fn query_terms<'py>(
        &self,
        py: Python<'py>,
        expression: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<(Bound<'py, PyBytes>, f64, u64, u64)>> {
        let expression = parse_expression(expression)?;
        let terms = read(py, || self.snapshot.query_terms(&expression))?;
        Ok(terms.into_iter().map(|t| (PyBytes::new(py, &t.term), t.weight, t.df, t.cf)).collect())
    }

    /// The best documents: total, hits, facets, whether a phrase was matched loosely, and how many hits go first.
    #[pyo3(signature = (expression, terms, constants, query, model, parameters, formula, *, limit, offset, filters,
                        sort, facets, collapse, first, values))]
    #[allow(clippy::too_many_arguments)]
    fn search<'py>(
        &self,
        py: Python<'py>,
        expression: &Bound<'_, PyAny>,
        terms: Vec<PyBackedBytes>,
        constants: Vec<(f64, f64)>,
        query: (f64, f64),
        model: &str,
        parameters: Vec<f64>,
        formula: Option<(Py<PyAny>, Py<PyAny>)>,
        limit: usize,
        offset: usize,
        filters: Vec<Bound<'_, PyAny>>,
        sort: &str,
        facets: Vec<(String, Option<PyBackedBytes>)>,
        collapse: bool,
        first: Vec<Bound<'_, PyAny>>,
        values: usize,
    ) -> PyResult<(usize, Vec<Found<'py>>, Vec<Vec<(String, u64)>>, bool, usize)> {
        let expression = parse_expression(expression)?;
        let filters = filters.iter().map(parse_expression).collect::<PyResult<Vec<_>>>()?;
        let first = first.iter().map(parse_expression).collect::<PyResult<Vec<_>>>()?;
        let sort = match sort {
            "score" => Sort::Score,
            "newest" => Sort::Newest,
            "oldest" => Sort::Oldest,
            "title" => Sort::Title,
            "author" => Sort::Author,
            _ => return Err(Error::Value(format!("there is no order {sort:?}")).into()),
        };
        let facets: Vec<Facet> = facets
            .into_iter()
            .map(|(name, mark)| mark.map_or(Facet::Column(name), |mark| Facet::Values(mark.to_vec())))
            .collect();
        let formula = formula.map(|(share, finish)| PythonFormula { share, finish, error: Mutex::default() });
        let (page, hits) = read(py, || {
            let terms: Vec<Vec<u8>> = terms.iter().map(|term| term.to_vec()).collect();
            let constants: Vec<Constants> = constants.iter().map(|&(a, b)| Constants(a, b)).collect();
            let scoring = Scoring {
                terms: &terms,
                constants: &constants,
                query: QueryConstants(query.0, query.1),
                model,
                parameters: &parameters,
                formula: formula.as_ref().map(|formula| formula as &dyn Formula),
            };
            let page = self.snapshot.search(&Request {
                expression: &expression,
                scoring: &scoring,
                limit,
                offset,
                filters: &filters,
                sort,
                facets: &facets,
                collapse,
                first: &first,
                values,
            })?;
            let groups = if collapse { Some(self.snapshot.groups()?) } else { None };
            let found = |hit: &Hit| {
                let date = self.snapshot.segments[hit.segment as usize].data.columns.dates[hit.doc as usize];
                let ids = groups.map_or_else(|| vec![hit.id], |groups| groups.with_others(hit.id, hit.group));
                (hit.id, hit.score, date, ids)
            };
            let hits: Vec<_> = page.hits.iter().map(found).collect();
            Ok((page, hits))
        })?;
        if let Some(error) = formula.and_then(|formula| formula.error.into_inner().ok().flatten()) {
            return Err(error);
        }
        let hits = hits.into_iter().map(|(id, score, date, ids)| Ok((id, score, date, PyTuple::new(py, ids)?)));
        Ok((page.total, hits.collect::<PyResult<_>>()?, page.facets, page.loose, page.ahead))
    }

    /// A record's tfs of some terms, its length and its norm; None if the index does not hold it.
    fn document(&self, py: Python<'_>, id: i64, terms: Vec<PyBackedBytes>) -> PyResult<Option<(Vec<u32>, u32, f64)>> {
        read(py, || self.snapshot.document(id, &terms.iter().map(|term| term.to_vec()).collect::<Vec<_>>()))
    }

    /// The ids of all records that match, in no particular order.
    fn matching(&self, py: Python<'_>, expression: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
        let expression = parse_expression(expression)?;
        read(py, || self.snapshot.matching_ids(&expression))
    }

    fn frequencies(&self, py: Python<'_>, term: PyBackedBytes) -> PyResult<(u64, u64)> {
        read(py, || self.snapshot.frequencies(&term))
    }

    /// Terms that begin so, with df and cf: the `limit` most frequent ones, most frequent first.
    fn terms<'py>(
        &self,
        py: Python<'py>,
        prefix: PyBackedBytes,
        limit: Option<usize>,
    ) -> PyResult<Vec<(Bound<'py, PyBytes>, u64, u64)>> {
        let terms = read(py, || self.snapshot.terms(&prefix, limit))?;
        Ok(terms.into_iter().map(|(term, df, cf)| (PyBytes::new(py, &term), df, cf)).collect())
    }

    /// Terms with df and cf in the order of bytes: `limit` of them, after one.
    fn vocabulary<'py>(
        &self,
        py: Python<'py>,
        after: Option<PyBackedBytes>,
        limit: usize,
    ) -> PyResult<Vec<(Bound<'py, PyBytes>, u64, u64)>> {
        let terms = read(py, || self.snapshot.vocabulary(after.as_deref(), limit))?;
        Ok(terms.into_iter().map(|(term, df, cf)| (PyBytes::new(py, &term), df, cf)).collect())
    }

    /// Terms at most so many edits away, with edits and df.
    fn near<'py>(
        &self,
        py: Python<'py>,
        word: PyBackedBytes,
        edits: u8,
    ) -> PyResult<Vec<(Bound<'py, PyBytes>, u8, u64)>> {
        let terms = read(py, || self.snapshot.near(&word, edits))?;
        Ok(terms.into_iter().map(|(term, edits, df)| (PyBytes::new(py, &term), edits, df)).collect())
    }

    /// The terms that are this one but for their accents.
    fn accented(&self, py: Python<'_>, plain: &str) -> PyResult<Vec<String>> {
        read(py, || self.snapshot.accented(plain))
    }

    /// Keys and labels of the values of a facet: `limit` from a key on or, backwards, the last ones before it.
    fn list_values(
        &self,
        py: Python<'_>,
        mark: PyBackedBytes,
        start: PyBackedBytes,
        limit: usize,
        backwards: bool,
    ) -> PyResult<Vec<(String, String)>> {
        let values = read(py, || self.snapshot.list_values(&mark, &start, limit, backwards))?;
        Ok(values.into_iter().map(|value| (value.key, value.label)).collect())
    }

    /// The number of terms and of postings.
    fn sizes(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        read(py, || self.snapshot.sizes())
    }

    fn fingerprint(&self, py: Python<'_>) -> PyResult<String> {
        read(py, || self.snapshot.fingerprint())
    }

    fn make_ready(&self, py: Python<'_>) -> PyResult<()> {
        read(py, || self.snapshot.make_ready())
    }
}

/// A string's UTF-8; lone surrogates, which no term has, are encoded too.
fn encode(text: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(text) = text.cast::<PyString>()?.to_str() {
        return Ok(text.as_bytes().to_vec());
    }
    text.call_method1("encode", ("utf-8", "surrogatepass"))?.extract()
}

/// Terms of a value, which are its spellings, that count for a score.
const VALUE_TERMS: usize = 64;

fn parse_all(parts: &Bound<'_, PyAny>) -> PyResult<Vec<Expression>> {
    parts.cast::<PyTuple>()?.iter().map(|part| parse_expression(&part)).collect()
}

/// An expression of `indlet.service.index.expression`.
fn parse_expression(value: &Bound<'_, PyAny>) -> PyResult<Expression> {
    let name = value.get_type().name()?;
    let get = |name: &str| value.getattr(name);
    Ok(match name.to_str()? {
        "Term" => Expression::Term { term: encode(&get("term")?)?, weight: get("weight")?.extract()? },
        "Phrase" => Expression::Phrase {
            terms: get("terms")?.cast::<PyTuple>()?.iter().map(|term| encode(&term)).collect::<PyResult<_>>()?,
            offsets: get("offsets")?.extract()?,
            weight: get("weight")?.extract()?,
        },
        "Prefix" => Expression::Prefix { prefix: encode(&get("prefix")?)?, limit: get("limit")?.extract()? },
        "And" => Expression::And(parse_all(&get("parts")?)?),
        "Or" => Expression::Or(parse_all(&get("parts")?)?),
        "Not" => Expression::Not(Box::new(parse_expression(&get("part")?)?)),
        "Filter" => {
            let facet: String = get("facet")?.extract()?;
            let value = String::from_utf8_lossy(&encode(&get("value")?)?).into_owned();
            match value_beginning(&facet, &value) {
                Some(prefix) => Expression::Prefix { prefix: prefix.into_bytes(), limit: VALUE_TERMS },
                None => Expression::Filter { facet, value },
            }
        }
        "Dates" => Expression::Dates { low: get("low")?.extract()?, high: get("high")?.extract()? },
        "Ids" => Expression::Ids(get("ids")?.extract()?),
        "Everything" => Expression::Everything,
        "Positioned" => Expression::Positioned,
        other => return Err(Error::Value(format!("{other} is no expression")).into()),
    })
}

/// Of some words, the places of those at most so many edits of bytes away from one, and their distances.
#[pyfunction]
pub fn words_near(word: PyBackedBytes, words: Vec<PyBackedBytes>, edits: u8) -> Vec<(usize, u8)> {
    let mut distances = Distances::new(&word, edits);
    words.iter().enumerate().filter_map(|(place, other)| Some((place, distances.to(other)?))).collect()
}

/// A hash that never changes: it orders equal scores, on every node alike.
#[pyfunction]
pub fn stable_hash(text: PyBackedBytes) -> u64 {
    hash::stable_hash(&text)
}
