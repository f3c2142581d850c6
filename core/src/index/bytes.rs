//! Numbers as bytes. Reading past the end is an error, not a panic: a file may be damaged.

use crate::{Error, Result};

/// Append a LEB128 number.
pub fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7F {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The bits that a number takes; none for 0.
pub fn bits(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// Append numbers of that many bits each, lowest first.
pub fn write_bits(out: &mut Vec<u8>, values: impl Iterator<Item = u64>, width: u32) {
    let (mut held, mut filled) = (0u128, 0);
    for value in values {
        held |= u128::from(value) << filled;
        filled += width;
        while filled >= 8 {
            out.push(held as u8);
            held >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        out.push(held as u8);
    }
}

/// Bytes that are read from the front.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for (place, &byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7F) << (7 * place);
            if byte < 0x80 {
                self.rest = &self.rest[place + 1..];
                return Ok(value);
            }
        }
        Err(cut_short())
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Call `f` with each of the numbers that [`write_bits`] wrote.
    pub fn bits(&mut self, width: u32, count: usize, mut f: impl FnMut(u64)) -> Result<()> {
        let size = count.checked_mul(width as usize).ok_or_else(cut_short)?.div_ceil(8);
        let mut bytes = self.take(size)?.iter();
        let (mut held, mut filled) = (0u128, 0);
        for _ in 0..count {
            while filled < width {
                held |= u128::from(bytes.next().copied().unwrap_or(0)) << filled;
                filled += 8;
            }
            f((held & ((1 << width) - 1)) as u64);
            held >>= width;
            filled -= width;
        }
        Ok(())
    }

    pub fn u32(&mut self) -> Result<u32> {
        Ok(read_u32(self.take(4)?, 0))
    }

    pub fn u64(&mut self) -> Result<u64> {
        let bytes = self.take(8)?;
        Ok(u64::from(read_u32(bytes, 0)) | u64::from(read_u32(bytes, 4)) << 32)
    }
}

/// The four bytes at `at` as a number.
#[inline]
pub fn read_u32(bytes: &[u8], at: usize) -> u32 {
    let four: [u8; 4] = bytes[at..at + 4].try_into().expect("four bytes");
    u32::from_le_bytes(four)
}

pub fn cut_short() -> Error {
    Error::Damaged("an index file ends too early".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut out = Vec::new();
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        numbers.iter().for_each(|&n| write_varint(&mut out, n));
        let mut reader = Reader::new(&out);
        for n in numbers {
            assert_eq!(reader.varint().unwrap(), n);
        }
        assert!(reader.varint().is_err());
    }

    #[test]
    fn bits_come_back() {
        for width in 0..=64 {
            let most = u64::MAX.checked_shr(64 - width).unwrap_or(0);
            let (numbers, mut out, mut found) = ([most, 0, 1 & most, most / 3, most], Vec::new(), Vec::new());
            write_bits(&mut out, numbers.into_iter(), width);
            assert_eq!(out.len(), (5 * width as usize).div_ceil(8));
            Reader::new(&out).bits(width, 5, |number| found.push(number)).unwrap();
            assert_eq!(found, numbers);
            assert!(width == 0 || Reader::new(&out[1..]).bits(width, 5, |_| ()).is_err());
        }
    }
}
