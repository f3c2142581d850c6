//! The terms of an index part in `tf_compact` or `tf_basic`, as they are stored.

use std::collections::HashSet;

use ahash::RandomState;

use super::xml::{Event, Parser};
use crate::Result;
use crate::text::tokens::is_space;

const NAMESPACE: &str = "urn:indlet:tf:1.0";
const LARGEST: u64 = (1 << 31) - 1;

/// A vector in canonical form (`indlet.model.TermVector`).
#[derive(Debug, PartialEq)]
pub struct Vector {
    pub packed: Vec<u8>,
    pub length: u64,
    pub language: String,
}

fn number(value: Option<&str>) -> Option<u64> {
    let digits = value?.trim_matches(is_space);
    let good = (1..=10).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|&number| good && number <= LARGEST)
}

/// Read the element whose start came last, and go behind its end. None for what is written in another way, or not in
/// canonical order: the format's own reader has to look at it.
pub fn read(parser: &mut Parser) -> Result<Option<Vector>> {
    let depth = parser.depth();
    let is_ours = |parser: &Parser, name: &str| {
        parser.name.local == name && parser.namespace(parser.name.prefix).is_some_and(|uri| uri == NAMESPACE)
    };
    let Some(length) = number(parser.attribute("length")).filter(|_| is_ours(parser, "terms")) else {
        return Ok(None);
    };
    let language: String = parser.attribute("lang").unwrap_or_default().chars().take(35).collect();
    let mut groups: Vec<(u64, Vec<String>)> = Vec::new();
    loop {
        match parser.next()? {
            Event::Start if is_ours(parser, "t") && parser.attributes.len() == 1 => {
                let Some(frequency) = number(parser.attribute("f")) else { return Ok(None) };
                let Some(text) = plain_text(parser)? else { return Ok(None) };
                let words = text.split(is_space).filter(|word| !word.is_empty());
                groups.push((frequency, words.map(str::to_owned).collect()));
            }
            Event::Start if is_ours(parser, "term") && parser.attributes.len() == 2 => {
                let frequency = number(parser.attribute("freq"));
                let name = parser
                    .attribute("name")
                    .filter(|name| !name.is_empty() && !name.contains(is_space))
                    .map(str::to_owned);
                let (Some(frequency), Some(name)) = (frequency, name) else { return Ok(None) };
                if plain_text(parser)?.is_none_or(|text| !text.is_empty()) {
                    return Ok(None);
                }
                match groups.last_mut() {
                    Some((last, words)) if *last == frequency => words.push(name),
                    _ => groups.push((frequency, vec![name])),
                }
            }
            Event::End(_) if parser.depth() < depth => break,
            Event::Text(text) if text.chars().all(is_space) => {}
            _ => return Ok(None),
        }
    }
    Ok(pack(&groups).map(|(packed, total)| Vector { packed, length: length.max(total), language }))
}

/// How many terms a packed vector has, and the sum of their frequencies; both of a vector in canonical form.
pub fn size(packed: &[u8]) -> (u64, u64) {
    let (mut terms, mut total) = (0, 0u64);
    for line in packed.split(|&byte| byte == b'\n') {
        let frequency = line.iter().take_while(|byte| byte.is_ascii_digit());
        let frequency =
            frequency.fold(0u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
        let count = memchr::memchr_iter(b' ', line).count() as u64;
        terms += count;
        total = total.saturating_add(count.saturating_mul(frequency));
    }
    (terms, total)
}

/// The text of an element; none if there are elements in it.
fn plain_text(parser: &mut Parser) -> Result<Option<String>> {
    let mut out = String::new();
    loop {
        match parser.next()? {
            Event::Text(text) => out.push_str(text),
            Event::Character(c) => out.push(c),
            Event::End(_) => return Ok(Some(out)),
            _ => return Ok(None),
        }
    }
}

/// The packed vector and the sum of its frequencies, if frequencies rise, words of each are sorted, and none is twice.
fn pack(groups: &[(u64, Vec<String>)]) -> Option<(Vec<u8>, u64)> {
    let (mut packed, mut total, mut last) = (Vec::new(), 0u64, 0);
    let count = groups.iter().map(|(_, words)| words.len()).sum();
    let mut seen: HashSet<&str, RandomState> = HashSet::with_capacity_and_hasher(count, RandomState::new());
    for (frequency, words) in groups {
        if *frequency <= last || words.is_empty() || !words.is_sorted() || !words.iter().all(|word| seen.insert(word)) {
            return None;
        }
        last = *frequency;
        total = total.checked_add(frequency.checked_mul(words.len() as u64)?)?;
        if !packed.is_empty() {
            packed.push(b'\n');
        }
        packed.extend_from_slice(frequency.to_string().as_bytes());
        for word in words.iter() {
            packed.push(b' ');
            packed.extend_from_slice(word.as_bytes());
        }
    }
    Some((packed, total))
}
