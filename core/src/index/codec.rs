//! How a posting list becomes bytes and comes back.
//!
//! ```text
//! varint df, varint cf - df
//! df == 1      varint document                       (its tf is cf)
//! otherwise    varint largest tf, if df >= BLOCK; blocks of BLOCK postings, the last one of those that remain
//! block        packed gaps - 1, packed tfs - 1
//! packed       byte width + RAISED if any number is raised; then a byte: how often; numbers of that width;
//!              a byte for each raise: the place of a number to which 2^width is added
//! ```
//!
//! So a few large numbers do not widen the others (patched frame of reference: Zukowski, Héman, Nes & Boncz 2006). A full
//! block is packed by `bitpacking`, 128 numbers together.

use bitpacking::{BitPacker, BitPacker4x};

use super::bitset::BitSet;
use super::bytes::{Reader, bits, cut_short, write_bits, write_varint};
use crate::Result;

pub const BLOCK: usize = 128;
const RAISED: u8 = 0x80;
/// How far below the width of the largest number widths are tried.
const TRIED: u32 = 7;

pub type Block = [u32; BLOCK];

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
    if docs.len() >= BLOCK {
        write_varint(out, u64::from(tfs.iter().copied().max().unwrap_or(1)));
    }
    let (mut numbers, mut next) = ([0; BLOCK], 0);
    for (docs, tfs) in docs.chunks(BLOCK).zip(tfs.chunks(BLOCK)) {
        for (number, &doc) in numbers.iter_mut().zip(docs) {
            *number = doc - next;
            next = doc.wrapping_add(1);
        }
        write_packed(out, &numbers[..docs.len()]);
        numbers.iter_mut().zip(tfs).for_each(|(number, &tf)| *number = tf - 1);
        write_packed(out, &numbers[..docs.len()]);
    }
}

fn write_packed(out: &mut Vec<u8>, numbers: &[u32]) {
    let widest = bits(u64::from(numbers.iter().copied().max().unwrap_or(0)));
    let raises = |width: u32| numbers.iter().map(|&number| u64::from(number) >> width).sum::<u64>();
    let size = |width: u32| (numbers.len() * width as usize).div_ceil(8) as u64 + raises(width);
    let narrow = (widest.saturating_sub(TRIED)..widest).filter(|&width| raises(width) <= 255);
    // One byte more says how many there are.
    let best = narrow.min_by_key(|&width| size(width)).filter(|&width| size(width) + 1 < size(widest));
    let width = best.unwrap_or(widest);
    out.push(width as u8 | if best.is_some() { RAISED } else { 0 });
    if best.is_some() {
        out.push(raises(width) as u8);
    }
    let low = |number: u32| (u64::from(number) & ((1 << width) - 1)) as u32;
    if numbers.len() == BLOCK {
        let (mut lows, mut room) = ([0; BLOCK], [0u8; 4 * BLOCK]);
        lows.iter_mut().zip(numbers).for_each(|(to, &number)| *to = low(number));
        let size = BitPacker4x::new().compress(&lows, &mut room, width as u8);
        out.extend_from_slice(&room[..size]);
    } else {
        write_bits(out, numbers.iter().map(|&number| u64::from(low(number))), width);
    }
    for (place, &number) in numbers.iter().enumerate() {
        out.extend(std::iter::repeat_n(place as u8, (u64::from(number) >> width) as usize));
    }
}

/// Packed numbers, as they stand in a list.
#[derive(Clone, Copy, Default)]
struct Packed<'a> {
    width: u32,
    numbers: &'a [u8],
    raised: &'a [u8],
}

impl<'a> Packed<'a> {
    fn read(reader: &mut Reader<'a>, count: usize) -> Result<Packed<'a>> {
        let head = reader.take(1)?[0];
        let raises = if head & RAISED != 0 { usize::from(reader.take(1)?[0]) } else { 0 };
        let width = u32::from(head & !RAISED);
        if width > 32 {
            return Err(cut_short());
        }
        let numbers = reader.take((count * width as usize).div_ceil(8))?;
        Ok(Packed { width, numbers, raised: reader.take(raises)? })
    }

    fn decode(&self, count: usize, out: &mut Block) -> Result<()> {
        if count == BLOCK {
            BitPacker4x::new().decompress(self.numbers, out, self.width as u8);
        } else {
            let mut room = out.iter_mut();
            Reader::new(self.numbers).bits(self.width, count, |number| {
                room.next().into_iter().for_each(|to| *to = number as u32);
            })?;
        }
        let raise = 1u32.checked_shl(self.width).unwrap_or(0);
        for &place in self.raised {
            let number = &mut out[usize::from(place) % BLOCK];
            *number = number.wrapping_add(raise);
        }
        Ok(())
    }
}

/// The list of a term, as it stands in a stream.
#[derive(Clone, Copy)]
pub struct PostingList<'a> {
    pub df: u32,
    pub cf: u64,
    /// An upper bound of the tf in any document.
    pub max_tf: u32,
    /// How many documents there are: the list holds none beyond them.
    size: u32,
    bytes: &'a [u8],
}

impl<'a> PostingList<'a> {
    /// The list in an entry of a stream, of a segment with `size` documents.
    pub fn parse(entry: &'a [u8], size: usize) -> Result<PostingList<'a>> {
        let mut reader = Reader::new(entry);
        let df = u32::try_from(reader.varint()?).map_err(|_| cut_short())?;
        let more = reader.varint()?;
        let max_tf = if df as usize >= BLOCK { reader.varint()? } else { more.saturating_add(1) };
        let max_tf = u32::try_from(max_tf).unwrap_or(u32::MAX);
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        Ok(PostingList { df, cf: u64::from(df).saturating_add(more), max_tf, size, bytes: reader.rest })
    }

    pub fn blocks(&self) -> Blocks<'a> {
        let tfs = if self.df == 1 { Tfs::One(self.max_tf) } else { Tfs::Packed(Packed::default()) };
        Blocks { reader: Reader::new(self.bytes), left: self.df as usize, next: 0, size: self.size, count: 0, tfs }
    }

    /// Call `f` with each document and its tf.
    pub fn for_each(&self, mut f: impl FnMut(u32, u32)) -> Result<()> {
        let (mut docs, mut tfs, mut blocks) = ([0; BLOCK], [0; BLOCK], self.blocks());
        while blocks.advance(&mut docs)? {
            blocks.tfs(&mut tfs)?;
            docs[..blocks.count].iter().zip(&tfs).for_each(|(&doc, &tf)| f(doc, tf));
        }
        Ok(())
    }

    /// Call `f` with each of some documents that the list holds, and its tf.
    pub fn for_each_in(&self, wanted: &BitSet, mut f: impl FnMut(u32, u32)) -> Result<()> {
        let (mut docs, mut tfs, mut blocks) = ([0; BLOCK], [0; BLOCK], self.blocks());
        while blocks.advance(&mut docs)? {
            let docs = &docs[..blocks.count];
            if docs.iter().any(|&doc| wanted.contains(doc as usize)) {
                blocks.tfs(&mut tfs)?;
                let both = docs.iter().zip(&tfs).filter(|(doc, _)| wanted.contains(**doc as usize));
                both.for_each(|(&doc, &tf)| f(doc, tf));
            }
        }
        Ok(())
    }

    /// Call `f` with each document.
    pub fn for_each_doc(&self, mut f: impl FnMut(u32)) -> Result<()> {
        let (mut docs, mut blocks) = ([0; BLOCK], self.blocks());
        while blocks.advance(&mut docs)? {
            docs[..blocks.count].iter().for_each(|&doc| f(doc));
        }
        Ok(())
    }

    /// The tf of a document; 0 if the list does not hold it.
    pub fn tf(&self, doc: u32) -> Result<u32> {
        let (mut docs, mut tfs, mut blocks) = ([0; BLOCK], [0; BLOCK], self.blocks());
        while blocks.advance(&mut docs)? {
            let docs = &docs[..blocks.count];
            if docs.last() >= Some(&doc) {
                let Ok(place) = docs.binary_search(&doc) else { break };
                blocks.tfs(&mut tfs)?;
                return Ok(tfs[place]);
            }
        }
        Ok(0)
    }
}

/// The blocks of a list one after another. [`Blocks::advance`] moves to the next.
pub struct Blocks<'a> {
    reader: Reader<'a>,
    left: usize,
    /// The least document that can come next.
    next: u32,
    size: u32,
    /// Postings of the current block.
    pub count: usize,
    tfs: Tfs<'a>,
}

/// The tfs of the current block.
enum Tfs<'a> {
    One(u32),
    Packed(Packed<'a>),
}

impl Blocks<'_> {
    /// Decode the documents of the next block, if there is one: ascending, and below the number of documents.
    pub fn advance(&mut self, docs: &mut Block) -> Result<bool> {
        self.count = self.left.min(BLOCK);
        self.left -= self.count;
        match &mut self.tfs {
            Tfs::One(_) if self.count == 1 => docs[0] = self.reader.varint()? as u32,
            Tfs::Packed(tfs) if self.count > 0 => {
                Packed::read(&mut self.reader, self.count)?.decode(self.count, docs)?;
                *tfs = Packed::read(&mut self.reader, self.count)?;
                let mut next = u64::from(self.next);
                for doc in &mut docs[..self.count] {
                    next += u64::from(*doc);
                    *doc = next as u32;
                    next += 1;
                }
                if next > u64::from(self.size) {
                    return Err(cut_short());
                }
                self.next = next as u32;
            }
            _ => return Ok(false),
        }
        if self.count == 1 && docs[0] >= self.size {
            return Err(cut_short());
        }
        Ok(true)
    }

    /// Decode the tfs of the current block.
    pub fn tfs(&self, tfs: &mut Block) -> Result<()> {
        match &self.tfs {
            Tfs::One(tf) => tfs[0] = *tf,
            Tfs::Packed(packed) => {
                packed.decode(self.count, tfs)?;
                tfs.iter_mut().for_each(|tf| *tf = tf.wrapping_add(1));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(docs: &[u32], tfs: &[u32]) {
        let mut out = Vec::new();
        write_list(&mut out, docs, tfs);
        let size = docs.last().map_or(0, |&last| last as usize + 1);
        let list = PostingList::parse(&out, size).unwrap();
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
    fn documents_beyond_the_segment_are_damage() {
        for docs in [vec![7], vec![3, 7], (0..300).collect()] {
            let mut out = Vec::new();
            write_list(&mut out, &docs, &vec![1; docs.len()]);
            let last = docs[docs.len() - 1] as usize;
            assert!(PostingList::parse(&out, last + 1).unwrap().for_each_doc(|_| ()).is_ok());
            assert!(PostingList::parse(&out, last).unwrap().for_each_doc(|_| ()).is_err());
        }
    }

    #[test]
    fn damaged_bytes_do_not_loop() {
        let mut out = Vec::new();
        write_list(&mut out, &[3, 9, 10], &[1, 5, 1]);
        for cut in 0..out.len() {
            if let Ok(list) = PostingList::parse(&out[..cut], 1 << 20) {
                let _ = list.for_each(|_, _| ());
            }
        }
    }
}
