//! How many of the matching documents have which value: counted as the filter of that value would find them.
//!
//! Columns: a filter minds no case, and one for a set means those below it, too. So values that differ in case alone
//! count as one, under the spelling that most have, and a set counts what is in any set below it. Values of any number
//! (creators, subjects, formats) are terms of the dictionary: a mark, a key, a separator and a spelling.

use std::collections::HashMap;

use ahash::RandomState;

use super::bitset::BitSet;
use super::groups::Groups;
use super::segment::{FACETS, Segment};
use crate::{Error, Result};

/// Stands between the key and the spelling of a value, and for a space in both (`indlet.service.index.values`).
const SEPARATOR: u8 = 1;

type Counts<K> = HashMap<K, u64, RandomState>;

/// Keys of a column's values, which are what is counted: of value v the keys `keys[v]`, spelt `spellings[v]`.
struct Keys {
    names: Vec<String>,
    keys: Vec<Vec<u32>>,
    spellings: Vec<Vec<String>>,
}

fn column_keys(values: &[String], hierarchical: bool) -> Keys {
    let mut numbers: HashMap<String, u32, RandomState> = HashMap::default();
    let mut out = Keys { names: Vec::new(), keys: Vec::new(), spellings: Vec::new() };
    for value in values {
        let (mut keys, mut spellings) = (Vec::new(), Vec::new());
        let mut end = value.len();
        loop {
            let spelling = &value[..end];
            let key = caseless::default_case_fold_str(spelling);
            let number = *numbers.entry(key.clone()).or_insert_with(|| {
                out.names.push(key);
                out.names.len() as u32 - 1
            });
            keys.push(number);
            spellings.push(spelling.to_owned());
            match value[..end].rfind(':').filter(|_| hierarchical) {
                Some(colon) => end = colon,
                None => break,
            }
        }
        out.keys.push(keys);
        out.spellings.push(spellings);
    }
    out
}

/// Count a facet that is a column over the matching documents, most frequent first; a group counts once for a value.
pub fn count_column(
    segments: &[Segment],
    matching: &[BitSet],
    groups: &Groups,
    facet: usize,
) -> Result<Vec<(String, u64)>> {
    let mut totals: Counts<String> = Counts::default();
    let mut spelt: HashMap<String, Counts<String>, RandomState> = HashMap::default();
    let mut of_groups: HashMap<u32, Vec<String>, RandomState> = HashMap::default();
    for (number, (segment, docs)) in segments.iter().zip(matching).enumerate() {
        let column = segment.data.facet(facet)?;
        let keys = column_keys(&column.values, FACETS[facet] == "set");
        let mut by_code = vec![0u64; column.values.len()];
        let mut by_key = vec![0u64; keys.names.len()];
        let mut own: Vec<u32> = Vec::new();
        for doc in docs.iter() {
            let codes = column.codes_of(doc);
            codes.iter().for_each(|&code| by_code[code as usize] += 1);
            own.clear();
            for &key in codes.iter().flat_map(|&code| &keys.keys[code as usize]) {
                if !own.contains(&key) {
                    own.push(key);
                }
            }
            match groups.group(number, doc) {
                0 => own.iter().for_each(|&key| by_key[key as usize] += 1),
                group => {
                    let having = of_groups.entry(group).or_default();
                    for &key in &own {
                        if !having.contains(&keys.names[key as usize]) {
                            having.push(keys.names[key as usize].clone());
                        }
                    }
                }
            }
        }
        for (key, &count) in keys.names.iter().zip(&by_key).filter(|(_, count)| **count > 0) {
            *totals.entry(key.clone()).or_default() += count;
        }
        for (code, &count) in by_code.iter().enumerate().filter(|(_, count)| **count > 0) {
            for (&key, spelling) in keys.keys[code].iter().zip(&keys.spellings[code]) {
                let spellings = spelt.entry(keys.names[key as usize].clone()).or_default();
                *spellings.entry(spelling.clone()).or_default() += count;
            }
        }
    }
    for key in of_groups.into_values().flatten() {
        *totals.entry(key).or_default() += 1;
    }
    let name = |key: &String| most_frequent(spelt.get(key)).unwrap_or_else(|| key.clone());
    let mut out: Vec<(String, u64)> = totals.iter().map(|(key, &count)| (name(key), count)).collect();
    out.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(out)
}

/// The most frequent spelling; of equally frequent ones the first by name.
fn most_frequent(spellings: Option<&Counts<String>>) -> Option<String> {
    let best = spellings?.iter().min_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)))?;
    Some(best.0.clone())
}

/// A facet whose values are terms of the dictionary, in one segment.
pub struct ValueColumn {
    /// The keys in ascending order, without mark and spelling, and the number of the first term of each.
    pub keys: Vec<Vec<u8>>,
    first: Vec<u32>,
    terms_end: u32,
    /// Document d has the keys numbered `codes[starts[d]..starts[d + 1]]`, ascending.
    starts: Vec<u32>,
    codes: Vec<u32>,
}

impl ValueColumn {
    /// Read the column back from the lists of the terms that begin with a mark.
    pub fn read(segment: &Segment, mark: &[u8]) -> Result<ValueColumn> {
        let data = &segment.data;
        let mut terms = data.dictionary().from(mark)?;
        let (mut keys, mut first, mut pairs) = (Vec::<Vec<u8>>::new(), Vec::new(), Vec::<(u32, u32)>::new());
        let mut terms_end = 0;
        while terms.advance()? && terms.term().starts_with(mark) {
            let rest = &terms.term()[mark.len()..];
            let key = rest.split(|&byte| byte == SEPARATOR).next().unwrap_or_default();
            if keys.last().is_none_or(|last| last != key) {
                keys.push(key.to_vec());
                first.push(terms.number() as u32);
            }
            terms_end = terms.number() as u32 + 1;
            let number = keys.len() as u32 - 1;
            data.list(terms.spans())?.for_each_doc(|doc| pairs.push((doc, number)))?;
        }
        // Pairs come key by key: counting by documents keeps the keys of each in order.
        let mut starts = vec![0u32; segment.size() + 1];
        pairs.iter().for_each(|&(doc, _)| starts[doc as usize + 1] += 1);
        (0..segment.size()).for_each(|doc| starts[doc + 1] += starts[doc]);
        let (mut codes, mut at) = (vec![0; pairs.len()], starts.clone());
        for (doc, number) in pairs {
            codes[at[doc as usize] as usize] = number;
            at[doc as usize] += 1;
        }
        Ok(ValueColumn { keys, first, terms_end, starts, codes })
    }

    fn codes_of(&self, doc: usize) -> &[u32] {
        &self.codes[self.starts[doc] as usize..self.starts[doc + 1] as usize]
    }

    /// How often each spelling of a key is live.
    fn spellings(&self, segment: &Segment, key: usize, out: &mut Counts<Vec<u8>>) -> Result<()> {
        let end = self.first.get(key + 1).copied().unwrap_or(self.terms_end);
        let mut terms = segment.data.dictionary().from_number(self.first[key] as usize)?;
        for _ in self.first[key]..end {
            terms.advance()?;
            let list = segment.data.list(terms.spans())?;
            let (df, _) = segment.frequencies(terms.number(), &list);
            *out.entry(terms.term().to_vec()).or_default() += u64::from(df);
        }
        Ok(())
    }
}

/// A value of a facet: what tells it from others, and how most records spell it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Value {
    pub key: String,
    pub label: String,
}

/// The value that terms of one key stand for: in the spelling that most have, of equal ones the first.
fn value(mark: &[u8], spellings: &Counts<Vec<u8>>) -> Option<Value> {
    let best = spellings.iter().min_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)))?.0;
    let text = String::from_utf8_lossy(&best[mark.len()..]).replace('\u{2}', " ");
    let (key, label) = text.split_once('\u{1}').unwrap_or((&text, ""));
    Some(Value { key: key.to_owned(), label: label.to_owned() })
}

/// Count the `most` most frequent values of a facet whose values are terms; of equally frequent ones those whose keys
/// come first.
pub fn count_values(
    segments: &[Segment],
    columns: &[&ValueColumn],
    matching: &[BitSet],
    groups: &Groups,
    mark: &[u8],
    most: usize,
) -> Result<Vec<(String, u64)>> {
    let mut totals: Counts<&[u8]> = Counts::default();
    let mut of_groups: HashMap<u32, Vec<&[u8]>, RandomState> = HashMap::default();
    for (number, (column, docs)) in columns.iter().zip(matching).enumerate() {
        let mut counts = vec![0u64; column.keys.len()];
        for doc in docs.iter() {
            let mut codes = column.codes_of(doc).to_vec();
            codes.dedup();
            match groups.group(number, doc) {
                0 => codes.iter().for_each(|&code| counts[code as usize] += 1),
                group => {
                    let having = of_groups.entry(group).or_default();
                    for code in codes {
                        let key = &column.keys[code as usize][..];
                        if !having.contains(&key) {
                            having.push(key);
                        }
                    }
                }
            }
        }
        for (key, &count) in column.keys.iter().zip(&counts).filter(|(_, count)| **count > 0) {
            *totals.entry(key).or_default() += count;
        }
    }
    for key in of_groups.into_values().flatten() {
        *totals.entry(key).or_default() += 1;
    }
    let mut ordered: Vec<(&[u8], u64)> = totals.into_iter().collect();
    let by_count = |a: &(&[u8], u64), b: &(&[u8], u64)| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0));
    if ordered.len() > most {
        if most == 0 {
            return Ok(Vec::new());
        }
        ordered.select_nth_unstable_by(most - 1, by_count);
        ordered.truncate(most);
    }
    ordered.sort_unstable_by(by_count);
    let mut out = Vec::with_capacity(ordered.len());
    for (key, count) in ordered {
        let mut spellings = Counts::default();
        for (segment, column) in segments.iter().zip(columns) {
            if let Ok(number) = column.keys.binary_search_by(|own| own[..].cmp(key)) {
                column.spellings(segment, number, &mut spellings)?;
            }
        }
        out.extend(value(mark, &spellings).map(|value| (value.label, count)));
    }
    Ok(out)
}

/// The values of a facet in the order of their keys: `limit` from a key on or, backwards, the last ones before it.
pub fn list_values(
    segments: &[Segment],
    columns: &[&ValueColumn],
    mark: &[u8],
    start: &[u8],
    limit: usize,
    backwards: bool,
) -> Result<Vec<Value>> {
    let mut at: Vec<usize> = columns.iter().map(|column| column.keys.partition_point(|key| &key[..] < start)).collect();
    let mut found = Vec::new();
    while found.len() < limit {
        let next = |number: usize| {
            let place = if backwards { at[number].checked_sub(1)? } else { at[number] };
            columns[number].keys.get(place).map(|key| &key[..])
        };
        let candidates = (0..columns.len()).filter_map(next);
        let Some(key) = (if backwards { candidates.max() } else { candidates.min() }) else { break };
        let mut spellings = Counts::default();
        let owners: Vec<usize> = (0..columns.len()).filter(|&number| next(number) == Some(key)).collect();
        for number in owners {
            let place = if backwards { at[number] - 1 } else { at[number] };
            columns[number].spellings(&segments[number], place, &mut spellings)?;
            at[number] = if backwards { place } else { place + 1 };
        }
        if spellings.values().any(|&df| df > 0) {
            found.extend(value(mark, &spellings));
        }
    }
    if backwards {
        found.reverse();
    }
    Ok(found)
}

/// The number of a facet that is a column.
pub fn column_number(facet: &str) -> Result<usize> {
    FACETS
        .iter()
        .position(|name| *name == facet)
        .ok_or_else(|| Error::Value(format!("there is no facet '{facet}': choose from {}", FACETS.join(", "))))
}
