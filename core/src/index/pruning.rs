//! Static pruning by term: postings that weigh far less than the best of their term leave the index.
//!
//! Carmel, Cohen, Fagin, Farchi, Herscovici, Maarek & Soffer (SIGIR 2001, "Static index pruning for information retrieval
//! systems"): of each term, z is the weight of its k-th best posting, and postings that weigh less than ε z go. Here a
//! weight is BM25's part for one document; a term's idf is the same for all of its postings and cancels out. Lengths and
//! norms of documents stay the true ones; df and cf count what is kept. Terms of fields, keys and values stay.

use std::collections::HashMap;
use std::path::Path;

use ahash::RandomState;

use super::FIELD_MARK;
use super::bytes::{Reader, write_varint};
use super::file::{FileWriter, IndexFile};
use super::merge::{Keep, Union};
use super::segment::Segment;
use crate::map::Stamp;
use crate::{Error, Result};

const K1: f64 = 1.2;
const B: f64 = 0.75;

fn weight(tf: u32, length: u32, average: f64) -> f64 {
    let tf = f64::from(tf);
    tf / (tf + K1 * (1.0 - B + B * f64::from(length) / average))
}

/// What the postings of a term have to weigh, where the average document has that length.
#[derive(Default)]
pub struct Thresholds {
    least: HashMap<Vec<u8>, f64, RandomState>,
    average: f64,
    current: Option<f64>,
}

impl Thresholds {
    /// The thresholds of all terms of the text that more than `best` documents have: `share` of the `best`-th weight.
    pub fn learn(segments: &[Segment], share: f64, best: usize) -> Result<Thresholds> {
        let documents: usize = segments.iter().map(|segment| segment.documents).sum();
        let length: u64 = segments.iter().map(|segment| segment.length).sum();
        let average = if documents > 0 && length > 0 { length as f64 / documents as f64 } else { 1.0 };
        let (mut least, mut weights) = (HashMap::default(), Vec::new());
        let mut union = Union::new(segments)?;
        while union.advance()? {
            if union.term.first() == Some(&FIELD_MARK) {
                continue;
            }
            weights.clear();
            for &owner in &union.owners {
                let segment = &segments[owner];
                segment.data.list(union.streams[owner].spans())?.for_each(|doc, tf| {
                    if segment.is_live(doc as usize) {
                        weights.push(weight(tf, segment.data.columns.lengths[doc as usize], average));
                    }
                })?;
            }
            if best > 0 && weights.len() > best {
                let (_, z, _) = weights.select_nth_unstable_by(best - 1, |a, b| b.total_cmp(a));
                least.insert(union.term.clone(), share * *z);
            }
        }
        Ok(Thresholds { least, average, current: None })
    }

    pub fn write(&self, path: &Path) -> Result<Stamp> {
        let mut out = FileWriter::create(path)?;
        let mut terms: Vec<_> = self.least.iter().collect();
        terms.sort_unstable_by_key(|(term, _)| *term);
        let mut bytes = self.average.to_bits().to_le_bytes().to_vec();
        for (term, least) in terms {
            write_varint(&mut bytes, term.len() as u64);
            bytes.extend_from_slice(term);
            bytes.extend_from_slice(&least.to_bits().to_le_bytes());
        }
        out.add("thresholds", &bytes)?;
        out.close()
    }

    pub fn read(path: &Path, stamp: Stamp) -> Result<Thresholds> {
        let file = IndexFile::open(path, stamp)?;
        let mut reader = Reader::new(file.required("thresholds")?);
        let average = f64::from_bits(reader.u64()?);
        let mut least = HashMap::default();
        while !reader.rest.is_empty() {
            let size = reader.varint()? as usize;
            let term = reader.take(size)?.to_vec();
            least.insert(term, f64::from_bits(reader.u64()?));
        }
        if average.is_nan() || average <= 0.0 {
            return Err(Error::Damaged(format!("{} has no average length", path.display())));
        }
        Ok(Thresholds { least, average, current: None })
    }
}

impl Keep for Thresholds {
    fn begin(&mut self, term: &[u8]) -> bool {
        self.current = self.least.get(term).copied();
        self.current.is_some()
    }

    fn keep(&self, tf: u32, length: u32) -> bool {
        self.current.is_none_or(|least| weight(tf, length, self.average) >= least)
    }
}
