//! Exclusive canonical XML (W3C Recommendation of 18 July 2002), without comments.

use std::borrow::Cow;

use memchr::memchr3;

use super::xml::{Parser, XML};
use crate::{Error, Result};

/// What is derived from a response: bytes, as long as the budget lasts.
pub struct Output {
    pub bytes: Vec<u8>,
    left: usize,
    budget: usize,
}

impl Output {
    /// `expected`: about how many bytes will come of a response without anything odd.
    pub fn new(budget: usize, expected: usize) -> Output {
        Output { bytes: Vec::with_capacity(expected.min(budget)), left: budget, budget }
    }

    pub fn spent(&self) -> usize {
        self.budget - self.left
    }

    pub fn charge(&mut self, size: usize) -> Result<()> {
        match self.left.checked_sub(size) {
            Some(left) => self.left = left,
            None => {
                self.left = 0;
                return Err(Error::TooLarge(format!(
                    "more than {} bytes would come of one response; ask the source to declare namespaces where they \
                     are used, and each term once",
                    self.budget
                )));
            }
        }
        Ok(())
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.charge(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn write_all(&mut self, parts: &[&str]) -> Result<()> {
        parts.iter().try_for_each(|part| self.write(part.as_bytes()))
    }

    /// Write text; `quoted` is that of an attribute.
    pub fn write_text(&mut self, text: &str, quoted: bool) -> Result<()> {
        let mut rest = text.as_bytes();
        if quoted {
            if rest.iter().all(|byte| !matches!(byte, b'&' | b'<' | b'"' | b'\t' | b'\n' | b'\r')) {
                return self.write(rest);
            }
        } else if memchr3(b'&', b'<', b'>', rest).is_none() {
            return self.write(rest);
        }
        let special = |byte: &u8| match (byte, quoted) {
            (b'&', _) => Some("&amp;"),
            (b'<', _) => Some("&lt;"),
            (b'>', false) => Some("&gt;"),
            (b'"', true) => Some("&quot;"),
            (b'\t', true) => Some("&#x9;"),
            (b'\n', true) => Some("&#xA;"),
            (b'\r', true) => Some("&#xD;"),
            _ => None,
        };
        while let Some(at) = rest.iter().position(|byte| special(byte).is_some()) {
            self.write(&rest[..at])?;
            self.write(special(&rest[at]).unwrap_or_default().as_bytes())?;
            rest = &rest[at + 1..];
        }
        self.write(rest)
    }

    /// Write a character that a reference stands for.
    pub fn write_character(&mut self, c: char) -> Result<()> {
        match c {
            '\r' => self.write(b"&#xD;"),
            _ => self.write_text(c.encode_utf8(&mut [0; 4]), false),
        }
    }
}

/// Writes one element in canonical form, given its events.
#[derive(Default)]
pub struct Canonical<'a> {
    /// The namespaces that are declared in what is written.
    declared: Vec<(&'a str, Cow<'a, str>)>,
    /// How many of them were declared outside of each element that is open.
    outside: Vec<usize>,
    prefixes: Vec<&'a str>,
    order: Vec<usize>,
}

impl<'a> Canonical<'a> {
    pub fn start(&mut self, parser: &Parser<'a>, out: &mut Output) -> Result<()> {
        self.outside.push(self.declared.len());
        out.write_all(&["<", parser.name.whole])?;
        self.prefixes.clear();
        self.prefixes.push(parser.name.prefix);
        if !parser.attributes.is_empty() {
            let prefixes = parser.attributes.iter().map(|attribute| attribute.name.prefix);
            self.prefixes.extend(prefixes.filter(|prefix| !prefix.is_empty()));
            self.prefixes.sort_unstable();
            self.prefixes.dedup();
        }
        const NONE: &Cow<'static, str> = &Cow::Borrowed("");
        for &prefix in &self.prefixes {
            let uri = parser.namespace(prefix).unwrap_or(NONE);
            let declared = self.declared.iter().rev().find(|(own, _)| *own == prefix).map_or("", |(_, uri)| &uri[..]);
            if declared != uri && prefix != "xml" {
                out.write_all(&[if prefix.is_empty() { " xmlns" } else { " xmlns:" }, prefix, "=\""])?;
                out.write_text(uri, true)?;
                out.write(b"\"")?;
                self.declared.push((prefix, uri.clone()));
            }
        }
        if !parser.attributes.is_empty() {
            self.attributes(parser, out)?;
        }
        out.write(b">")
    }

    fn attributes(&mut self, parser: &Parser<'a>, out: &mut Output) -> Result<()> {
        let key = |&number: &usize| {
            let name = parser.attributes[number].name;
            let uri = match name.prefix {
                "" => "",
                "xml" => XML,
                prefix => parser.namespace(prefix).map_or("", |uri| &uri[..]),
            };
            (uri, name.local)
        };
        self.order.clear();
        self.order.extend(0..parser.attributes.len());
        self.order.sort_unstable_by(|one, other| key(one).cmp(&key(other)));
        for &number in &self.order {
            let attribute = &parser.attributes[number];
            out.write_all(&[" ", attribute.name.whole, "=\""])?;
            out.write_text(&attribute.value, true)?;
            out.write(b"\"")?;
        }
        Ok(())
    }

    pub fn end(&mut self, name: &str, out: &mut Output) -> Result<()> {
        self.declared.truncate(self.outside.pop().unwrap_or_default());
        out.write_all(&["</", name, ">"])
    }
}
