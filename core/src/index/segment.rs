//! An immutable part of the index, and the documents that have been deleted from it.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use super::bitset::BitSet;
use super::codec::PostingList;
use super::columns::{FacetColumn, read_numbers, write_numbers};
use super::dictionary::{Dictionary, Spans};
use super::file::{FileWriter, IndexFile};
use crate::map::Stamp;
use crate::{Error, Result};

/// The facets that are columns; others are read back from the terms of values.
pub const FACETS: [&str; 5] = ["origin", "type", "language", "set", "year"];

/// The columns of all documents, deleted ones too.
pub struct Columns {
    pub ids: Vec<i64>,
    pub lengths: Vec<u32>,
    pub norms: Vec<f64>,
    pub ties: Vec<u64>,
    pub resources: Vec<u64>,
    pub dates: Vec<u32>,
}

/// What a file holds, with what is worked out of it when it is first needed.
pub struct SegmentData {
    file: IndexFile,
    pub size: usize,
    terms: usize,
    pub columns: Columns,
    facets: [OnceLock<FacetColumn>; FACETS.len()],
    by_id: OnceLock<Vec<u32>>,
    pub derived: super::derived::Derived,
    /// Documents whose positions are known; `None` if there is none.
    pub placed: Option<BitSet>,
}

impl SegmentData {
    pub fn open(path: &Path, stamp: Stamp) -> Result<SegmentData> {
        let file = IndexFile::open(path, stamp)?;
        let numbers = |name: &str| read_numbers(file.required(name)?);
        let columns = Columns {
            ids: numbers("id")?.into_iter().map(|id| id as i64).collect(),
            lengths: numbers("length")?.into_iter().map(|length| length as u32).collect(),
            norms: numbers("norm")?.into_iter().map(f64::from_bits).collect(),
            ties: numbers("tie")?,
            resources: numbers("resource")?,
            dates: numbers("date")?.into_iter().map(|date| date as u32).collect(),
        };
        let size = columns.ids.len();
        let alike = [columns.lengths.len(), columns.norms.len(), columns.ties.len(), columns.dates.len()];
        let terms = read_numbers(file.required("terms")?)?.first().copied().unwrap_or(0) as usize;
        if alike.iter().any(|&other| other != size) || columns.resources.len() != size {
            return Err(Error::Damaged(format!("{}: its columns differ in size", path.display())));
        }
        let placed = match file.section("placed") {
            None => None,
            Some(bytes) => {
                let flags = read_numbers(bytes)?;
                if flags.len() != size {
                    return Err(Error::Damaged(format!("{}: its columns differ in size", path.display())));
                }
                Some(BitSet::collect(size, |doc| flags[doc] != 0))
            }
        };
        let data = SegmentData {
            file,
            size,
            terms,
            columns,
            facets: Default::default(),
            by_id: OnceLock::new(),
            derived: Default::default(),
            placed,
        };
        data.open_dictionary()?;
        Ok(data)
    }

    fn open_dictionary(&self) -> Result<Dictionary<'_>> {
        let sizes = (self.file.required("postings")?.len(), self.file.section("positions").map_or(0, <[u8]>::len));
        Dictionary::open(self.file.required("names")?, self.file.required("offsets")?, self.terms, sizes)
    }

    pub fn dictionary(&self) -> Dictionary<'_> {
        // It was checked when the segment was opened.
        Dictionary::trusted(
            self.file.section("names").unwrap_or_default(),
            self.file.section("offsets").unwrap_or_default(),
            self.terms,
        )
    }

    pub fn list(&self, spans: Spans) -> Result<PostingList<'_>> {
        PostingList::parse(span(self.file.required("postings")?, spans.postings)?, self.size)
    }

    pub fn positions(&self, spans: Spans) -> Result<&[u8]> {
        match self.file.section("positions") {
            None => Ok(&[]),
            Some(bytes) => span(bytes, spans.positions),
        }
    }

    pub fn facet(&self, number: usize) -> Result<&FacetColumn> {
        if let Some(column) = self.facets[number].get() {
            return Ok(column);
        }
        let bytes = self.file.required(&format!("facet:{}", FACETS[number]))?;
        let column = FacetColumn::read(bytes, self.size)?;
        Ok(self.facets[number].get_or_init(|| column))
    }

    /// The documents in the order of their record ids.
    pub fn by_id(&self) -> &[u32] {
        self.by_id.get_or_init(|| {
            let mut docs: Vec<u32> = (0..self.size as u32).collect();
            docs.sort_unstable_by_key(|&doc| self.columns.ids[doc as usize]);
            docs
        })
    }

    /// The document of a record id, deleted or not.
    pub fn document(&self, id: i64) -> Option<usize> {
        let docs = self.by_id();
        let found = docs.binary_search_by_key(&id, |&doc| self.columns.ids[doc as usize]).ok()?;
        Some(docs[found] as usize)
    }
}

fn span(bytes: &[u8], (begin, end): (u64, u64)) -> Result<&[u8]> {
    bytes
        .get(begin as usize..end as usize)
        .ok_or_else(|| Error::Damaged("the dictionary of an index file is damaged".into()))
}

/// The documents of a segment that have gone, and what they took from df and cf, by term numbers in ascending order.
#[derive(Default, Clone)]
pub struct Deletions {
    pub docs: BitSet,
    pub terms: Vec<(u32, u32, u64)>,
}

impl Deletions {
    pub fn write(&self, path: &Path) -> Result<Stamp> {
        let mut out = FileWriter::create(path)?;
        let docs: Vec<u64> = self.docs.iter().map(|doc| doc as u64).collect();
        out.add("docs", &write_numbers(&docs))?;
        for (name, column) in [("terms", 0), ("df", 1), ("cf", 2)] {
            let values: Vec<u64> =
                self.terms.iter().map(|&(term, df, cf)| [u64::from(term), u64::from(df), cf][column]).collect();
            out.add(name, &write_numbers(&values))?;
        }
        out.close()
    }

    pub fn read(path: &Path, stamp: Stamp, documents: usize) -> Result<Deletions> {
        let file = IndexFile::open(path, stamp)?;
        let numbers = |name: &str| read_numbers(file.required(name)?);
        let mut docs = BitSet::empty(documents);
        for doc in numbers("docs")? {
            if doc >= documents as u64 {
                return Err(Error::Damaged(format!("{} names a document that there is not", path.display())));
            }
            docs.insert(doc as usize);
        }
        let (terms, df, cf) = (numbers("terms")?, numbers("df")?, numbers("cf")?);
        if terms.len() != df.len() || df.len() != cf.len() {
            return Err(Error::Damaged(format!("{}: its columns differ in size", path.display())));
        }
        let terms = terms.iter().zip(df).zip(cf).map(|((&term, df), cf)| (term as u32, df as u32, cf)).collect();
        Ok(Deletions { docs, terms })
    }
}

/// A segment with its deletions up to a commit. Documents of hidden origins count as deleted.
#[derive(Clone)]
pub struct Segment {
    pub data: Arc<SegmentData>,
    pub deletions: Option<Arc<Deletions>>,
    /// Live documents, and the tokens that they have together.
    pub documents: usize,
    pub length: u64,
    /// This segment without the documents of some origins; worked out once for each set of them.
    hiding: Arc<Mutex<Hidings>>,
}

type Hidings = Vec<(Vec<String>, Segment)>;
/// Sets of hidden origins that are kept for a segment.
const MOST_HIDINGS: usize = 8;

impl Segment {
    pub fn new(data: Arc<SegmentData>, deletions: Option<Arc<Deletions>>) -> Segment {
        let lengths = &data.columns.lengths;
        let (mut documents, mut length) = (data.size, lengths.iter().map(|&length| u64::from(length)).sum::<u64>());
        if let Some(deletions) = &deletions {
            for doc in deletions.docs.iter() {
                documents -= 1;
                length -= u64::from(lengths[doc]);
            }
        }
        Segment { data, deletions, documents, length, hiding: Arc::default() }
    }

    pub fn size(&self) -> usize {
        self.data.size
    }

    pub fn gone(&self) -> Option<&BitSet> {
        self.deletions.as_ref().map(|deletions| &deletions.docs)
    }

    pub fn is_live(&self, doc: usize) -> bool {
        self.gone().is_none_or(|gone| !gone.contains(doc))
    }

    /// The live documents among these.
    pub fn retain_live(&self, docs: &mut BitSet) {
        if let Some(gone) = self.gone() {
            docs.subtract(gone);
        }
    }

    /// Exact df and cf of a term, without the deleted documents.
    pub fn frequencies(&self, number: usize, list: &PostingList) -> (u32, u64) {
        if let Some(deletions) = &self.deletions
            && let Ok(found) = deletions.terms.binary_search_by_key(&(number as u32), |&(term, _, _)| term)
        {
            let (_, df, cf) = deletions.terms[found];
            return (list.df.saturating_sub(df), list.cf.saturating_sub(cf));
        }
        (list.df, list.cf)
    }

    /// The deletions with these documents added to them.
    pub fn deleting(&self, docs: &BitSet) -> Result<Deletions> {
        let mut fresh = docs.clone();
        self.retain_live(&mut fresh);
        let (mut terms, dictionary) = (Vec::new(), self.data.dictionary());
        let mut names = dictionary.all()?;
        while names.advance()? {
            let list = self.data.list(names.spans())?;
            let (mut df, mut cf) = (0u32, 0u64);
            list.for_each_in(&fresh, |_, tf| {
                df += 1;
                cf += u64::from(tf);
            })?;
            if df > 0 {
                terms.push((names.number() as u32, df, cf));
            }
        }
        if let Some(before) = &self.deletions {
            fresh.unite(&before.docs);
            let mut sums: std::collections::BTreeMap<u32, (u32, u64)> =
                before.terms.iter().map(|&(term, df, cf)| (term, (df, cf))).collect();
            for (term, df, cf) in terms {
                let sum = sums.entry(term).or_default();
                *sum = (sum.0 + df, sum.1 + cf);
            }
            terms = sums.into_iter().map(|(term, (df, cf))| (term, df, cf)).collect();
        }
        Ok(Deletions { docs: fresh, terms })
    }

    /// This segment as if it had no documents of these origins; `None` if it has none anyway.
    pub fn hiding(&self, origins: &[String]) -> Result<Option<Segment>> {
        let lock = || self.hiding.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, found)) = lock().iter().find(|(own, _)| own == origins) {
            return Ok(Some(found.clone()));
        }
        let column = self.data.facet(0)?;
        let hidden: Vec<bool> = column.values.iter().map(|value| origins.contains(value)).collect();
        if !hidden.contains(&true) {
            return Ok(None);
        }
        let mut docs =
            BitSet::collect(self.size(), |doc| column.codes_of(doc).iter().any(|&code| hidden[code as usize]));
        self.retain_live(&mut docs);
        if docs.is_empty() {
            return Ok(None);
        }
        let found = Segment::new(self.data.clone(), Some(Arc::new(self.deleting(&docs)?)));
        let mut kept = lock();
        if kept.len() >= MOST_HIDINGS {
            kept.clear();
        }
        kept.push((origins.to_vec(), found.clone()));
        Ok(Some(found))
    }
}
