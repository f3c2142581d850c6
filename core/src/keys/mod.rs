//! Keys of a record: terms of the index that stand for a value as a whole.
//!
//! Words find what is about something; keys find the very thing: a record by any of its identifiers, the records of a
//! person, the record of a title that was pasted whole. They have marks of their own, and count for no length and no norm.

pub mod identifiers;
pub mod media;
pub mod people;
pub mod values;

use std::collections::HashSet;

use ahash::RandomState;

use crate::metadata::Metadata;
use people::{names, record_keys};
use values::{author_term, title_keys, title_term, value_term};

/// How many values of an element, and names in a value, are looked at.
const MOST: usize = 200;
const MOST_IDENTIFIERS: usize = 50;
const MOST_TITLES: usize = 2;

/// Begins a key: an identifier, a contributor, a creator (`indlet.model.KEY_MARKS`).
const IDENTIFIER: &str = "\x1fi";
const CONTRIBUTOR: &str = "\x1fm";
const CREATOR: &str = "\x1fn";

/// The terms of all keys of a record, each once.
pub fn record_terms(identifier: &str, metadata: &Metadata) -> Vec<String> {
    let mut out = Terms::default();
    let language = metadata.get("language").first().map_or("en", |language| language);
    out.identifier(identifier);
    metadata.get("identifier").iter().take(MOST_IDENTIFIERS).for_each(|value| out.identifier(value));
    for (place, value) in metadata.get("creator").iter().take(MOST).enumerate() {
        out.person(CREATOR, value);
        names(value).take(MOST).for_each(|name| out.add(value_term("creator", name)));
        if place == 0 {
            out.add(names(value).map(author_term).find(|term| !term.is_empty()).unwrap_or_default());
        }
    }
    metadata.get("contributor").iter().take(MOST).for_each(|value| out.person(CONTRIBUTOR, value));
    for (place, title) in metadata.get("title").iter().take(MOST_TITLES).enumerate() {
        title_keys(title).into_iter().for_each(|key| out.add(key));
        if let Some((before, _)) = title.split_once(':')
            && before.split(crate::text::tokens::is_space).filter(|word| !word.is_empty()).count() > 2
        {
            title_keys(before).into_iter().for_each(|key| out.add(key));
        }
        if place == 0 {
            out.add(title_term(title, language));
        }
    }
    for value in metadata.get("format").iter().take(MOST) {
        let name = media::file_format(value);
        if !name.is_empty() {
            out.add(value_term("format", &name));
        }
    }
    for facet in ["subject", "inferred_subject", "inferred_type"] {
        metadata.get(facet).iter().take(MOST).for_each(|value| out.add(value_term(facet, value)));
    }
    out.terms
}

/// Terms in their order, each once.
#[derive(Default)]
struct Terms {
    terms: Vec<String>,
    seen: HashSet<String, RandomState>,
}

impl Terms {
    fn add(&mut self, term: String) {
        if !term.is_empty() && self.seen.insert(term.clone()) {
            self.terms.push(term);
        }
    }

    fn identifier(&mut self, value: &str) {
        identifiers::keys_of(value).into_iter().for_each(|key| self.add(format!("{IDENTIFIER}{key}")));
    }

    fn person(&mut self, mark: &str, value: &str) {
        for key in names(value).take(MOST).flat_map(record_keys) {
            self.add(format!("{mark}{key}"));
        }
    }
}
