//! A strict pull parser for XML 1.0 with namespaces: no document type, UTF-8, lines that end with a line feed.
//!
//! What it accepts, libxml2 accepts too, but for `xml:id`s that occur twice. After each [`Event::Start`] the
//! parser has the element's name, attributes and namespaces; every `Start` has its `End`.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memchr3, memmem};

use crate::{Error, Result};

/// Elements within elements; libxml2 has about the same limit.
const DEPTH: usize = 2000;
/// Declarations of namespaces in scope: each name is looked up among them.
const BINDINGS: usize = 256;
const KNOWN_URIS: usize = 8;
pub const XML: &str = "http://www.w3.org/XML/1998/namespace";
const XMLNS: &str = "http://www.w3.org/2000/xmlns/";

#[derive(Debug, PartialEq)]
pub enum Event<'a> {
    Start,
    /// Characters as they are: references are resolved, and come alone.
    Text(&'a str),
    Character(char),
    /// An element ends, of this name.
    End(&'a str),
    Eof,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Name<'a> {
    pub whole: &'a str,
    pub prefix: &'a str,
    pub local: &'a str,
}

#[derive(Debug)]
pub struct Attribute<'a> {
    pub name: Name<'a>,
    pub value: Cow<'a, str>,
}

#[derive(Debug)]
struct Binding<'a> {
    prefix: &'a str,
    uri: Cow<'a, str>,
}

/// A place to come back to: before the start tag of an element.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    at: usize,
    depth: usize,
    bindings: usize,
}

pub struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Names of the elements that are open, with the number of bindings outside of each.
    open: Vec<(&'a str, usize)>,
    bindings: Vec<Binding<'a>>,
    /// Namespaces that were found to be URIs: the same few are declared in each record.
    known_uris: Vec<Cow<'a, str>>,
    /// Of the last start tag.
    pub name: Name<'a>,
    pub attributes: Vec<Attribute<'a>>,
    tag_begin: usize,
    /// The last start tag was that of an empty element: its end comes next.
    is_empty: bool,
    has_root: bool,
}

impl<'a> Parser<'a> {
    pub fn new(body: &'a [u8]) -> Result<Parser<'a>> {
        let text = std::str::from_utf8(body).map_err(|_| malformed("bytes that are not UTF-8"))?;
        if body.iter().fold(false, |found, &byte| found | (byte < 32 && byte != b'\n' && byte != b'\t')) {
            return Err(malformed("a control character"));
        }
        if memmem::find_iter(body, b"\xef\xbf").any(|at| body[at + 2] >= 0xbe) {
            return Err(malformed("a character that XML does not have"));
        }
        let mut parser = Parser {
            text,
            bytes: body,
            at: 0,
            open: Vec::new(),
            bindings: Vec::new(),
            known_uris: Vec::new(),
            name: Name::default(),
            attributes: Vec::new(),
            tag_begin: 0,
            is_empty: false,
            has_root: false,
        };
        parser.declaration()?;
        Ok(parser)
    }

    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Where the next event begins.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Whether only white space follows a place.
    pub fn is_blank_from(&self, at: usize) -> bool {
        self.bytes[at..].iter().all(|&byte| is_white(byte))
    }

    /// Where the last start tag begins.
    pub fn tag_begin(&self) -> usize {
        self.tag_begin
    }

    /// The place before the last start tag, while nothing follows it yet.
    pub fn place(&self) -> Place {
        let bindings = self.open.last().map_or(0, |(_, bindings)| *bindings);
        Place { at: self.tag_begin, depth: self.open.len() - 1, bindings }
    }

    pub fn return_to(&mut self, place: Place) {
        self.at = place.at;
        self.open.truncate(place.depth);
        self.bindings.truncate(place.bindings);
        self.is_empty = false;
    }

    /// The namespace of a prefix (the default one of the empty prefix), if it is bound.
    pub fn namespace(&self, prefix: &str) -> Option<&Cow<'a, str>> {
        const OF_XML: &Cow<'static, str> = &Cow::Borrowed(XML);
        let bound = self.bindings.iter().rev().find(|binding| binding.prefix == prefix).map(|binding| &binding.uri);
        if bound.is_none() && prefix == "xml" { Some(OF_XML) } else { bound }
    }

    /// Bytes of all declarations in scope.
    pub fn namespace_bytes(&self) -> usize {
        self.bindings.iter().map(|binding| binding.prefix.len() + binding.uri.len()).sum()
    }

    /// An attribute of the last start tag, by its name without prefix.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|attribute| attribute.name.whole == name).map(|attribute| &attribute.value[..])
    }

    /// Go on behind the end of all elements but the outermost `depth`.
    pub fn leave_to(&mut self, depth: usize) -> Result<()> {
        while self.depth() > depth {
            self.next()?;
        }
        Ok(())
    }

    /// The text of the element whose start came last, with that of all elements in it; goes behind its end.
    pub fn text(&mut self) -> Result<String> {
        let (depth, mut out) = (self.depth(), String::new());
        while self.depth() >= depth {
            match self.next()? {
                Event::Text(text) => out.push_str(text),
                Event::Character(c) => out.push(c),
                _ => {}
            }
        }
        Ok(out)
    }

    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Event<'a>> {
        if self.is_empty {
            self.is_empty = false;
            return Ok(self.close());
        }
        loop {
            let rest = &self.bytes[self.at..];
            match rest {
                [] if self.has_root && self.open.is_empty() => return Ok(Event::Eof),
                [] => return Err(malformed("an end before the root's")),
                [b'<', b'/', ..] => return self.end_tag(),
                [b'<', b'?', ..] => self.instruction()?,
                [b'<', b'!', ..] => {
                    if rest.starts_with(b"<!--") {
                        self.comment()?;
                    } else if rest.starts_with(b"<![CDATA[") && !self.open.is_empty() {
                        let begin = self.at + 9;
                        let size = memmem::find(&self.bytes[begin..], b"]]>")
                            .ok_or_else(|| malformed("an open CDATA section"))?;
                        self.at = begin + size + 3;
                        if size > 0 {
                            return Ok(Event::Text(&self.text[begin..begin + size]));
                        }
                    } else {
                        return Err(malformed("a declaration"));
                    }
                }
                [b'<', ..] => return self.start_tag(),
                [b'&', ..] if !self.open.is_empty() => {
                    let (c, size) = reference(rest)?;
                    self.at += size;
                    return Ok(Event::Character(c));
                }
                _ => {
                    let size = memchr2(b'<', b'&', rest).unwrap_or(rest.len());
                    let text = &self.text[self.at..self.at + size];
                    if self.open.is_empty() {
                        if size == 0 || !text.bytes().all(is_white) {
                            return Err(malformed("text outside of the root"));
                        }
                    } else if memchr(b'>', text.as_bytes()).is_some() && text.contains("]]>") {
                        return Err(malformed("an end of a CDATA section that has no start"));
                    }
                    self.at += size;
                    if !self.open.is_empty() {
                        return Ok(Event::Text(text));
                    }
                }
            }
        }
    }

    fn close(&mut self) -> Event<'a> {
        let (name, bindings) = self.open.pop().unwrap_or_default();
        self.bindings.truncate(bindings);
        Event::End(name)
    }

    fn end_tag(&mut self) -> Result<Event<'a>> {
        let name = self.open.last().map(|(name, _)| *name).ok_or_else(|| malformed("an end of no element"))?;
        let mut at = self.at + 2;
        if !self.bytes[at..].starts_with(name.as_bytes()) {
            return Err(malformed("an end of another element"));
        }
        at = self.skip_white(at + name.len());
        if self.bytes.get(at) != Some(&b'>') {
            return Err(malformed("an end of another element"));
        }
        self.at = at + 1;
        Ok(self.close())
    }

    fn start_tag(&mut self) -> Result<Event<'a>> {
        if self.open.len() >= DEPTH || (self.open.is_empty() && self.has_root) {
            return Err(malformed("elements too deep, or beside the root"));
        }
        self.tag_begin = self.at;
        let outside = self.bindings.len();
        self.attributes.clear();
        self.name = self.qualified_name(self.at + 1)?;
        let mut at = self.at + 1 + self.name.whole.len();
        loop {
            let after = self.skip_white(at);
            match self.bytes.get(after) {
                Some(b'>') => {
                    self.at = after + 1;
                    break;
                }
                Some(b'/') if self.bytes.get(after + 1) == Some(&b'>') => {
                    self.at = after + 2;
                    self.is_empty = true;
                    break;
                }
                Some(_) if after > at => at = self.attribute_at(after, outside)?,
                _ => return Err(malformed("a start tag that is not closed")),
            }
        }
        let bound = |prefix: &str| prefix.is_empty() || self.namespace(prefix).is_some();
        if !bound(self.name.prefix) || !self.attributes.iter().all(|attribute| bound(attribute.name.prefix)) {
            return Err(malformed("a prefix that is not declared"));
        }
        if self.attributes.len() > 1 && self.has_equal_attributes() {
            return Err(malformed("an attribute twice"));
        }
        self.open.push((self.name.whole, outside));
        self.has_root = true;
        Ok(Event::Start)
    }

    /// Read an attribute or a declaration of a namespace; gives where it ends.
    fn attribute_at(&mut self, at: usize, outside: usize) -> Result<usize> {
        let name = self.qualified_name(at)?;
        let mut at = self.skip_white(at + name.whole.len());
        if self.bytes.get(at) != Some(&b'=') {
            return Err(malformed("an attribute without value"));
        }
        at = self.skip_white(at + 1);
        let quote = match self.bytes.get(at) {
            Some(&quote @ (b'"' | b'\'')) => quote,
            _ => return Err(malformed("an attribute without quotes")),
        };
        let begin = at + 1;
        let size = memchr(quote, &self.bytes[begin..]).ok_or_else(|| malformed("an attribute without end"))?;
        let value = attribute_value(&self.text[begin..begin + size])?;
        let declared = match (name.prefix, name.local) {
            ("", "xmlns") => Some(""),
            ("xmlns", prefix) => Some(prefix),
            _ => None,
        };
        match declared {
            Some(prefix) => self.bind(prefix, value, outside)?,
            None if name.whole == "xml:id" && name_end(&value, 0) != value.len() => {
                return Err(malformed("an xml:id that is no name"));
            }
            None => self.attributes.push(Attribute { name, value }),
        }
        Ok(begin + size + 1)
    }

    fn bind(&mut self, prefix: &'a str, uri: Cow<'a, str>, outside: usize) -> Result<()> {
        let twice = self.bindings[outside..].iter().any(|binding| binding.prefix == prefix);
        let reserved = prefix == "xmlns" || uri == XMLNS || (prefix == "xml") != (uri == XML);
        let is_known = self.known_uris.contains(&uri);
        if twice || reserved || (uri.is_empty() && !prefix.is_empty()) || !(is_known || is_uri(&uri)) {
            return Err(malformed("a namespace that cannot be declared"));
        }
        if !is_known && self.known_uris.len() < KNOWN_URIS {
            self.known_uris.push(uri.clone());
        }
        if self.bindings.len() >= BINDINGS {
            return Err(malformed("too many namespaces"));
        }
        if prefix != "xml" {
            self.bindings.push(Binding { prefix, uri });
        }
        Ok(())
    }

    fn has_equal_attributes(&self) -> bool {
        let uri = |attribute: &Attribute<'a>| match attribute.name.prefix {
            "" => "",
            prefix => self.namespace(prefix).map_or("", |uri| &uri[..]),
        };
        if self.attributes.len() <= 8 {
            return self.attributes.iter().enumerate().any(|(number, one)| {
                let others = &self.attributes[..number];
                others.iter().any(|other| other.name.local == one.name.local && uri(other) == uri(one))
            });
        }
        let mut names: Vec<_> = self.attributes.iter().map(|one| (one.name.local, uri(one))).collect();
        names.sort_unstable();
        names.windows(2).any(|pair| pair[0] == pair[1])
    }

    fn qualified_name(&self, at: usize) -> Result<Name<'a>> {
        let wrong = || malformed("a name that is none");
        let first = name_end(self.text, at);
        if first == at {
            return Err(wrong());
        }
        if self.bytes.get(first) != Some(&b':') {
            let whole = &self.text[at..first];
            return Ok(Name { whole, prefix: "", local: whole });
        }
        let end = name_end(self.text, first + 1);
        if end == first + 1 || self.bytes.get(end) == Some(&b':') {
            return Err(wrong());
        }
        Ok(Name { whole: &self.text[at..end], prefix: &self.text[at..first], local: &self.text[first + 1..end] })
    }

    fn skip_white(&self, at: usize) -> usize {
        at + self.bytes[at..].iter().take_while(|&&byte| is_white(byte)).count()
    }

    fn comment(&mut self) -> Result<()> {
        let begin = self.at + 4;
        let size = memmem::find(&self.bytes[begin..], b"--").ok_or_else(|| malformed("an open comment"))?;
        if self.bytes.get(begin + size + 2) != Some(&b'>') {
            return Err(malformed("two hyphens in a comment"));
        }
        self.at = begin + size + 3;
        Ok(())
    }

    fn instruction(&mut self) -> Result<()> {
        let begin = self.at + 2;
        let end = name_end(self.text, begin);
        let size = memmem::find(&self.bytes[end..], b"?>").ok_or_else(|| malformed("an open instruction"))?;
        let spaced = size == 0 || is_white(self.bytes[end]);
        if end == begin || !spaced || self.text[begin..end].eq_ignore_ascii_case("xml") {
            return Err(malformed("an instruction without a name"));
        }
        self.at = end + size + 2;
        Ok(())
    }

    /// `<?xml version="1.0" encoding="…" standalone="…"?>`, whose encoding is not looked at.
    fn declaration(&mut self) -> Result<()> {
        let wrong = || malformed("a declaration that is none");
        let Some(rest) = self.text.strip_prefix("<?xml").filter(|rest| rest.starts_with([' ', '\n', '\t'])) else {
            return Ok(());
        };
        let mut inside = &rest[..rest.find("?>").ok_or_else(wrong)?];
        self.at = 5 + inside.len() + 2;
        for name in ["version", "encoding", "standalone"] {
            let trimmed = inside.trim_start();
            let Some(after) = trimmed.strip_prefix(name).filter(|_| trimmed.len() < inside.len()) else {
                if name == "version" {
                    return Err(wrong());
                }
                continue;
            };
            let value = after.trim_start().strip_prefix('=').ok_or_else(wrong)?.trim_start();
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\'')).ok_or_else(wrong)?;
            let (value, rest) = value[1..].split_once(quote).ok_or_else(wrong)?;
            let minor = value.strip_prefix("1.").unwrap_or_default();
            let good = match name {
                "version" => !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit()),
                "encoding" => {
                    value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
                        && !value.is_empty()
                }
                _ => matches!(value, "yes" | "no"),
            };
            if !good {
                return Err(wrong());
            }
            inside = rest;
        }
        if inside.trim_start().is_empty() { Ok(()) } else { Err(wrong()) }
    }
}

fn malformed(reason: &str) -> Error {
    Error::Malformed(format!("not well-formed: {reason}"))
}

fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t')
}

/// Where the name without colon that begins at a place ends: there, if none does.
fn name_end(text: &str, begin: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = begin;
    loop {
        match bytes.get(at) {
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => at += 1,
            Some(b'0'..=b'9' | b'-' | b'.') if at > begin => at += 1,
            Some(128..) => match text[at..].chars().next() {
                Some(c) if is_name_start(c) || (at > begin && is_name_part(c)) => at += c.len_utf8(),
                _ => return at,
            },
            _ => return at,
        }
    }
}

/// Characters beyond ASCII that may begin a name (XML 1.0, fifth edition).
fn is_name_start(c: char) -> bool {
    matches!(c, '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}'
        | '\u{37f}'..='\u{1fff}' | '\u{200c}' | '\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}'
        | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}' | '\u{10000}'..='\u{effff}')
}

fn is_name_part(c: char) -> bool {
    matches!(c, '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}' | '\u{2040}')
}

/// The character that a reference stands for, and the size of the reference.
fn reference(text: &[u8]) -> Result<(char, usize)> {
    let wrong = || malformed("a reference to no character");
    let size = memchr(b';', &text[..text.len().min(64)]).ok_or_else(wrong)?;
    let c = match &text[1..size] {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', digits @ ..] => {
            let (digits, base) = match digits {
                [b'x', digits @ ..] => (digits, 16),
                _ => (digits, 10),
            };
            let number = |sum: u32, digit: &u8| sum.checked_mul(base)?.checked_add(char::from(*digit).to_digit(base)?);
            let point = digits.iter().try_fold(0, number).filter(|_| !digits.is_empty()).ok_or_else(wrong)?;
            let c = char::from_u32(point).ok_or_else(wrong)?;
            if matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}') {
                return Err(wrong());
            }
            c
        }
        _ => return Err(wrong()),
    };
    Ok((c, size + 1))
}

/// An attribute's value: references resolved, white space as spaces (XML 1.0, 3.3.3).
fn attribute_value(raw: &str) -> Result<Cow<'_, str>> {
    if memchr(b'<', raw.as_bytes()).is_some() {
        return Err(malformed("a less-than sign in an attribute"));
    }
    if memchr3(b'&', b'\n', b'\t', raw.as_bytes()).is_none() {
        return Ok(Cow::Borrowed(raw));
    }
    let (mut out, mut rest) = (String::with_capacity(raw.len()), raw);
    while let Some(at) = memchr3(b'&', b'\n', b'\t', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let (c, size) = if rest.as_bytes()[at] == b'&' { reference(&rest.as_bytes()[at..])? } else { (' ', 1) };
        out.push(c);
        rest = &rest[at + size..];
    }
    out.push_str(rest);
    Ok(Cow::Owned(out))
}

/// Whether a namespace is a URI or a relative reference (RFC 3986), literal addresses apart.
fn is_uri(uri: &str) -> bool {
    let mut rest = uri;
    if let Some(colon) = uri.find(':').filter(|&colon| !uri[..colon].contains(['/', '?', '#'])) {
        let scheme = &uri.as_bytes()[..colon];
        let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"+.-".contains(byte);
        if !scheme.first().is_some_and(u8::is_ascii_alphabetic) || !scheme.iter().all(inside) {
            return false;
        }
        rest = &uri[colon + 1..];
    }
    if let Some(after) = rest.strip_prefix("//") {
        let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        let port = host.split_once(':').map_or("0", |(_, port)| port);
        let good_port = (1..10).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
        if authority.matches('@').count() > 1 || !good_port {
            return false;
        }
    }
    let bytes = uri.as_bytes();
    let good = |(at, byte): (usize, &u8)| match byte {
        b'%' => bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)),
        _ => byte.is_ascii_alphanumeric() || b"!#$&'()*+,-./:;=?@_~".contains(byte),
    };
    uri.matches('#').count() <= 1 && bytes.iter().enumerate().all(good)
}
