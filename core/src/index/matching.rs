//! Which documents of a segment match an expression.

use super::bitset::BitSet;
use super::codec::PostingList;
use super::dictionary::Spans;
use super::segment::{FACETS, Segment};
use crate::Result;

/// What can be asked of the index: `indlet.service.index.expression`. Terms are bytes of UTF-8.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    Term { term: Vec<u8>, weight: f64 },
    Phrase { terms: Vec<Vec<u8>>, offsets: Vec<i64>, weight: f64 },
    Prefix { prefix: Vec<u8>, limit: usize },
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Not(Box<Expression>),
    Filter { facet: String, value: String },
    Dates { low: i64, high: i64 },
    Ids(Vec<i64>),
    Everything,
    Positioned,
}

impl Expression {
    /// The parts that count for the score.
    pub fn positive<'a>(&'a self, out: &mut Vec<&'a Expression>) {
        match self {
            Expression::Term { .. } | Expression::Phrase { .. } | Expression::Prefix { .. } => out.push(self),
            Expression::And(parts) | Expression::Or(parts) => parts.iter().for_each(|part| part.positive(out)),
            _ => (),
        }
    }

    /// Whether it asks for any of some terms, and nothing else: then the lists of the terms are all that matches.
    pub fn is_any_of_terms(&self) -> bool {
        match self {
            Expression::Term { .. } => true,
            Expression::Or(parts) => parts.iter().all(|part| matches!(part, Expression::Term { .. })),
            _ => false,
        }
    }
}

/// Evaluates expressions over one segment.
pub struct Matcher<'a> {
    segment: &'a Segment,
    /// A phrase was matched as a conjunction in live documents whose positions are not known.
    pub loose: bool,
}

impl<'a> Matcher<'a> {
    pub fn new(segment: &'a Segment) -> Matcher<'a> {
        Matcher { segment, loose: false }
    }

    /// The matching documents, deleted ones too.
    pub fn matching(&mut self, expression: &Expression) -> Result<BitSet> {
        let size = self.segment.size();
        let columns = &self.segment.data.columns;
        Ok(match expression {
            Expression::Term { term, .. } => self.holding(term)?,
            Expression::Phrase { terms, offsets, .. } => self.phrase(terms, offsets)?,
            Expression::Prefix { prefix, .. } => self.prefixed(prefix)?,
            Expression::And(parts) => {
                let mut out = BitSet::full(size);
                for part in parts {
                    out.intersect(&self.matching(part)?);
                }
                out
            }
            Expression::Or(parts) => {
                let mut out = BitSet::empty(size);
                for part in parts {
                    match part {
                        Expression::Term { term, .. } => self.mark(term, &mut out)?,
                        _ => out.unite(&self.matching(part)?),
                    }
                }
                out
            }
            Expression::Not(part) => {
                let mut out = self.matching(part)?;
                out.invert();
                out
            }
            Expression::Filter { facet, value } => self.filter(facet, value)?,
            Expression::Dates { low, high } => {
                let (low, high) = ((*low).max(1), (*high).max(0));
                BitSet::collect(size, |doc| (low..=high).contains(&i64::from(columns.dates[doc])))
            }
            Expression::Ids(ids) => {
                let mut out = BitSet::empty(size);
                ids.iter().filter_map(|&id| self.segment.data.document(id)).for_each(|doc| out.insert(doc));
                out
            }
            Expression::Everything => BitSet::full(size),
            Expression::Positioned => self.segment.data.placed.clone().unwrap_or_else(|| BitSet::empty(size)),
        })
    }

    fn find(&self, term: &[u8]) -> Result<Option<(PostingList<'a>, Spans)>> {
        let data = &self.segment.data;
        match data.dictionary().find(term)? {
            None => Ok(None),
            Some((_, spans)) => Ok(Some((data.list(spans)?, spans))),
        }
    }

    fn mark(&self, term: &[u8], out: &mut BitSet) -> Result<()> {
        match self.find(term)? {
            None => Ok(()),
            Some((list, _)) => list.for_each_doc(|doc| out.insert(doc as usize)),
        }
    }

    fn holding(&self, term: &[u8]) -> Result<BitSet> {
        let mut out = BitSet::empty(self.segment.size());
        self.mark(term, &mut out)?;
        Ok(out)
    }

    fn prefixed(&self, prefix: &[u8]) -> Result<BitSet> {
        let mut out = BitSet::empty(self.segment.size());
        let dictionary = self.segment.data.dictionary();
        let mut terms = dictionary.from(prefix)?;
        while terms.advance()? && terms.term().starts_with(prefix) {
            self.segment.data.list(terms.spans())?.for_each_doc(|doc| out.insert(doc as usize))?;
        }
        Ok(out)
    }

    fn phrase(&mut self, terms: &[Vec<u8>], offsets: &[i64]) -> Result<BitSet> {
        let data = &self.segment.data;
        let mut together = BitSet::full(self.segment.size());
        let mut lists = Vec::new();
        for term in terms {
            together.intersect(&self.holding(term)?);
            lists.extend(self.find(term)?);
        }
        if together.is_empty() || lists.len() != terms.len() {
            return Ok(BitSet::empty(self.segment.size()));
        }
        let Some(placed) = &data.placed else {
            self.note_loose(terms, &together);
            return Ok(together);
        };
        let mut out = together.clone();
        out.subtract(placed);
        self.note_loose(terms, &out);
        let mut wanted = together;
        wanted.intersect(placed);
        // (document, position) of the first term, for each occurrence that all terms so far agree upon.
        let mut common: Option<Vec<(u32, i64)>> = None;
        for (number, (list, spans)) in lists.iter().enumerate() {
            let offset = offsets.get(number).copied().unwrap_or(number as i64);
            let shift = offset - offsets.first().copied().unwrap_or(0);
            let mut here = Vec::new();
            let mut places = data.positions(*spans)?;
            list.for_each(|doc, tf| {
                if placed.contains(doc as usize) {
                    let taken = wanted.contains(doc as usize);
                    read_positions(&mut places, tf, |position| {
                        if taken {
                            here.push((doc, position - shift));
                        }
                    });
                }
            })?;
            common = Some(match common {
                None => here,
                Some(before) => intersect_sorted(&before, &here),
            });
        }
        common.unwrap_or_default().iter().for_each(|&(doc, _)| out.insert(doc as usize));
        Ok(out)
    }

    fn note_loose(&mut self, terms: &[Vec<u8>], docs: &BitSet) {
        if terms.len() > 1 && docs.iter().any(|doc| self.segment.is_live(doc)) {
            self.loose = true;
        }
    }

    fn filter(&self, facet: &str, value: &str) -> Result<BitSet> {
        let Some(number) = FACETS.iter().position(|name| *name == facet) else {
            return Ok(BitSet::empty(self.segment.size()));
        };
        let column = self.segment.data.facet(number)?;
        let wanted = caseless::default_case_fold_str(value);
        let below = format!("{wanted}:");
        let hit: Vec<bool> = column
            .values
            .iter()
            .map(|own| {
                let own = caseless::default_case_fold_str(own);
                own == wanted || (facet == "set" && own.starts_with(&below))
            })
            .collect();
        let size = self.segment.size();
        if !hit.contains(&true) {
            return Ok(BitSet::empty(size));
        }
        Ok(BitSet::collect(size, |doc| column.codes_of(doc).iter().any(|&code| hit[code as usize])))
    }
}

/// The last position that a document can have: what is malformed says nothing of other documents.
const LAST: i64 = (1 << 33) - 1;

fn read_positions(places: &mut &[u8], tf: u32, mut f: impl FnMut(i64)) {
    let mut position = 0i64;
    for _ in 0..tf {
        let (mut value, mut shift) = (0i64, 0);
        loop {
            let Some((&byte, rest)) = places.split_first() else { return };
            *places = rest;
            if shift < 35 {
                value |= i64::from(byte & 0x7F) << shift;
            }
            if byte < 0x80 {
                break;
            }
            shift += 7;
        }
        position = (position + value).min(LAST);
        f(position);
    }
}

fn intersect_sorted(a: &[(u32, i64)], b: &[(u32, i64)]) -> Vec<(u32, i64)> {
    let (mut out, mut j) = (Vec::new(), 0);
    for &one in a {
        while j < b.len() && b[j] < one {
            j += 1;
        }
        if j < b.len() && b[j] == one && out.last() != Some(&one) {
            out.push(one);
        }
    }
    out
}
