//! What a segment knows of its documents, column by column: numbers in few bytes, and names that recur.

use super::bytes::{Reader, bits, cut_short, write_bits, write_varint};
use crate::{Error, Result};

/// Numbers that are written together, unless all are equal.
const BLOCK: usize = 128;

/// Write numbers: of each block the least one, and the differences to it in as many bits as the largest needs.
pub fn write_numbers(values: &[u64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + 4 * values.len());
    let block = if values.iter().all(|value| *value == values[0]) { values.len().max(1) } else { BLOCK };
    write_varint(&mut out, values.len() as u64);
    write_varint(&mut out, block as u64);
    for block in values.chunks(block) {
        let least = block.iter().copied().min().unwrap_or(0);
        let width = block.iter().map(|value| bits(value - least)).max().unwrap_or(0);
        write_varint(&mut out, least);
        out.push(width as u8);
        write_bits(&mut out, block.iter().map(|value| value - least), width);
    }
    out
}

/// The numbers that [`write_numbers`] wrote.
pub fn read_numbers(bytes: &[u8]) -> Result<Vec<u64>> {
    let mut reader = Reader::new(bytes);
    let (count, block) = (reader.varint()? as usize, reader.varint()? as usize);
    // A block takes at least two bytes.
    if block == 0 || count > u32::MAX as usize || count.div_ceil(block) > reader.rest.len() / 2 {
        return Err(cut_short());
    }
    let mut out = Vec::with_capacity(count);
    while out.len() < count {
        let (least, width) = (reader.varint()?, u32::from(reader.take(1)?[0]));
        if width > u64::BITS {
            return Err(cut_short());
        }
        reader.bits(width, block.min(count - out.len()), |value| out.push(least.wrapping_add(value)))?;
    }
    if reader.rest.is_empty() { Ok(out) } else { Err(cut_short()) }
}

/// A facet's column: documents have some of `values`, none of them empty.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct FacetColumn {
    pub values: Vec<String>,
    /// Document d has the values numbered `codes[starts[d]..starts[d + 1]]`.
    pub starts: Vec<u32>,
    pub codes: Vec<u32>,
}

impl FacetColumn {
    pub fn codes_of(&self, doc: usize) -> &[u32] {
        &self.codes[self.starts[doc] as usize..self.starts[doc + 1] as usize]
    }

    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write_varint(&mut out, self.values.len() as u64);
        for value in &self.values {
            write_varint(&mut out, value.len() as u64);
            out.extend_from_slice(value.as_bytes());
        }
        let counts: Vec<u64> = self.starts.windows(2).map(|pair| u64::from(pair[1] - pair[0])).collect();
        let codes: Vec<u64> = self.codes.iter().map(|&code| u64::from(code)).collect();
        let counts = write_numbers(&counts);
        write_varint(&mut out, counts.len() as u64);
        out.extend_from_slice(&counts);
        out.extend_from_slice(&write_numbers(&codes));
        out
    }

    pub fn read(bytes: &[u8], documents: usize) -> Result<FacetColumn> {
        let damaged = || Error::Damaged("a facet of an index file is damaged".into());
        let mut reader = Reader::new(bytes);
        let count = reader.varint()? as usize;
        let mut values = Vec::new();
        for _ in 0..count {
            let size = reader.varint()? as usize;
            values.push(String::from_utf8(reader.take(size)?.to_vec()).map_err(|_| damaged())?);
        }
        let size = reader.varint()? as usize;
        let counts = read_numbers(reader.take(size)?)?;
        let codes: Vec<u32> = read_numbers(reader.rest)?.into_iter().map(|code| code as u32).collect();
        let mut starts = Vec::with_capacity(counts.len() + 1);
        let mut at = 0u64;
        starts.push(0);
        for count in counts {
            at = at.saturating_add(count);
            starts.push(u32::try_from(at).map_err(|_| damaged())?);
        }
        if starts.len() != documents + 1
            || at != codes.len() as u64
            || codes.iter().any(|&code| code as usize >= values.len())
        {
            return Err(damaged());
        }
        Ok(FacetColumn { values, starts, codes })
    }
}

/// Builds a [`FacetColumn`] document by document.
#[derive(Default)]
pub struct FacetBuilder {
    numbers: std::collections::HashMap<String, u32, ahash::RandomState>,
    column: FacetColumn,
}

/// Characters of a facet's value; longer ones are cut.
const LONGEST: usize = 200;

impl FacetBuilder {
    /// Add a document with these values, each once.
    pub fn add<'a>(&mut self, values: impl Iterator<Item = &'a str>) {
        let column = &mut self.column;
        if column.starts.is_empty() {
            column.starts.push(0);
        }
        let begin = column.codes.len();
        for value in values.filter(|value| !value.is_empty()) {
            let value = crate::text::cut(value, LONGEST);
            let code = match self.numbers.get(value) {
                Some(&code) => code,
                None => {
                    let code = column.values.len() as u32;
                    self.numbers.insert(value.to_owned(), code);
                    column.values.push(value.to_owned());
                    code
                }
            };
            if !column.codes[begin..].contains(&code) {
                column.codes.push(code);
            }
        }
        column.starts.push(column.codes.len() as u32);
    }

    /// The column of all documents added; values are those that some document has.
    pub fn finish(mut self) -> FacetColumn {
        if self.column.starts.is_empty() {
            self.column.starts.push(0);
        }
        self.column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_few_bytes() {
        let ascending: Vec<u64> = (1 << 40..(1 << 40) + 1000).collect();
        for values in [vec![], vec![7, 7, 7], vec![1, 300, 2], vec![0, u64::MAX, 5], ascending.clone()] {
            let written = write_numbers(&values);
            assert_eq!(read_numbers(&written).unwrap(), values);
            assert!((0..written.len()).all(|size| read_numbers(&written[..size]).is_err()));
        }
        assert!(write_numbers(&ascending).len() < 1000);
    }

    #[test]
    fn facets_come_back() {
        let mut builder = FacetBuilder::default();
        builder.add(["de", "en", "de", ""].into_iter());
        builder.add(std::iter::empty());
        builder.add(["en"].into_iter());
        let column = builder.finish();
        assert_eq!(column.codes_of(0), [0, 1]);
        assert!(column.codes_of(1).is_empty());
        assert_eq!(FacetColumn::read(&column.write(), 3).unwrap(), column);
        assert!(FacetColumn::read(&column.write(), 4).is_err());
    }
}
