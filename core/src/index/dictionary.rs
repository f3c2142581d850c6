//! The terms of a segment in the order of their bytes, front-coded in blocks.
//!
//! A block has `BLOCK` terms, the last one fewer: for each, a varint of the bytes that it shares with the term before
//! (0 for the first of a block), a varint of those that follow, these, and a varint each of the bytes that its
//! postings and its positions take. `offsets` has three numbers for each block: where its terms, its postings and its
//! positions begin.

use super::bytes::{Reader, read_u32, write_varint};
use crate::{Error, Result};

pub const BLOCK: usize = 16;
const OFFSETS: usize = 24;

/// Writes a dictionary; terms come in ascending order.
#[derive(Default)]
pub struct DictionaryWriter {
    pub names: Vec<u8>,
    pub offsets: Vec<u8>,
    last: Vec<u8>,
    count: usize,
    postings: u64,
    positions: u64,
}

impl DictionaryWriter {
    pub fn add(&mut self, term: &[u8], postings: usize, positions: usize) {
        debug_assert!(self.count == 0 || term > &self.last[..]);
        let shared = if self.count % BLOCK == 0 {
            for offset in [self.names.len() as u64, self.postings, self.positions] {
                self.offsets.extend_from_slice(&offset.to_le_bytes());
            }
            0
        } else {
            term.iter().zip(&self.last).take_while(|(a, b)| a == b).count()
        };
        write_varint(&mut self.names, shared as u64);
        write_varint(&mut self.names, (term.len() - shared) as u64);
        self.names.extend_from_slice(&term[shared..]);
        write_varint(&mut self.names, postings as u64);
        write_varint(&mut self.names, positions as u64);
        self.last.truncate(shared);
        self.last.extend_from_slice(&term[shared..]);
        self.count += 1;
        self.postings += postings as u64;
        self.positions += positions as u64;
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Where the postings and the positions of a term are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spans {
    pub postings: (u64, u64),
    pub positions: (u64, u64),
}

/// A dictionary as written.
#[derive(Clone, Copy)]
pub struct Dictionary<'a> {
    names: &'a [u8],
    offsets: &'a [u8],
    len: usize,
}

impl<'a> Dictionary<'a> {
    /// The dictionary of these bytes, whose offsets are checked: they ascend, and lie within what they refer to.
    pub fn open(names: &'a [u8], offsets: &'a [u8], len: usize, sizes: (usize, usize)) -> Result<Dictionary<'a>> {
        let found = Dictionary { names, offsets, len };
        let damaged = || Error::Damaged("the dictionary of an index file is damaged".into());
        if offsets.len() != len.div_ceil(BLOCK) * OFFSETS {
            return Err(damaged());
        }
        let mut before = [0u64; 3];
        let most = [names.len() as u64, sizes.0 as u64, sizes.1 as u64];
        for block in 0..offsets.len() / OFFSETS {
            for (part, last) in before.iter_mut().enumerate() {
                let offset = found.offset(block, part);
                if offset < *last || offset > most[part] {
                    return Err(damaged());
                }
                *last = offset;
            }
        }
        Ok(found)
    }

    /// The same for a dictionary that was opened before.
    pub fn trusted(names: &'a [u8], offsets: &'a [u8], len: usize) -> Dictionary<'a> {
        Dictionary { names, offsets, len }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn offset(&self, block: usize, part: usize) -> u64 {
        let at = block * OFFSETS + 8 * part;
        u64::from(read_u32(self.offsets, at)) | u64::from(read_u32(self.offsets, at + 4)) << 32
    }

    /// The first term of a block.
    fn head(&self, block: usize) -> Result<&'a [u8]> {
        let mut reader = Reader::new(&self.names[self.offset(block, 0) as usize..]);
        reader.varint()?;
        let size = reader.varint()?;
        reader.take(size as usize)
    }

    /// Terms from the first that is not less than `bound`.
    pub fn from(&self, bound: &[u8]) -> Result<Terms<'a>> {
        let (mut low, mut high) = (0, self.len.div_ceil(BLOCK));
        while low < high {
            let middle = (low + high) / 2;
            if self.head(middle)? <= bound {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let mut terms = self.at(low.saturating_sub(1) * BLOCK)?;
        while terms.advance()? {
            if terms.term() >= bound {
                terms.is_read = true;
                break;
            }
        }
        Ok(terms)
    }

    /// Terms from a number on, which begins a block.
    fn at(&self, number: usize) -> Result<Terms<'a>> {
        let block = number / BLOCK;
        let begin = if number < self.len { self.offset(block, 0) as usize } else { self.names.len() };
        let (postings, positions) =
            if number < self.len { (self.offset(block, 1), self.offset(block, 2)) } else { (0, 0) };
        Ok(Terms {
            reader: Reader::new(&self.names[begin..]),
            next: number,
            len: self.len,
            term: Vec::with_capacity(32),
            spans: Spans { postings: (0, postings), positions: (0, positions) },
            is_read: false,
        })
    }

    pub fn all(&self) -> Result<Terms<'a>> {
        self.at(0)
    }

    /// The number of a term, and where its lists are.
    pub fn find(&self, term: &[u8]) -> Result<Option<(usize, Spans)>> {
        let mut terms = self.from(term)?;
        Ok((terms.advance()? && terms.term() == term).then(|| (terms.number(), terms.spans())))
    }

    /// The terms from a number on.
    pub fn from_number(&self, number: usize) -> Result<Terms<'a>> {
        let mut terms = self.at(number.min(self.len) / BLOCK * BLOCK)?;
        while terms.next < number && terms.advance()? {}
        Ok(terms)
    }

    pub fn term(&self, number: usize) -> Result<Vec<u8>> {
        let mut terms = self.from_number(number)?;
        terms.advance()?;
        Ok(terms.term)
    }
}

/// Terms one after another. [`Terms::advance`] moves to the next; then it has a term.
#[derive(Clone)]
pub struct Terms<'a> {
    reader: Reader<'a>,
    next: usize,
    len: usize,
    term: Vec<u8>,
    spans: Spans,
    /// Whether the next term has been read already.
    is_read: bool,
}

impl Terms<'_> {
    pub fn advance(&mut self) -> Result<bool> {
        if std::mem::take(&mut self.is_read) {
            return Ok(true);
        }
        if self.next >= self.len {
            return Ok(false);
        }
        let shared = self.reader.varint()? as usize;
        let size = self.reader.varint()? as usize;
        if shared > self.term.len() {
            return Err(Error::Damaged("the dictionary of an index file is damaged".into()));
        }
        self.term.truncate(shared);
        self.term.extend_from_slice(self.reader.take(size)?);
        self.spans.postings = (self.spans.postings.1, self.spans.postings.1.saturating_add(self.reader.varint()?));
        self.spans.positions = (self.spans.positions.1, self.spans.positions.1.saturating_add(self.reader.varint()?));
        self.next += 1;
        Ok(true)
    }

    pub fn term(&self) -> &[u8] {
        &self.term
    }

    pub fn number(&self) -> usize {
        self.next - 1
    }

    pub fn spans(&self) -> Spans {
        self.spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_found_by_name_and_number() {
        let mut names: Vec<String> =
            (0..1000).map(|n| format!("{}{}", ["a", "b\u{e9}", "\u{1f}t"][n % 3], n * 7)).collect();
        names.sort();
        let mut writer = DictionaryWriter::default();
        names.iter().enumerate().for_each(|(n, name)| writer.add(name.as_bytes(), n, 2 * n));
        let found = Dictionary::open(&writer.names, &writer.offsets, 1000, (1 << 30, 1 << 30)).unwrap();
        let mut begin = 0;
        for (n, name) in names.iter().enumerate() {
            let (number, spans) = found.find(name.as_bytes()).unwrap().unwrap();
            assert_eq!((number, spans.postings), (n, (begin, begin + n as u64)));
            assert_eq!(spans.positions, (2 * begin, 2 * (begin + n as u64)));
            assert_eq!(found.term(n).unwrap(), name.as_bytes());
            begin += n as u64;
        }
        for missing in ["", "a", "b", "zzz", "\u{1f}t1x"] {
            assert_eq!(found.find(missing.as_bytes()).unwrap(), None);
            let mut terms = found.from(missing.as_bytes()).unwrap();
            for name in names.iter().filter(|name| name.as_bytes() >= missing.as_bytes()) {
                assert!(terms.advance().unwrap());
                assert_eq!(terms.term(), name.as_bytes());
            }
            assert!(!terms.advance().unwrap());
        }
        assert!(Dictionary::open(&[], &[], 0, (0, 0)).unwrap().find(b"a").unwrap().is_none());
    }
}
