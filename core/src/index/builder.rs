//! Documents become a segment.

use std::collections::HashMap;
use std::path::Path;

use ahash::RandomState;

use super::codec::write_list;
use super::columns::{FacetBuilder, FacetColumn, write_numbers};
use super::dictionary::DictionaryWriter;
use super::file::FileWriter;
use super::hash::stable_hash;
use super::records::FIELDS;
use super::segment::FACETS;
use crate::map::Stamp;
use crate::text::analyzer::Analyzer;
use crate::text::terms::{TermId, TermTable};
use crate::{Error, Result};

/// The largest tf that counts.
const MAX_TF: u32 = i32::MAX as u32;

/// What the index takes of a record, besides its terms.
#[derive(Debug, Clone, Copy, Default)]
pub struct Document<'a> {
    pub id: i64,
    pub origin: i64,
    pub identifier: &'a [u8],
    /// Separated by spaces.
    pub sets: &'a str,
    /// Separated by `\0`.
    pub types: &'a str,
    pub languages: &'a str,
    pub resource: u64,
    /// As yyyymmdd, 0 if unknown.
    pub date: u32,
    pub length: u32,
    /// For each posting of the text in its order, as many LEB128 numbers as its tf.
    pub positions: Option<&'a [u8]>,
}

/// Collects documents, the newest version of each, until they are written.
#[derive(Default)]
pub struct SegmentBuilder {
    pub terms: TermTable,
    /// The latest posting of each term: whether the current document has it already.
    latest: Vec<u32>,
    /// Postings, document by document.
    of: Vec<TermId>,
    tfs: Vec<u32>,
    /// For each document where its postings end, and where those of its text do.
    ends: Vec<u32>,
    text_ends: Vec<u32>,
    by_id: HashMap<i64, u32, RandomState>,
    ids: Vec<i64>,
    lengths: Vec<u32>,
    norms: Vec<f64>,
    ties: Vec<u64>,
    resources: Vec<u64>,
    dates: Vec<u32>,
    dead: Vec<bool>,
    facets: [Vec<String>; 4],
    positions: Vec<Option<Box<[u8]>>>,
    imported: Imported,
}

/// The numbers here of an analyser's terms, of the text and of each field.
#[derive(Default)]
struct Imported {
    generation: u64,
    text: Vec<TermId>,
    fields: [Vec<TermId>; FIELDS.len()],
    name: Vec<u8>,
}

const UNKNOWN: TermId = TermId::MAX;

impl SegmentBuilder {
    /// Documents that would be written.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// About how many bytes of memory this takes.
    pub fn memory(&self) -> usize {
        self.terms.memory() + 4 * self.latest.len() + 8 * self.of.len() + 250 * self.ids.len()
    }

    /// The number of an analyser's term here, of the text or of a field.
    pub fn import(&mut self, analyzer: &Analyzer, field: Option<usize>, term: TermId) -> TermId {
        let imported = &mut self.imported;
        if imported.generation != analyzer.generation {
            *imported = Imported { generation: analyzer.generation, ..Imported::default() };
        }
        let known = match field {
            None => &mut imported.text,
            Some(number) => &mut imported.fields[number],
        };
        if known.len() <= term as usize {
            known.resize(analyzer.terms.len(), UNKNOWN);
        }
        let found = &mut known[term as usize];
        if *found == UNKNOWN {
            imported.name.clear();
            imported.name.extend_from_slice(field.map_or("", |number| FIELDS[number].1).as_bytes());
            imported.name.extend_from_slice(analyzer.terms.get(term));
            *found = self.terms.intern(&imported.name);
        }
        *found
    }

    /// Forget the document of a record, if there is one.
    pub fn remove(&mut self, id: i64) {
        if let Some(doc) = self.by_id.remove(&id) {
            self.dead[doc as usize] = true;
        }
    }

    /// Add the newest version of a record. `text` are its terms with their tfs, `fields` the terms of its fields and
    /// keys, which count for no norm.
    pub fn add(
        &mut self,
        document: &Document,
        text: impl IntoIterator<Item = (TermId, u32)>,
        fields: impl IntoIterator<Item = (TermId, u32)>,
    ) -> Result<()> {
        self.latest.resize(self.terms.len(), 0);
        self.post(text, true);
        let begin = self.ends.last().map_or(0, |&end| end as usize);
        let text_end = self.of.len();
        self.norms.push(norm(&self.tfs[begin..text_end]));
        self.post(fields, false);
        if self.of.len() >= u32::MAX as usize {
            return Err(Error::Value("too many postings for one segment: commit more often".into()));
        }
        self.remove(document.id);
        self.by_id.insert(document.id, self.ids.len() as u32);
        self.ends.push(self.of.len() as u32);
        self.text_ends.push(text_end as u32);
        self.ids.push(document.id);
        self.lengths.push(document.length);
        self.ties.push(stable_hash(document.identifier));
        self.resources.push(document.resource);
        self.dates.push(document.date);
        self.dead.push(false);
        let origin = document.origin.to_string();
        let facets = [&origin[..], document.types, document.languages, document.sets];
        self.facets.iter_mut().zip(facets).for_each(|(column, value)| column.push(value.to_owned()));
        self.positions.push(document.positions.map(Box::from));
        Ok(())
    }

    /// Add postings of the current document. A term of the text that comes twice adds up; one of fields counts once.
    fn post(&mut self, terms: impl IntoIterator<Item = (TermId, u32)>, adds_up: bool) {
        let begin = self.ends.last().copied().unwrap_or(0);
        for (term, tf) in terms {
            // `latest` holds the posting's number plus one; 0 for none.
            let latest = &mut self.latest[term as usize];
            if *latest > begin {
                if adds_up {
                    let held = &mut self.tfs[*latest as usize - 1];
                    *held = held.saturating_add(tf).min(MAX_TF);
                }
                continue;
            }
            self.of.push(term);
            self.tfs.push(tf.clamp(1, MAX_TF));
            *latest = self.of.len() as u32;
        }
    }

    /// Write the segment.
    pub fn write(&self, path: &Path) -> Result<Stamp> {
        let alive: Vec<usize> = (0..self.ids.len()).filter(|&doc| !self.dead[doc]).collect();
        let mut out = FileWriter::create(path)?;
        let lists = Inverted::new(self, &alive);
        lists.write(self, &mut out)?;
        let numbers = |f: &dyn Fn(usize) -> u64| write_numbers(&alive.iter().map(|&doc| f(doc)).collect::<Vec<_>>());
        out.add("id", &numbers(&|doc| self.ids[doc] as u64))?;
        out.add("length", &numbers(&|doc| u64::from(self.lengths[doc])))?;
        out.add("norm", &numbers(&|doc| self.norms[doc].to_bits()))?;
        out.add("tie", &numbers(&|doc| self.ties[doc]))?;
        out.add("resource", &numbers(&|doc| self.resources[doc]))?;
        out.add("date", &numbers(&|doc| u64::from(self.dates[doc])))?;
        for (name, column) in FACETS.iter().zip(self.facet_columns(&alive)) {
            out.add(&format!("facet:{name}"), &column.write())?;
        }
        out.close()
    }

    fn facet_columns(&self, alive: &[usize]) -> [FacetColumn; FACETS.len()] {
        let mut builders: [FacetBuilder; FACETS.len()] = Default::default();
        for &doc in alive {
            for (number, separator) in ['\0', '\0', '\0', ' '].into_iter().enumerate() {
                builders[number].add(self.facets[number][doc].split(separator));
            }
            let year = self.dates[doc] / 10_000;
            builders[4].add((year > 0).then(|| format!("{year:04}")).as_deref().into_iter());
        }
        builders.map(FacetBuilder::finish)
    }
}

/// sqrt(Σ (1 + ln tf)²), summed by ascending tf, as whoever states it elsewhere does.
fn norm(tfs: &[u32]) -> f64 {
    let mut ordered = tfs.to_vec();
    ordered.sort_unstable();
    let mut squares = 0.0;
    for alike in ordered.chunk_by(|a, b| a == b) {
        let weight = 1.0 + f64::from(alike[0]).ln();
        squares += alike.len() as f64 * (weight * weight);
    }
    squares.sqrt()
}

/// Postings in the order of terms, then of documents.
struct Inverted {
    /// Terms that some document has, in the order of their bytes, and where the postings of each end.
    order: Vec<TermId>,
    ends: Vec<usize>,
    docs: Vec<u32>,
    tfs: Vec<u32>,
    /// The number of each posting among all of the builder; empty where no document has positions.
    sources: Vec<u32>,
}

impl Inverted {
    fn new(from: &SegmentBuilder, alive: &[usize]) -> Inverted {
        let mut df = vec![0u32; from.terms.len()];
        let postings = |doc: usize| {
            let begin = if doc == 0 { 0 } else { from.ends[doc - 1] as usize };
            begin..from.ends[doc] as usize
        };
        for &doc in alive {
            from.of[postings(doc)].iter().for_each(|&term| df[term as usize] += 1);
        }
        let mut order: Vec<TermId> = (0..df.len() as u32).filter(|&term| df[term as usize] > 0).collect();
        order.sort_unstable_by(|&a, &b| from.terms.get(a).cmp(from.terms.get(b)));
        let (mut cursors, mut ends, mut total) = (vec![0usize; df.len()], Vec::with_capacity(order.len()), 0);
        for &term in &order {
            cursors[term as usize] = total;
            total += df[term as usize] as usize;
            ends.push(total);
        }
        let positional = alive.iter().any(|&doc| from.positions[doc].is_some());
        let (mut docs, mut tfs) = (vec![0; total], vec![0; total]);
        let mut sources = vec![0; if positional { total } else { 0 }];
        for (number, &doc) in alive.iter().enumerate() {
            for at in postings(doc) {
                let cursor = &mut cursors[from.of[at] as usize];
                docs[*cursor] = number as u32;
                tfs[*cursor] = from.tfs[at];
                if positional {
                    sources[*cursor] = at as u32;
                }
                *cursor += 1;
            }
        }
        Inverted { order, ends, docs, tfs, sources }
    }

    fn write(&self, from: &SegmentBuilder, out: &mut FileWriter) -> Result<()> {
        let places = Positions::of(from);
        let (mut names, mut positions, mut list) = (DictionaryWriter::default(), Vec::new(), Vec::new());
        out.begin("postings")?;
        let mut begin = 0;
        for (&term, &end) in self.order.iter().zip(&self.ends) {
            list.clear();
            write_list(&mut list, &self.docs[begin..end], &self.tfs[begin..end]);
            out.append(&list)?;
            let before = positions.len();
            for &source in self.sources.get(begin..end).unwrap_or_default() {
                positions.extend_from_slice(places.slice(from, source as usize));
            }
            names.add(from.terms.get(term), list.len(), positions.len() - before);
            begin = end;
        }
        out.add("names", &names.names)?;
        out.add("offsets", &names.offsets)?;
        out.add("terms", &write_numbers(&[names.len() as u64]))?;
        if !self.sources.is_empty() {
            out.add("positions", &positions)?;
            let placed: Vec<u64> =
                (0..from.ids.len()).filter(|&doc| !from.dead[doc]).map(|doc| u64::from(places.placed[doc])).collect();
            out.add("placed", &write_numbers(&placed))?;
        }
        Ok(())
    }
}

/// Where the positions of each posting are. A document whose positions do not fit its postings has none.
struct Positions {
    placed: Vec<bool>,
    /// The document of each posting, and where its positions end among those of the document.
    docs: Vec<u32>,
    ends: Vec<u32>,
}

impl Positions {
    fn of(from: &SegmentBuilder) -> Positions {
        let mut placed = vec![false; from.ids.len()];
        let (mut docs, mut ends) = (Vec::new(), Vec::new());
        if from.positions.iter().all(Option::is_none) {
            return Positions { placed, docs, ends };
        }
        let mut begin = 0;
        for (doc, placed) in placed.iter_mut().enumerate() {
            let (text_end, end) = (from.text_ends[doc] as usize, from.ends[doc] as usize);
            docs.resize(end, doc as u32);
            let given = from.positions[doc].as_deref().unwrap_or_default();
            let mut at = 0;
            for tf in &from.tfs[begin..text_end] {
                for _ in 0..*tf {
                    while at < given.len() && given[at] >= 0x80 {
                        at += 1;
                    }
                    at += 1;
                    if at > given.len() {
                        break;
                    }
                }
                ends.push(at.min(given.len()) as u32);
            }
            *placed = !given.is_empty() && at == given.len();
            ends.resize(end, given.len() as u32);
            begin = end;
        }
        Positions { placed, docs, ends }
    }

    fn slice<'a>(&self, from: &'a SegmentBuilder, posting: usize) -> &'a [u8] {
        let doc = self.docs[posting] as usize;
        let Some(given) = from.positions[doc].as_deref().filter(|_| self.placed[doc]) else { return &[] };
        let first = doc.checked_sub(1).map_or(0, |before| from.ends[before] as usize);
        let begin = if posting == first { 0 } else { self.ends[posting - 1] as usize };
        &given[begin..self.ends[posting] as usize]
    }
}

/// The terms of a packed vector ("1 acid air\n3 wing") with their tfs. What is not of that form is passed over.
pub fn intern_packed(terms: &mut TermTable, packed: &[u8], out: &mut Vec<(TermId, u32)>) {
    for line in packed.split(|&byte| byte == b'\n') {
        let mut parts = line.split(|&byte| byte == b' ');
        let digits = parts.next().unwrap_or_default();
        let Some(tf) = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u32>().ok()) else { continue };
        if tf > 0 {
            out.extend(parts.filter(|term| !term.is_empty()).map(|term| (terms.intern(term), tf)));
        }
    }
}
