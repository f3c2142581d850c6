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
}
