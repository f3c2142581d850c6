//! What is worked out of a segment's documents when a search first needs it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use ahash::RandomState;

use super::bitset::BitSet;
use super::dictionary::Dictionary;
use super::facets::ValueColumn;
use super::first_with;
use super::segment::{Columns, Segment};
use crate::Result;
use crate::rank::Class;
use crate::text::accents::without_accents;

/// Classes of documents, by length or by norm.
pub const CLASSES: usize = 8;
/// The share of documents that is below each class but the first.
const BELOW: [f64; CLASSES - 1] = [0.01, 0.03, 0.07, 0.15, 0.3, 0.5, 0.75];

/// `within[c]` has the documents of class c and of those before it; `limits[c]` what bounds their scores.
pub struct Classes {
    pub within: Vec<BitSet>,
    pub limits: [Class; CLASSES],
}

#[derive(Default)]
pub struct Derived {
    by_length: OnceLock<Classes>,
    by_norm: OnceLock<Classes>,
    early: OnceLock<BitSet>,
    values: ByMark<ValueColumn>,
    orders: ByMark<NameOrder>,
    accented: ByMark<Accented>,
}

/// Terms that hold accents, by what they are without.
pub type Accented = HashMap<String, Vec<String>, RandomState>;

/// Values by the mark with which their terms begin.
type ByMark<T> = Mutex<HashMap<Vec<u8>, Arc<T>, RandomState>>;

fn get_or_read<T>(known: &ByMark<T>, mark: &[u8], read: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
    let lock = || known.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(found) = lock().get(mark) {
        return Ok(found.clone());
    }
    let fresh = Arc::new(read()?);
    lock().insert(mark.to_vec(), fresh.clone());
    Ok(fresh)
}

/// For each document its rank among the terms that begin with a mark, and the number of the first of these.
pub struct NameOrder {
    pub ranks: Vec<u32>,
    first: usize,
}

impl NameOrder {
    const NO_NAME: u32 = u32::MAX;

    pub fn read(segment: &Segment, mark: &[u8]) -> Result<NameOrder> {
        let mut order = NameOrder { ranks: vec![NameOrder::NO_NAME; segment.size()], first: 0 };
        let mut terms = segment.data.dictionary().from(mark)?;
        let mut rank = 0;
        while terms.advance()? && terms.term().starts_with(mark) {
            if rank == 0 {
                order.first = terms.number();
            }
            segment.data.list(terms.spans())?.for_each_doc(|doc| order.ranks[doc as usize] = rank)?;
            rank += 1;
        }
        Ok(order)
    }

    /// The name of a rank, comparable across segments: documents without one come last.
    pub fn name(&self, dictionary: &Dictionary, rank: u32) -> Result<(bool, Vec<u8>)> {
        if rank == NameOrder::NO_NAME {
            return Ok((true, Vec::new()));
        }
        Ok((false, dictionary.term(self.first + rank as usize)?))
    }
}

impl Derived {
    pub fn classes(&self, columns: &Columns, by_norm: bool) -> &Classes {
        let longest = || columns.lengths.iter().copied().max().unwrap_or(0);
        if by_norm {
            self.by_norm.get_or_init(|| {
                let norms: Vec<f64> = columns.norms.iter().map(|&norm| if norm > 0.0 { norm } else { 1.0 }).collect();
                classify(&norms, |least| Class { shortest: 0, longest: longest(), least_norm: least })
            })
        } else {
            self.by_length.get_or_init(|| {
                let lengths: Vec<f64> = columns.lengths.iter().map(|&length| f64::from(length)).collect();
                classify(&lengths, |least| Class { shortest: least as u32, longest: longest(), least_norm: 1.0 })
            })
        }
    }

    /// The column of the values whose terms begin with a mark.
    pub fn value_column(&self, mark: &[u8], read: impl FnOnce() -> Result<ValueColumn>) -> Result<Arc<ValueColumn>> {
        get_or_read(&self.values, mark, read)
    }

    /// The order of documents by the terms that begin with a mark.
    pub fn name_order(&self, mark: &[u8], read: impl FnOnce() -> Result<NameOrder>) -> Result<Arc<NameOrder>> {
        get_or_read(&self.orders, mark, read)
    }

    /// The terms with a field's mark, or without any mark, that hold accents.
    pub fn accented(&self, segment: &Segment, mark: &[u8]) -> Result<Arc<Accented>> {
        get_or_read(&self.accented, mark, || {
            let mut found = Accented::default();
            let mut terms = segment.data.dictionary().from(first_with(mark))?;
            while terms.advance()? && terms.term().starts_with(mark) {
                if terms.term().is_ascii() {
                    continue;
                }
                if let Ok(term) = std::str::from_utf8(terms.term()) {
                    let bare = without_accents(term);
                    if bare != term {
                        found.entry(bare).or_default().push(term.to_owned());
                    }
                }
            }
            Ok(found)
        })
    }

    /// The documents whose tie is in the lowest 64th.
    pub fn early(&self, columns: &Columns) -> &BitSet {
        self.early.get_or_init(|| BitSet::collect(columns.ties.len(), |doc| columns.ties[doc] >> 58 == 0))
    }
}

fn classify(values: &[f64], class: impl Fn(f64) -> Class) -> Classes {
    let mut ordered = values.to_vec();
    ordered.sort_unstable_by(f64::total_cmp);
    let mut limits = [class(ordered.first().copied().unwrap_or(0.0)); CLASSES];
    let mut within = Vec::with_capacity(CLASSES);
    for (number, share) in BELOW.iter().enumerate() {
        let place = (share * ordered.len().saturating_sub(1) as f64) as usize;
        let highest = ordered.get(place).copied().unwrap_or(0.0);
        within.push(BitSet::collect(values.len(), |doc| values[doc] <= highest));
        let next = ordered.partition_point(|&value| value <= highest);
        limits[number + 1] = class(ordered.get(next).or(ordered.last()).copied().unwrap_or(0.0));
    }
    within.push(BitSet::full(values.len()));
    Classes { within, limits }
}
