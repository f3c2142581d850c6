//! A record's metadata, as the JSON in which it is stored: `{"title": ["…"], "creator": ["…", "…"]}`.

use std::borrow::Cow;

use crate::{Error, Result};

/// Elements with their values, in their order.
#[derive(Debug, Default, PartialEq)]
pub struct Metadata<'a> {
    elements: Vec<(Cow<'a, str>, Vec<Cow<'a, str>>)>,
}

impl<'a> Metadata<'a> {
    /// Read what a store keeps; empty bytes have no elements.
    pub fn parse(json: &'a [u8]) -> Result<Metadata<'a>> {
        let text = std::str::from_utf8(json).map_err(|_| malformed())?;
        let mut parser = Parser { text, at: 0 };
        let mut found = Metadata::default();
        if text.is_empty() {
            return Ok(found);
        }
        parser.list('{', '}', |parser| {
            let name = parser.string()?;
            parser.expect(':')?;
            let mut values = Vec::new();
            parser.list('[', ']', |parser| {
                values.push(parser.string()?);
                Ok(())
            })?;
            found.elements.push((name, values));
            Ok(())
        })?;
        Ok(found)
    }

    /// The values of an element.
    pub fn get(&self, name: &str) -> &[Cow<'a, str>] {
        self.elements.iter().find(|(own, _)| own == name).map_or(&[], |(_, values)| values)
    }

    /// The first value of an element; empty if there is none.
    pub fn first(&self, name: &str) -> &str {
        self.get(name).first().map_or("", |value| value)
    }

    /// The values of some elements, a line each.
    pub fn text(&self, names: &[&str]) -> String {
        names.iter().flat_map(|name| self.get(name)).map(|value| &value[..]).collect::<Vec<_>>().join("\n")
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn skip_space(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    fn accept(&mut self, sign: char) -> bool {
        self.skip_space();
        let found = self.text[self.at..].starts_with(sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: char) -> Result<()> {
        if self.accept(sign) { Ok(()) } else { Err(malformed()) }
    }

    fn list(&mut self, open: char, close: char, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.expect(open)?;
        if self.accept(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.accept(close) {
                return Ok(());
            }
            self.expect(',')?;
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>> {
        self.expect('"')?;
        let rest = &self.text[self.at..];
        let end = memchr::memchr2(b'"', b'\\', rest.as_bytes()).ok_or_else(malformed)?;
        if rest.as_bytes()[end] == b'"' {
            self.at += end + 1;
            return Ok(Cow::Borrowed(&rest[..end]));
        }
        let mut out = String::from(&rest[..end]);
        self.at += end;
        loop {
            let mut chars = self.text[self.at..].chars();
            match chars.next().ok_or_else(malformed)? {
                '"' => {
                    self.at += 1;
                    return Ok(Cow::Owned(out));
                }
                '\\' => {
                    let escape = chars.next().ok_or_else(malformed)?;
                    self.at += 1 + escape.len_utf8();
                    out.push(match escape {
                        'b' => '\u{8}',
                        'f' => '\u{c}',
                        'n' => '\n',
                        'r' => '\r',
                        't' => '\t',
                        'u' => self.unicode()?,
                        other => other,
                    });
                }
                plain => {
                    out.push(plain);
                    self.at += plain.len_utf8();
                }
            }
        }
    }

    /// The character after `\u`; two halves are one, and a half alone is replaced.
    fn unicode(&mut self) -> Result<char> {
        let high = self.hex()?;
        if (0xD800..0xDC00).contains(&high) && self.text[self.at..].starts_with("\\u") {
            self.at += 2;
            let low = self.hex()?;
            let both = 0x10000 + ((high - 0xD800) << 10) + low.wrapping_sub(0xDC00);
            return Ok(char::from_u32(both).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        Ok(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4).ok_or_else(malformed)?;
        self.at += 4;
        u32::from_str_radix(digits, 16).map_err(|_| malformed())
    }
}

fn malformed() -> Error {
    Error::Malformed("metadata that is not of the form in which it is stored".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_read() {
        let json = r#"{"title": ["A \"b\" \u00e9 \ud83d\ude00\n", "C"], "date": [], "creator": ["Ærø"]}"#;
        let found = Metadata::parse(json.as_bytes()).unwrap();
        assert_eq!(found.get("title"), ["A \"b\" é 😀\n", "C"]);
        assert_eq!((found.first("creator"), found.first("date"), found.first("x")), ("Ærø", "", ""));
        assert_eq!(found.text(&["creator", "title"]), "Ærø\nA \"b\" é 😀\n\nC");
        assert_eq!(Metadata::parse(b"").unwrap(), Metadata::default());
        for bad in ["{", "[]", r#"{"a":"b"}"#, r#"{"a":["b]}"#, r#"{"a":["\u12"]}"#] {
            assert!(Metadata::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
