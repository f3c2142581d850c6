//! What is worked out of a segment's documents when a search first needs it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use ahash::RandomState;

use super::bitset::BitSet;
use super::dictionary::Dictionary;
use super::facets::ValueColumn;
use super::first_with;
use super::segment::{Columns, Segment};
use super::top::WINDOW;
use crate::Result;
use crate::rank::Range;
use crate::text::accents::without_accents;

/// Classes of documents by length or by norm: four for each doubling.
pub const CLASSES: usize = 128;
/// The bits of a number that do not tell its class, and the first class, of the number 1.
const LOW_BITS: u32 = 50;
const FIRST: u64 = 1f64.to_bits() >> LOW_BITS;

/// The class of each document, filled up to whole windows; the first and the last class of any.
pub struct Classes {
    pub of: Vec<u8>,
    pub first: u8,
    pub last: u8,
}

impl Classes {
    /// Of norms, or of lengths plus one, so that none is below 1.
    fn new(values: impl ExactSizeIterator<Item = f64>) -> Classes {
        let whole = values.len().next_multiple_of(WINDOW);
        let class = |value: f64| (value.to_bits() >> LOW_BITS).saturating_sub(FIRST).min(CLASSES as u64 - 1) as u8;
        let mut of: Vec<u8> = values.map(class).collect();
        let (first, last) = (of.iter().copied().min().unwrap_or(0), of.iter().copied().max().unwrap_or(0));
        of.resize(whole, 0);
        Classes { of, first, last }
    }
}

/// The lengths and norms of the documents of a class.
pub fn class_limits(class: u8) -> Range {
    let least = |class: u64| f64::from_bits((FIRST + class) << LOW_BITS);
    let (low, high) = (least(u64::from(class)), least(u64::from(class) + 1));
    let longest = if usize::from(class) == CLASSES - 1 { u32::MAX } else { (high.ceil() - 2.0) as u32 };
    Range { least_tf: 1, most_tf: 1, shortest: (low.ceil() - 1.0) as u32, longest, least_norm: low }
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
        if by_norm {
            self.by_norm.get_or_init(|| Classes::new(columns.norms.iter().map(|&norm| norm.max(1.0))))
        } else {
            self.by_length.get_or_init(|| Classes::new(columns.lengths.iter().map(|&length| f64::from(length) + 1.0)))
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
