//! Keys of a record: terms of the index that stand for a value as a whole.
//!
//! Words find what is about something; keys find the very thing: a record by any of its identifiers, the records of a
//! person, the record of a title that was pasted whole. They have marks of their own, and count for no length and no norm.

pub mod identifiers;
pub mod media;
pub mod people;
pub mod values;

use crate::metadata::Metadata;
use crate::text::fold_spaces;
use crate::text::terms::{TermId, TermTable};
use people::Name;
use values::{push_packed, push_title, push_value, title_key};

/// How many values of an element, and names in a value, are looked at.
const MOST: usize = 200;
const MOST_IDENTIFIERS: usize = 50;
const MOST_TITLES: usize = 2;

/// The terms of all keys of a record, each once. Keep it for the next record.
#[derive(Default)]
pub struct RecordKeys {
    terms: TermTable,
    term: String,
}

impl RecordKeys {
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.terms.len()).map(|id| self.terms.get(id as TermId))
    }

    /// Add a term: its mark, and what `write` adds to that; no term if it adds nothing.
    fn add(&mut self, mark: &str, write: impl FnOnce(&mut String)) {
        self.term.clear();
        self.term.push_str(mark);
        write(&mut self.term);
        if self.term.len() > mark.len() {
            self.terms.intern(self.term.as_bytes());
        }
    }

    fn add_identifier(&mut self, value: &str) {
        for key in identifiers::keys_of(value) {
            self.add("\x1fi", |out| out.push_str(&key));
        }
    }

    /// Add the keys of a creator or contributor.
    fn add_person(&mut self, mark: &str, name: &Name) {
        for key in name.record_keys() {
            self.add(mark, |out| out.push_str(&key));
        }
    }

    fn add_value(&mut self, facet: &str, key: &str, value: &str) {
        self.add(values::mark(facet).unwrap_or_default(), |out| push_value(out, key, value));
    }

    /// Forget the terms of the record before, and make those of another.
    pub fn describe(&mut self, identifier: &str, metadata: &Metadata) {
        self.terms.clear();
        let language = metadata.get("language").first().map_or("en", |language| language);
        self.add_identifier(identifier);
        metadata.get("identifier").iter().take(MOST_IDENTIFIERS).for_each(|value| self.add_identifier(value));
        for (place, value) in metadata.get("creator").iter().take(MOST).enumerate() {
            let mut is_filed = place > 0;
            for written in people::names(value).take(MOST) {
                let name = Name::parse(written);
                self.add_person("\x1fn", &name);
                let filed = values::cut_key(&name.filing_form());
                self.add_value("creator", &filed, written);
                if !is_filed {
                    self.add("\x1fA", |out| push_packed(out, &filed));
                    is_filed = !filed.is_empty();
                }
            }
        }
        for value in metadata.get("contributor").iter().take(MOST) {
            people::names(value).take(MOST).for_each(|name| self.add_person("\x1fm", &Name::parse(name)));
        }
        for (place, title) in metadata.get("title").iter().take(MOST_TITLES).enumerate() {
            self.add("", |out| out.push_str(&title_key(title).unwrap_or_default()));
            if let Some((before, _)) = title.split_once(':')
                && fold_spaces(before).split(' ').count() > 2
            {
                self.add("", |out| out.push_str(&title_key(before).unwrap_or_default()));
            }
            if place == 0 {
                self.add("\x1fT", |out| push_title(out, title, language));
            }
        }
        for value in metadata.get("format").iter().take(MOST) {
            let name = media::file_format(value);
            self.add_value("format", &values::value_key("format", &name), &name);
        }
        for facet in ["subject", "inferred_subject", "inferred_type"] {
            for value in metadata.get(facet).iter().take(MOST) {
                self.add_value(facet, &values::value_key(facet, value), value);
            }
        }
    }
}
