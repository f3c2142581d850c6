//! An OAI-PMH response: its records, errors and resumption token.
//!
//! Elements are known by their local names, for many a repository gets the namespace wrong. What is written in another
//! way than the protocol has it is taken as it is meant, and counted as a repair.

use std::ops::Range;

use super::canonical::{Canonical, Output};
use super::record::{self, Content};
use super::values::{ELEMENTS, Values, element_of};
use super::vector::{self, Vector};
use super::xml::{Event, Parser};
use crate::text::cut;
use crate::text::tokens::is_space;
use crate::{Error, Result};

const OAI: &str = "http://www.openarchives.org/OAI/2.0/";
const EXTENDED: &str = "urn:indlet:ft-oai:1.0";
/// Bytes of the namespaces that are declared around the records of a list.
const CONTEXT_BYTES: usize = 1 << 16;
/// Characters of a set's name. It is kept with the names of all sets above it: one of a thousand levels would cost as
/// many rows.
const SET_LENGTH: usize = 300;
const VERBS: [&str; 7] =
    ["Identify", "ListRecords", "ListIdentifiers", "GetRecord", "ListSets", "ListMetadataFormats", "ListIndexFormats"];

/// A stretch of [`Page::derived`], or of the response.
pub type Span = Range<usize>;

#[derive(Debug, Default)]
pub struct Page {
    pub response_date: String,
    pub verb: &'static str,
    pub is_extended: bool,
    pub items: Vec<Item>,
    pub problems: Vec<Problem>,
    pub errors: Vec<(String, String)>,
    /// None where there is no such element, empty where the list has ended.
    pub token: Option<String>,
    pub cursor: Option<u64>,
    pub size: Option<u64>,
    pub repairs: Vec<&'static str>,
    /// The bytes that items refer to.
    pub derived: Vec<u8>,
    /// Bytes that were charged to the budget.
    pub spent: usize,
}

/// A record of a list, or a header alone.
#[derive(Debug, Default)]
pub struct Item {
    pub identifier: String,
    pub datestamp: String,
    pub sets: Vec<String>,
    pub deleted: bool,
    pub part: Option<Part>,
    pub vector: Option<Vector>,
    /// An index part that only the reader of its format understands, in canonical form.
    pub index: Option<Span>,
    pub abouts: Vec<Span>,
    /// Digest of the policy that the index part names.
    pub policy: String,
    /// Where the record is in the response.
    pub source: Span,
}

/// A record's metadata.
#[derive(Debug)]
pub struct Part {
    /// In canonical form.
    pub raw: Span,
    /// The name of the element, as `{namespace}name`.
    pub root: String,
    /// What they say by the names of their elements, as JSON.
    pub described: Span,
    pub properties: Span,
    pub resource: i64,
    /// Of the record as it would be stored.
    pub digest: [u8; 12],
}

/// A record that cannot be used.
#[derive(Debug)]
pub struct Problem {
    pub identifier: String,
    pub reason: String,
    pub source: Span,
}

/// Read a response in UTF-8 whose lines end with line feeds. `Malformed` if it is not well-formed, or its root is not that of
/// a response; `TooLarge` if its namespaces are. A record that would exceed the budget becomes a problem.
pub fn read_page(body: &[u8], budget: usize) -> Result<Page> {
    let parser = Parser::new(body)?;
    let mut reader = Reader {
        parser,
        out: Output::new(budget, body.len() + body.len() / 2),
        page: Page::default(),
        is_former: false,
    };
    reader.response()?;
    reader.page.spent = reader.out.spent();
    reader.page.derived = reader.out.bytes;
    Ok(reader.page)
}

/// The texts of the elements below the root of some metadata that are Dublin Core by their local names.
pub fn element_values(xml: &[u8], budget: usize) -> Result<Vec<(&'static str, String)>> {
    let (mut parser, mut out, mut said) = (Parser::new(xml)?, Output::new(budget, xml.len()), Said::default());
    parser.next()?;
    copy(&mut parser, &mut out, Some(&mut said))?;
    let mut value = |(element, span): &(usize, Span)| {
        let text = said.text[span.clone()].trim_matches(is_space);
        out.charge(text.len())?;
        Ok((ELEMENTS[*element], text.to_owned()))
    };
    said.values.iter().map(&mut value).collect()
}

struct Reader<'a> {
    parser: Parser<'a>,
    out: Output,
    page: Page,
    /// The response is one of OAI-PMH 1, put into the root of version 2.
    is_former: bool,
}

/// A record while it is read.
#[derive(Default)]
struct Draft {
    item: Item,
    status: String,
    metadata: Option<(Span, String, Values)>,
    has_index: bool,
    has_long_set: bool,
}

/// Metadata while they are copied: the text of the elements that have values.
#[derive(Default)]
struct Said {
    text: String,
    /// Element, and its text.
    values: Vec<(usize, Span)>,
    /// Values that are open: depth, and place in `values`.
    open: Vec<(usize, usize)>,
}

impl<'a> Reader<'a> {
    fn response(&mut self) -> Result<()> {
        self.parser.next()?;
        let namespace = self.parser.namespace(self.parser.name.prefix).map_or("", |uri| &uri[..]);
        if !self.is_named("OAI-PMH") {
            return Err(Error::Malformed("the root is not that of a response".into()));
        }
        self.page.is_extended = namespace == EXTENDED;
        if namespace != OAI && namespace != EXTENDED {
            self.page.repairs.push("missing namespaces");
        }
        self.is_former = self.parser.attribute("version") == Some("1");
        while self.enter()? {
            let verb = VERBS.into_iter().find(|verb| self.is_named(verb));
            if self.parser.name.local == "responseDate" {
                self.page.response_date = self.text()?;
            } else if self.parser.name.local == "error" {
                let code = trim(self.parser.attribute("code").unwrap_or_default());
                let reason = self.text()?;
                self.page.errors.push((code, reason));
            } else if let Some(verb) = verb {
                self.page.verb = verb;
                self.list()?;
            } else if self.is_named("resumptionToken") {
                self.page.repairs.push("misplaced resumption tokens");
                self.token()?;
            } else {
                self.skip()?;
            }
        }
        // What follows the root is counted as a repair, by whoever removes it.
        let end = self.parser.at();
        match self.parser.next()? {
            Event::Eof if self.parser.is_blank_from(end) => Ok(()),
            _ => Err(Error::Malformed("something follows the root".into())),
        }
    }

    /// Go on to the next element within the one that is open; false behind the end of that.
    fn enter(&mut self) -> Result<bool> {
        loop {
            match self.parser.next()? {
                Event::Start => return Ok(true),
                Event::End(_) => return Ok(false),
                _ => {}
            }
        }
    }

    fn skip(&mut self) -> Result<()> {
        self.parser.leave_to(self.parser.depth() - 1)
    }

    fn text(&mut self) -> Result<String> {
        let text = self.parser.text()?;
        Ok(if text.starts_with(is_space) || text.ends_with(is_space) { trim(&text) } else { text })
    }

    fn is_named(&self, name: &str) -> bool {
        self.parser.name.local.eq_ignore_ascii_case(name)
    }

    fn list(&mut self) -> Result<()> {
        if self.parser.namespace_bytes() > CONTEXT_BYTES {
            return Err(Error::TooLarge(format!("declarations of namespaces of more than {CONTEXT_BYTES} bytes")));
        }
        if !matches!(self.page.verb, "ListRecords" | "ListIdentifiers" | "GetRecord" | "ListSets") {
            return self.skip();
        }
        while self.enter()? {
            if self.is_named("record") || self.is_named("header") {
                self.record()?;
            } else if self.is_named("resumptionToken") {
                self.token()?;
            } else if self.is_named("responseDate") {
                let date = self.text()?; // here and in the next branch: OAI-PMH 1
                if self.page.response_date.is_empty() {
                    self.page.response_date = date;
                }
            } else if self.is_named("identifier") && self.page.verb == "ListIdentifiers" {
                let begin = self.parser.tag_begin();
                let deleted = self.parser.attribute("status") == Some("deleted");
                let identifier = self.text()?;
                if !identifier.is_empty() {
                    let source = begin..self.parser.at();
                    self.page.items.push(Item { identifier, deleted, source, ..Item::default() });
                }
            } else {
                self.skip()?;
            }
        }
        Ok(())
    }

    fn token(&mut self) -> Result<()> {
        let number = |value: Option<&str>| {
            let digits = trim(value.unwrap_or_default());
            let good = (1..15).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
            if good { digits.parse().ok() } else { None }
        };
        let size = number(self.parser.attribute("completeListSize"));
        let cursor = number(self.parser.attribute("cursor"));
        let token = self.text()?;
        if !token.is_empty() || self.page.token.is_none() {
            self.page.token = Some(token); // of two, the one that leads on
        }
        self.page.size = size.or(self.page.size);
        self.page.cursor = cursor.or(self.page.cursor);
        Ok(())
    }

    fn record(&mut self) -> Result<()> {
        let (begin, depth) = (self.parser.tag_begin(), self.parser.depth());
        let mut draft = Draft::default();
        let outcome = self.read_record(&mut draft);
        let outcome = match outcome {
            Err(Error::TooLarge(reason)) => {
                self.parser.leave_to(depth - 1)?;
                Err(reason)
            }
            other => Ok(other?),
        };
        draft.item.source = begin..self.parser.at();
        let made = outcome.and_then(|()| match draft.item.identifier.is_empty() {
            true => Err("a record without identifier".to_owned()),
            false => self.finish(&mut draft).map_err(|error| error.to_string()),
        });
        match made {
            Ok(()) => self.page.items.push(draft.item),
            Err(reason) => {
                let Item { identifier, source, .. } = draft.item;
                self.page.problems.push(Problem { identifier, reason, source });
            }
        }
        Ok(())
    }

    fn read_record(&mut self, draft: &mut Draft) -> Result<()> {
        let own_status = self.parser.attribute("status").unwrap_or_default().to_owned();
        if self.is_named("header") {
            self.header(draft)?;
        } else {
            while self.enter()? {
                if self.is_named("header") {
                    self.header(draft)?;
                } else if self.is_named("metadata") {
                    self.metadata(draft)?;
                } else if self.is_named("index") {
                    self.index(draft)?;
                } else if self.is_named("about") {
                    while self.enter()? {
                        let about = self.copy(None)?.0;
                        draft.item.abouts.push(about);
                    }
                } else {
                    self.skip()?;
                }
            }
        }
        if draft.item.identifier.is_empty() {
            return Ok(());
        }
        if draft.status.is_empty() && !own_status.is_empty() {
            draft.status = own_status;
            if !self.is_former {
                self.page.repairs.push("status of a record beside its header");
            }
        }
        let status = trim(&draft.status).to_lowercase();
        draft.item.deleted = status == "deleted" || status == "delete";
        if draft.item.deleted && draft.status != "deleted" {
            self.page.repairs.push("spelling of status");
        }
        Ok(())
    }

    fn header(&mut self, draft: &mut Draft) -> Result<()> {
        draft.status = self.parser.attribute("status").unwrap_or_default().to_owned();
        let item = &mut draft.item;
        (item.identifier, item.datestamp) = Default::default();
        item.sets.clear();
        while self.enter()? {
            if self.is_named("identifier") {
                item.identifier = self.text()?;
            } else if self.is_named("datestamp") {
                item.datestamp = self.text()?;
            } else if self.is_named("setSpec") {
                let spec: String = self.parser.text()?.split(is_space).collect();
                if cut(&spec, SET_LENGTH).len() < spec.len() {
                    draft.has_long_set = true;
                } else if !spec.is_empty() {
                    item.sets.push(spec);
                }
            } else {
                self.skip()?;
            }
        }
        Ok(())
    }

    fn metadata(&mut self, draft: &mut Draft) -> Result<()> {
        if draft.metadata.is_some() {
            self.page.repairs.push("records with metadata twice: the first taken");
            return self.skip();
        }
        let (place, depth, begin) = (self.parser.place(), self.parser.depth(), self.out.bytes.len());
        let mut text = String::new();
        loop {
            match self.parser.next()? {
                Event::Text(part) => text.push_str(part),
                Event::Character(c) => text.push(c),
                Event::Start => break,
                _ => {
                    draft.metadata = self.written_as_text(&text)?;
                    return Ok(());
                }
            }
        }
        if let Some(policy) = self.parser.attribute("policy").filter(|_| self.is_named("bundle") && !draft.has_index) {
            draft.item.policy = policy.to_owned();
        }
        let mut said = Said::default();
        let mut root = self.expanded_name();
        let (mut raw, has_children) = self.copy(Some(&mut said))?;
        if self.enter()? {
            if has_children {
                self.parser.leave_to(depth - 1)?;
            } else {
                // What should be in one element is there without it.
                self.page.repairs.push("metadata without an element around them");
                self.out.bytes.truncate(begin);
                self.parser.return_to(place);
                self.parser.next()?;
                said = Said::default();
                root = self.expanded_name();
                raw = self.copy(Some(&mut said))?.0;
            }
        }
        draft.metadata = Some((raw, root, self.values(&said)?));
        Ok(())
    }

    /// The element that a text spells out, escaped or in a CDATA section.
    fn written_as_text(&mut self, text: &str) -> Result<Option<(Span, String, Values)>> {
        let text = text.trim_matches(is_space);
        if !text.starts_with('<') {
            return Ok(None);
        }
        let begin = self.out.bytes.len();
        let mut inner = match Parser::new(text.as_bytes()) {
            Ok(parser) => parser,
            Err(_) => return Ok(None),
        };
        let mut said = Said::default();
        let copied = inner.next().and_then(|_| {
            let root = expanded_name(&inner);
            let (raw, _) = copy(&mut inner, &mut self.out, Some(&mut said))?;
            inner.next().map(|_| (raw, root))
        });
        match copied {
            Ok((raw, root)) => {
                self.page.repairs.push("metadata written as text");
                Ok(Some((raw, root, self.values(&said)?)))
            }
            Err(Error::TooLarge(reason)) => Err(Error::TooLarge(reason)),
            Err(_) => {
                self.out.bytes.truncate(begin);
                Ok(None)
            }
        }
    }

    fn index(&mut self, draft: &mut Draft) -> Result<()> {
        let depth = self.parser.depth();
        draft.item.policy = self.parser.attribute("policy").unwrap_or_default().to_owned();
        draft.has_index = true;
        (draft.item.vector, draft.item.index) = (None, None);
        if !self.enter()? {
            return Ok(());
        }
        let place = self.parser.place();
        draft.item.vector = vector::read(&mut self.parser)?;
        match &draft.item.vector {
            Some(vector) => self.out.charge(vector.packed.len())?,
            None => {
                self.parser.return_to(place);
                self.parser.next()?;
                draft.item.index = Some(self.copy(None)?.0);
            }
        }
        self.parser.leave_to(depth - 1)
    }

    fn expanded_name(&self) -> String {
        expanded_name(&self.parser)
    }

    fn copy(&mut self, said: Option<&mut Said>) -> Result<(Span, bool)> {
        copy(&mut self.parser, &mut self.out, said)
    }

    /// The values of metadata. An element has the text of those within it too, so the text of a deep tree counts often.
    fn values(&mut self, said: &Said) -> Result<Values> {
        let mut values = Values::default();
        for (element, span) in &said.values {
            self.out.charge(span.len())?;
            values.add(*element, &said.text[span.clone()]);
        }
        values.deduplicate();
        Ok(values)
    }

    fn finish(&mut self, draft: &mut Draft) -> Result<()> {
        if draft.has_long_set {
            self.page.repairs.push("sets left out: their names are too long");
        }
        let item = &mut draft.item;
        if item.sets.len() > 1 {
            let mut seen = std::collections::HashSet::with_hasher(ahash::RandomState::new());
            item.sets.retain(|spec| seen.insert(spec.clone()));
        }
        let Some((raw, root, values)) = draft.metadata.take() else { return Ok(()) };
        let described = self.write(&values.to_json())?;
        let properties = self.write(&record::properties(&item.datestamp, &values))?;
        let key = record::resource_key(&item.identifier, values.get(super::values::IDENTIFIER));
        let (resource, vector) = (record::resource_hash(&key), item.vector.as_ref());
        let bytes = |span: &Span| &self.out.bytes[span.clone()];
        let content = Content {
            sets: &item.sets.join(" "),
            language: vector.map_or("", |vector| &vector.language),
            length: vector.map_or(0, |vector| vector.length),
            resource,
            metadata: bytes(&described),
            properties: bytes(&properties),
            raw: bytes(&raw),
            vector: vector.map(|vector| &vector.packed[..]),
            positions: None,
        };
        let digest = content.digest();
        item.part = Some(Part { raw, root, described, properties, resource, digest });
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Span> {
        let begin = self.out.bytes.len();
        self.out.write(bytes)?;
        Ok(begin..self.out.bytes.len())
    }
}

fn trim(text: &str) -> String {
    text.trim_matches(is_space).to_owned()
}

fn expanded_name(parser: &Parser) -> String {
    match parser.namespace(parser.name.prefix).map_or("", |uri| &uri[..]) {
        "" => parser.name.local.to_owned(),
        uri => format!("{{{uri}}}{}", parser.name.local),
    }
}

/// Write the element whose start came last in canonical form, and go behind its end. Gives where it is, and whether it
/// has elements in it. `said` gets the text of those that Dublin Core knows.
fn copy(parser: &mut Parser, out: &mut Output, mut said: Option<&mut Said>) -> Result<(Span, bool)> {
    let (depth, begin) = (parser.depth(), out.bytes.len());
    let mut canonical = Canonical::default();
    let mut has_children = false;
    canonical.start(parser, out)?;
    loop {
        match parser.next()? {
            Event::Start => {
                has_children = true;
                canonical.start(parser, out)?;
                if let Some(said) = said.as_deref_mut()
                    && let Some(element) = element_of(parser.name.local)
                {
                    said.open.push((parser.depth(), said.values.len()));
                    said.values.push((element, said.text.len()..said.text.len()));
                }
            }
            Event::Text(text) => {
                out.write_text(text, false)?;
                if let Some(said) = said.as_deref_mut().filter(|said| !said.open.is_empty()) {
                    said.text.push_str(text);
                }
            }
            Event::Character(c) => {
                out.write_character(c)?;
                if let Some(said) = said.as_deref_mut().filter(|said| !said.open.is_empty()) {
                    said.text.push(c);
                }
            }
            Event::End(name) => {
                canonical.end(name, out)?;
                if let Some(said) = said.as_deref_mut()
                    && let Some(&(_, place)) = said.open.last().filter(|(depth, _)| *depth == parser.depth() + 1)
                {
                    said.values[place].1.end = said.text.len();
                    said.open.pop();
                }
                if parser.depth() < depth {
                    return Ok((begin..out.bytes.len(), has_children));
                }
            }
            Event::Eof => return Err(Error::Malformed("an end before the root's".into())),
        }
    }
}
