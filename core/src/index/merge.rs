//! Several segments become one, without their deleted documents.
//!
//! Documents keep their order, so lists are joined, not sorted. Terms pass one by one; what stays in memory is the
//! dictionary of the new segment and a few bytes for each document.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, Write};
use std::path::Path;

use super::codec::write_list;
use super::columns::{FacetBuilder, write_numbers};
use super::dictionary::{DictionaryWriter, Terms};
use super::file::{FileWriter, create_private};
use super::segment::{FACETS, Segment};
use crate::map::Stamp;
use crate::{Error, Result};

const GONE: u32 = u32::MAX;
/// Terms after which a merge asks whether it was told to halt.
const HALT_EVERY: usize = 4096;

/// The number that each document of each segment gets in their merge; `GONE` for the deleted.
pub fn renumber(segments: &[Segment]) -> Vec<Vec<u32>> {
    let mut next = 0;
    let number = |segment: &Segment| {
        let fresh = |doc| {
            if !segment.is_live(doc) {
                return GONE;
            }
            next += 1;
            next - 1
        };
        (0..segment.size()).map(fresh).collect()
    };
    segments.iter().map(number).collect()
}

/// Decides which postings stay: of a term, by tf and length.
pub trait Keep {
    /// Begin a term; whether some of its postings may go.
    fn begin(&mut self, term: &[u8]) -> bool;
    fn keep(&self, tf: u32, length: u32) -> bool;
}

/// Keeps everything.
pub struct KeepAll;

impl Keep for KeepAll {
    fn begin(&mut self, _term: &[u8]) -> bool {
        false
    }

    fn keep(&self, _tf: u32, _length: u32) -> bool {
        true
    }
}

/// Write one segment with the live documents of all; `None` if it was told to halt.
pub fn merge(
    segments: &[Segment],
    path: &Path,
    keep: &mut impl Keep,
    is_halted: &dyn Fn() -> bool,
) -> Result<Option<Stamp>> {
    let numbers = renumber(segments);
    let mut out = FileWriter::create(path)?;
    let positional = segments.iter().any(|segment| segment.data.placed.is_some());
    let mut positions = Spool::new(path, positional)?;
    let (mut names, mut list) = (DictionaryWriter::default(), Vec::new());
    let (mut docs, mut tfs) = (Vec::new(), Vec::new());
    out.begin("postings")?;
    let mut union = Union::new(segments)?;
    while union.advance()? {
        if union.count % HALT_EVERY == 0 && is_halted() {
            return Ok(None);
        }
        let choosy = keep.begin(&union.term);
        docs.clear();
        tfs.clear();
        positions.begin();
        for &owner in &union.owners {
            let (segment, numbers, spans) = (&segments[owner], &numbers[owner], union.streams[owner].spans());
            let columns = &segment.data.columns;
            let mut places = segment.data.positions(spans)?;
            segment.data.list(spans)?.for_each(|doc, tf| {
                let doc = doc as usize;
                let number = numbers[doc];
                let stays = number != GONE && (!choosy || keep.keep(tf, columns.lengths[doc]));
                if segment.data.placed.as_ref().is_some_and(|placed| placed.contains(doc)) {
                    let own = take_positions(&mut places, tf);
                    if stays {
                        positions.term.extend_from_slice(own);
                    }
                }
                if stays {
                    docs.push(number);
                    tfs.push(tf);
                }
            })?;
        }
        if docs.is_empty() {
            continue;
        }
        list.clear();
        write_list(&mut list, &docs, &tfs);
        out.append(&list)?;
        names.add(&union.term, list.len(), positions.end()?);
    }
    out.add("names", &names.names)?;
    out.add("offsets", &names.offsets)?;
    out.add("terms", &write_numbers(&[names.len() as u64]))?;
    if positional {
        positions.copy(&mut out)?;
        let has = |segment: &Segment, doc| segment.data.placed.as_ref().is_some_and(|placed| placed.contains(doc));
        out.add("placed", &write_numbers(&live(segments, |segment, doc| u64::from(has(segment, doc)))))?;
    }
    type Column = fn(&Segment, usize) -> u64;
    let columns: [(&str, Column); 6] = [
        ("id", |segment, doc| segment.data.columns.ids[doc] as u64),
        ("length", |segment, doc| u64::from(segment.data.columns.lengths[doc])),
        ("norm", |segment, doc| segment.data.columns.norms[doc].to_bits()),
        ("tie", |segment, doc| segment.data.columns.ties[doc]),
        ("resource", |segment, doc| segment.data.columns.resources[doc]),
        ("date", |segment, doc| u64::from(segment.data.columns.dates[doc])),
    ];
    for (name, column) in columns {
        out.add(name, &write_numbers(&live(segments, column)))?;
    }
    for (number, name) in FACETS.iter().enumerate() {
        let mut builder = FacetBuilder::default();
        for segment in segments {
            let column = segment.data.facet(number)?;
            for doc in (0..segment.size()).filter(|&doc| segment.is_live(doc)) {
                builder.add(column.codes_of(doc).iter().map(|&code| &column.values[code as usize][..]));
            }
        }
        out.add(&format!("facet:{name}"), &builder.finish().write())?;
    }
    out.close().map(Some)
}

fn live(segments: &[Segment], column: impl Fn(&Segment, usize) -> u64) -> Vec<u64> {
    let mut out = Vec::new();
    for segment in segments {
        out.extend((0..segment.size()).filter(|&doc| segment.is_live(doc)).map(|doc| column(segment, doc)));
    }
    out
}

/// The LEB128 numbers of a posting, taken from the front.
fn take_positions<'a>(places: &mut &'a [u8], tf: u32) -> &'a [u8] {
    let (mut at, mut left) = (0, tf);
    while left > 0 && at < places.len() {
        left -= u32::from(places[at] < 0x80);
        at += 1;
    }
    let (own, rest) = places.split_at(at);
    *places = rest;
    own
}

/// The terms of several segments in the order of their bytes, each with the segments that have it.
pub struct Union<'a> {
    pub term: Vec<u8>,
    pub owners: Vec<usize>,
    pub streams: Vec<Terms<'a>>,
    /// Terms so far, without the current one.
    count: usize,
    started: bool,
    alive: Vec<bool>,
}

impl<'a> Union<'a> {
    pub fn new(segments: &'a [Segment]) -> Result<Union<'a>> {
        Union::from(segments, &[])
    }

    /// The terms from the first that is not less than `bound`.
    pub fn from(segments: &'a [Segment], bound: &[u8]) -> Result<Union<'a>> {
        let mut streams = Vec::new();
        let mut alive = Vec::new();
        for segment in segments {
            let mut terms = segment.data.dictionary().from(bound)?;
            alive.push(terms.advance()?);
            streams.push(terms);
        }
        Ok(Union { term: Vec::new(), owners: Vec::new(), streams, count: 0, started: false, alive })
    }

    pub fn advance(&mut self) -> Result<bool> {
        self.count += usize::from(self.started);
        self.started = true;
        for &owner in &self.owners {
            self.alive[owner] = self.streams[owner].advance()?;
        }
        self.owners.clear();
        for (number, stream) in self.streams.iter().enumerate().filter(|(number, _)| self.alive[*number]) {
            let least = self.owners.first().map(|&owner| self.streams[owner].term());
            match least.map(|least| stream.term().cmp(least)) {
                Some(std::cmp::Ordering::Greater) => (),
                Some(std::cmp::Ordering::Equal) => self.owners.push(number),
                _ => self.owners = vec![number],
            }
        }
        if let Some(&owner) = self.owners.first() {
            self.term.clear();
            self.term.extend_from_slice(self.streams[owner].term());
        }
        Ok(!self.owners.is_empty())
    }
}

/// Positions, collected in a file until the postings before them are complete.
struct Spool {
    file: Option<BufWriter<File>>,
    path: std::path::PathBuf,
    /// The positions of the current term.
    term: Vec<u8>,
}

impl Spool {
    fn new(beside: &Path, needed: bool) -> Result<Spool> {
        let path = beside.with_extension("positions");
        let file = if needed { Some(BufWriter::new(create_private(&path)?)) } else { None };
        Ok(Spool { file, path, term: Vec::new() })
    }

    fn begin(&mut self) {
        self.term.clear();
    }

    fn end(&mut self) -> Result<usize> {
        if let Some(file) = &mut self.file {
            file.write_all(&self.term).map_err(|error| Error::io(&self.path, &error))?;
        }
        Ok(self.term.len())
    }

    fn copy(&mut self, out: &mut FileWriter) -> Result<()> {
        out.begin("positions")?;
        let failed = |error: std::io::Error| Error::io(&self.path, &error);
        let Some(buffer) = &mut self.file else { return Ok(()) };
        buffer.flush().map_err(failed)?;
        let file = buffer.get_mut();
        file.rewind().map_err(failed)?;
        let mut piece = vec![0; 1 << 18];
        loop {
            let count = file.read(&mut piece).map_err(failed)?;
            if count == 0 {
                return Ok(());
            }
            out.append(&piece[..count])?;
        }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
