//! How a posting list becomes bytes and comes back.
//!
//! ```text
//! varint df, varint cf - df
//! df == 1      varint document                                  (its tf is cf)
//! df < BLOCK   short postings
//! otherwise    uint32 largest tf; for each full block: uint32 last document, uint32 end of its bytes, counted from
//!              the first block; the full blocks; the remaining documents as short postings
//!
//! full block      byte w, byte v, gaps of w bits (`bitpacking`, 128 numbers), tfs
//! short posting   varint 2 * (gap - 1) + (tf > 1), then varint tf - 2 where that is so
//! ```
//!
//! The lowest six bits of v are the width of the largest tf - 1. Without `SPARSE`, tfs - 1 are 128 numbers of that
//! width. With it, 16 bytes have a bit for each document with a tf above 1, and tf - 2 follow for these alone, in that
//! width or, if `LESS` is set, one bit less.

use bitpacking::{BitPacker, BitPacker4x};

use super::bitset::{BitSet, Ones};
use super::bytes::{Reader, cut_short, read_u32, write_varint};
use crate::Result;

pub const BLOCK: usize = 128;
const SPARSE: u8 = 0x80;
const LESS: u8 = 0x40;
const WIDTH: u8 = 0x3F;

pub type Block = [u32; BLOCK];

fn bits(value: u32) -> u8 {
    (32 - value.leading_zeros()) as u8
}

/// Append the list of a term: documents in ascending order, each with its tf, which is at least 1.
pub fn write_list(out: &mut Vec<u8>, docs: &[u32], tfs: &[u32]) {
    debug_assert_eq!(docs.len(), tfs.len());
    let cf: u64 = tfs.iter().map(|&tf| u64::from(tf)).sum();
    write_varint(out, docs.len() as u64);
    write_varint(out, cf - docs.len() as u64);
    if let [doc] = docs {
        write_varint(out, u64::from(*doc));
        return;
    }
    let (mut before, full) = (None, docs.len() / BLOCK);
    if full > 0 {
        out.extend_from_slice(&tfs.iter().copied().max().unwrap_or(1).to_le_bytes());
        let directory = out.len();
        out.resize(directory + 8 * full, 0);
        let first = out.len();
        for block in 0..full {
            let (low, high) = (block * BLOCK, (block + 1) * BLOCK);
            write_block(out, before, &docs[low..high], &tfs[low..high]);
            before = Some(docs[high - 1]);
            let entry = directory + 8 * block;
            let end = (out.len() - first) as u32;
            out[entry..entry + 4].copy_from_slice(&docs[high - 1].to_le_bytes());
            out[entry + 4..entry + 8].copy_from_slice(&end.to_le_bytes());
        }
    }
    let mut next = before.map_or(0, |doc: u32| u64::from(doc) + 1);
    for (&doc, &tf) in docs[full * BLOCK..].iter().zip(&tfs[full * BLOCK..]) {
        write_varint(out, (u64::from(doc) - next) << 1 | u64::from(tf > 1));
        if tf > 1 {
            write_varint(out, u64::from(tf - 2));
        }
        next = u64::from(doc) + 1;
    }
}

fn write_block(out: &mut Vec<u8>, before: Option<u32>, docs: &[u32], tfs: &[u32]) {
    let packer = BitPacker4x::new();
    let mut room = [0u8; 4 * BLOCK];
    let width = packer.num_bits_strictly_sorted(before, docs);
    let mut less = [0u32; BLOCK];
    let (mut several, mut most) = (0usize, 0u32);
    for (to, &tf) in less.iter_mut().zip(tfs) {
        *to = tf - 1;
        several += usize::from(tf > 1);
        most = most.max(tf - 1);
    }
    let (wide, inner) = (bits(most), bits(most.saturating_sub(1)));
    let sparse = 16 + (several * usize::from(inner)).div_ceil(8) < BLOCK * usize::from(wide) / 8;
    let how = if sparse { SPARSE | if inner < wide { LESS } else { 0 } } else { 0 };
    out.extend_from_slice(&[width, wide | how]);
    let size = packer.compress_strictly_sorted(before, docs, &mut room, width);
    out.extend_from_slice(&room[..size]);
    if !sparse {
        let size = packer.compress(&less, &mut room, wide);
        out.extend_from_slice(&room[..size]);
        return;
    }
    let mut flags = [0u8; 16];
    let (mut held, mut filled) = (0u64, 0u32);
    let mut packed = Vec::with_capacity(several * usize::from(inner) / 8 + 1);
    for (place, &value) in less.iter().enumerate().filter(|(_, value)| **value > 0) {
        flags[place >> 3] |= 1 << (place & 7);
        held |= u64::from(value - 1) << filled;
        filled += u32::from(inner);
        while filled >= 8 {
            packed.push(held as u8);
            held >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        packed.push(held as u8);
    }
    out.extend_from_slice(&flags);
    out.extend_from_slice(&packed);
}

/// The list of a term, as it stands in a stream.
#[derive(Clone, Copy)]
pub struct PostingList<'a> {
    pub df: u32,
    pub cf: u64,
    /// An upper bound of the tf in any document.
    pub max_tf: u32,
    directory: &'a [u8],
    blocks: &'a [u8],
}

/// What the directory says of a block.
#[derive(Clone, Copy)]
struct Entry {
    last: u32,
    end: usize,
}

impl<'a> PostingList<'a> {
    pub fn parse(entry: &'a [u8]) -> Result<PostingList<'a>> {
        let mut reader = Reader::new(entry);
        let df = u32::try_from(reader.varint()?).map_err(|_| cut_short())?;
        let cf = u64::from(df) + reader.varint()?;
        let mut max_tf = u32::try_from(cf.saturating_sub(u64::from(df)) + 1).unwrap_or(u32::MAX);
        let mut directory: &[u8] = &[];
        if df as usize >= BLOCK {
            max_tf = reader.u32()?;
            directory = reader.take(df as usize / BLOCK * 8)?;
        }
        Ok(PostingList { df, cf, max_tf, directory, blocks: reader.rest })
    }

    fn full(&self) -> usize {
        self.directory.len() / 8
    }

    /// The number of blocks, the last of which may not be full.
    pub fn blocks(&self) -> usize {
        (self.df as usize).div_ceil(BLOCK)
    }

    fn entry(&self, block: usize) -> Entry {
        Entry { last: read_u32(self.directory, 8 * block), end: read_u32(self.directory, 8 * block + 4) as usize }
    }

    /// The last document of a block, where that is known without decoding it.
    #[inline]
    pub fn last(&self, block: usize) -> Option<u32> {
        (block < self.full()).then(|| self.entry(block).last)
    }

    fn bytes(&self, block: usize) -> &'a [u8] {
        let begin = if block == 0 { 0 } else { self.entry(block - 1).end };
        let end = if block < self.full() { self.entry(block).end } else { self.blocks.len() };
        &self.blocks[begin..end]
    }

    /// Decode the documents of a block; their number.
    pub fn docs(&self, block: usize, docs: &mut Block) -> Result<usize> {
        if block >= self.full() {
            return self.short(block, docs, None);
        }
        let before = (block > 0).then(|| self.entry(block - 1).last);
        let bytes = self.bytes(block);
        BitPacker4x::new().decompress_strictly_sorted(before, &bytes[2..], docs, bytes[0]);
        Ok(BLOCK)
    }

    /// Decode the tfs of a block.
    pub fn tfs(&self, block: usize, tfs: &mut Block) -> Result<()> {
        if block >= self.full() {
            let mut docs = [0; BLOCK];
            return self.short(block, &mut docs, Some(tfs)).map(drop);
        }
        let bytes = self.bytes(block);
        let (how, rest) = (bytes[1], &bytes[2 + 16 * usize::from(bytes[0])..]);
        if how & SPARSE == 0 {
            BitPacker4x::new().decompress(rest, tfs, how & WIDTH);
            tfs.iter_mut().for_each(|tf| *tf += 1);
            return Ok(());
        }
        tfs.fill(1);
        let (flags, packed) = rest.split_at_checked(16).ok_or_else(cut_short)?;
        let inner = (how & WIDTH).saturating_sub(u8::from(how & LESS != 0));
        let mask = (1u64 << inner) - 1;
        let (mut held, mut filled, mut at) = (0u64, 0u32, 0usize);
        for (word, flags) in flags.chunks_exact(8).enumerate() {
            for bit in Ones(u64::from_le_bytes(flags.try_into().expect("eight bytes"))) {
                while filled < u32::from(inner) {
                    held |= u64::from(*packed.get(at).ok_or_else(cut_short)?) << filled;
                    at += 1;
                    filled += 8;
                }
                tfs[64 * word + bit] = (held & mask) as u32 + 2;
                held >>= inner;
                filled -= u32::from(inner);
            }
        }
        Ok(())
    }

    fn short(&self, block: usize, docs: &mut Block, mut tfs: Option<&mut Block>) -> Result<usize> {
        let mut reader = Reader::new(self.bytes(block));
        let count = self.df as usize - block * BLOCK;
        if self.df == 1 {
            docs[0] = reader.varint()? as u32;
            if let Some(tfs) = tfs {
                tfs[0] = u32::try_from(self.cf).unwrap_or(u32::MAX);
            }
            return Ok(1);
        }
        let mut next = if block == 0 { 0 } else { self.entry(block - 1).last.wrapping_add(1) };
        for (place, to) in docs[..count].iter_mut().enumerate() {
            let value = reader.varint()?;
            *to = next.wrapping_add((value >> 1) as u32);
            next = to.wrapping_add(1);
            let tf = if value & 1 == 1 { (reader.varint()? as u32).saturating_add(2) } else { 1 };
            if let Some(tfs) = tfs.as_deref_mut() {
                tfs[place] = tf;
            }
        }
        Ok(count)
    }

    /// Decode a block; the number of its documents.
    #[inline]
    pub fn decode(&self, block: usize, docs: &mut Block, tfs: &mut Block) -> Result<usize> {
        if block >= self.full() {
            return self.short(block, docs, Some(tfs));
        }
        self.tfs(block, tfs)?;
        self.docs(block, docs)
    }

    /// Call `f` with each document and its tf.
    pub fn for_each(&self, mut f: impl FnMut(u32, u32)) -> Result<()> {
        let (mut docs, mut tfs) = ([0; BLOCK], [0; BLOCK]);
        for block in 0..self.blocks() {
            let count = self.decode(block, &mut docs, &mut tfs)?;
            docs[..count].iter().zip(&tfs).for_each(|(&doc, &tf)| f(doc, tf));
        }
        Ok(())
    }

    /// Call `f` with each of some documents that the list holds, and its tf. Blocks without any are not decoded.
    pub fn for_each_in(&self, wanted: &BitSet, mut f: impl FnMut(u32, u32)) -> Result<()> {
        let (mut docs, mut tfs) = ([0; BLOCK], [0; BLOCK]);
        let mut next = 0u32;
        for block in 0..self.blocks() {
            if let Some(last) = self.last(block) {
                let skip = !wanted.any_in(next as usize, last as usize + 1);
                next = last.saturating_add(1);
                if skip {
                    continue;
                }
            }
            let count = self.docs(block, &mut docs)?;
            if docs[..count].iter().any(|&doc| wanted.contains(doc as usize)) {
                self.tfs(block, &mut tfs)?;
                for (&doc, &tf) in docs[..count].iter().zip(&tfs) {
                    if wanted.contains(doc as usize) {
                        f(doc, tf);
                    }
                }
            }
        }
        Ok(())
    }

    /// Call `f` with each document.
    pub fn for_each_doc(&self, mut f: impl FnMut(u32)) -> Result<()> {
        let mut docs = [0; BLOCK];
        for block in 0..self.blocks() {
            let count = self.docs(block, &mut docs)?;
            docs[..count].iter().for_each(|&doc| f(doc));
        }
        Ok(())
    }

    /// The tf of a document; 0 if the list does not hold it.
    pub fn tf(&self, doc: u32) -> Result<u32> {
        let mut docs = [0; BLOCK];
        let block = self.directory.chunks_exact(8).take_while(|entry| read_u32(entry, 0) < doc).count();
        if block == self.blocks() {
            return Ok(0);
        }
        let count = self.docs(block, &mut docs)?;
        let Ok(place) = docs[..count].binary_search(&doc) else { return Ok(0) };
        let mut tfs = [0; BLOCK];
        self.tfs(block, &mut tfs)?;
        Ok(tfs[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(docs: &[u32], tfs: &[u32]) {
        let mut out = Vec::new();
        write_list(&mut out, docs, tfs);
        let list = PostingList::parse(&out).unwrap();
        let mut found = Vec::new();
        list.for_each(|doc, tf| found.push((doc, tf))).unwrap();
        let expected: Vec<_> = docs.iter().copied().zip(tfs.iter().copied()).collect();
        assert_eq!(found, expected);
        assert_eq!((list.df as usize, list.cf), (docs.len(), tfs.iter().map(|&tf| u64::from(tf)).sum()));
        assert!(tfs.iter().all(|&tf| tf <= list.max_tf));
        for (doc, tf) in expected.iter().step_by(17) {
            assert_eq!(list.tf(*doc).unwrap(), *tf);
        }
        assert_eq!(list.tf(docs.last().unwrap() + 1).unwrap(), 0);
    }

    #[test]
    fn lists_of_any_size_come_back() {
        let mut seed = 7u64;
        let mut random = move || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as u32
        };
        for size in [1usize, 2, 127, 128, 129, 255, 256, 1000] {
            for (gap, most) in [(1, 1), (3, 2), (1000, 3), (70_000, 1000), (2, 70_000)] {
                let mut doc = random() % 5;
                let (mut docs, mut tfs) = (Vec::new(), Vec::new());
                for _ in 0..size {
                    docs.push(doc);
                    doc += 1 + random() % gap;
                    tfs.push(if random() % 3 == 0 { 1 + random() % most } else { 1 });
                }
                check(&docs, &tfs);
            }
        }
        check(&[u32::MAX - 1], &[u32::MAX]);
    }

    #[test]
    fn damaged_bytes_do_not_loop() {
        let mut out = Vec::new();
        write_list(&mut out, &[3, 9, 10], &[1, 5, 1]);
        for cut in 0..out.len() {
            if let Ok(list) = PostingList::parse(&out[..cut]) {
                let _ = list.for_each(|_, _| ());
            }
        }
    }
}
