//! A snapshot of the index, and the questions it answers.
//!
//! A searcher never changes. Ranking does not depend on how documents are spread over segments: scores are equal bit for
//! bit, and equal scores are ordered by a hash of the record's identifier.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use ahash::RandomState;

use super::bitset::BitSet;
use super::codec::PostingList;
use super::derived::NameOrder;
use super::distance::Distances;
use super::facets::{self, Value, ValueColumn};
use super::groups::Groups;
use super::matching::{Expression, Matcher};
use super::merge::Union;
use super::segment::Segment;
use super::top::{Hit, Query, Ranker, Visible};
use super::{first_with, mark_of};
use crate::rank::{Constants, Formula, Interpreted, Model, QueryConstants, Use, with_model};
use crate::{Error, Result};

/// A term of a query with its exact statistics. `weight` is how often it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryTerm {
    pub term: Vec<u8>,
    pub weight: f64,
    pub df: u64,
    pub cf: u64,
}

/// How documents are scored: `terms` in canonical order, by a model with these numbers or by a formula.
pub struct Scoring<'a> {
    pub terms: &'a [Vec<u8>],
    pub constants: &'a [Constants],
    pub query: QueryConstants,
    pub model: &'a str,
    pub parameters: &'a [f64],
    pub formula: Option<&'a dyn Formula>,
}

impl Scoring<'_> {
    fn with_model<U: Use>(&self, user: U) -> Result<U::Output> {
        match self.formula {
            Some(formula) => Ok(user.with(Interpreted(formula))),
            None => with_model(self.model, self.parameters, user)
                .ok_or_else(|| Error::Value(format!("there is no model {:?}", self.model))),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    Score,
    Newest,
    Oldest,
    Title,
    Author,
}

/// The terms that records are sorted by begin with these.
const TITLE: &[u8] = b"\x1fT";
const AUTHOR: &[u8] = b"\x1fA";

pub struct Request<'a> {
    pub expression: &'a Expression,
    pub scoring: &'a Scoring<'a>,
    pub limit: usize,
    pub offset: usize,
    pub filters: &'a [Expression],
    pub sort: Sort,
    /// Names of facets that are columns, or the marks of those whose values are terms.
    pub facets: &'a [Facet],
    pub collapse: bool,
    pub first: &'a [Expression],
    pub values: usize,
}

#[derive(Debug, Clone)]
pub enum Facet {
    Column(String),
    Values(Vec<u8>),
}

#[derive(Debug, Default, PartialEq)]
pub struct Page {
    pub total: usize,
    pub hits: Vec<Hit>,
    pub facets: Vec<Vec<(String, u64)>>,
    pub loose: bool,
    pub ahead: usize,
}

pub struct Searcher {
    pub segments: Vec<Segment>,
    groups: OnceLock<Groups>,
    sizes: OnceLock<(u64, u64)>,
}

impl Searcher {
    pub fn new(segments: Vec<Segment>) -> Searcher {
        Searcher { segments, groups: OnceLock::new(), sizes: OnceLock::new() }
    }

    pub fn documents(&self) -> usize {
        self.segments.iter().map(|segment| segment.documents).sum()
    }

    pub fn length(&self) -> u64 {
        self.segments.iter().map(|segment| segment.length).sum()
    }

    /// This snapshot as if the records of these origins did not exist; `None` if there are none.
    pub fn without(&self, origins: &[String]) -> Result<Option<Searcher>> {
        let mut changed = false;
        let mut shown = Vec::new();
        for segment in &self.segments {
            let hiding = segment.hiding(origins)?;
            changed |= hiding.is_some();
            let segment = hiding.unwrap_or_else(|| segment.clone());
            if segment.documents > 0 {
                shown.push(segment);
            }
        }
        Ok(changed.then(|| Searcher::new(shown)))
    }

    pub fn groups(&self) -> Result<&Groups> {
        if let Some(groups) = self.groups.get() {
            return Ok(groups);
        }
        let groups = Groups::find(&self.segments)?;
        Ok(self.groups.get_or_init(|| groups))
    }

    // ---- terms

    /// df and cf of a term in all segments.
    pub fn frequencies(&self, term: &[u8]) -> Result<(u64, u64)> {
        let (mut df, mut cf) = (0, 0);
        for segment in &self.segments {
            if let Some((number, spans)) = segment.data.dictionary().find(term)? {
                let found = segment.frequencies(number, &segment.data.list(spans)?);
                df += u64::from(found.0);
                cf += found.1;
            }
        }
        Ok((df, cf))
    }

    /// The terms that count for a score and that some record holds: rarest first, then by their bytes.
    pub fn query_terms(&self, expression: &Expression) -> Result<Vec<QueryTerm>> {
        let mut leaves = Vec::new();
        expression.positive(&mut leaves);
        let mut weights: Vec<(Vec<u8>, f64)> = Vec::new();
        let mut places: HashMap<Vec<u8>, usize, RandomState> = HashMap::default();
        let mut add = |term: Vec<u8>, weight: f64| match places.get(&term) {
            Some(&at) => weights[at].1 += weight,
            None => {
                places.insert(term.clone(), weights.len());
                weights.push((term, weight));
            }
        };
        for leaf in leaves {
            match leaf {
                Expression::Term { term, weight } => add(term.clone(), positive(*weight)?),
                Expression::Phrase { terms, weight, .. } => {
                    let weight = positive(*weight)?;
                    terms.iter().for_each(|term| add(term.clone(), weight));
                }
                Expression::Prefix { prefix, limit } => {
                    self.terms(prefix, Some(*limit))?.into_iter().for_each(|(term, _, _)| add(term, 1.0));
                }
                _ => (),
            }
        }
        let mut out = Vec::with_capacity(weights.len());
        for (term, weight) in weights {
            let (df, cf) = self.frequencies(&term)?;
            if df > 0 {
                out.push(QueryTerm { term, weight, df, cf });
            }
        }
        out.sort_by(|a, b| a.df.cmp(&b.df).then_with(|| a.term.cmp(&b.term)));
        Ok(out)
    }

    /// Call `f` with each term from the first that is not less than `from`, its df and cf; until it says no.
    fn for_each_term(&self, from: &[u8], mut f: impl FnMut(&[u8], u64, u64) -> bool) -> Result<()> {
        let mut union = Union::from(&self.segments, from)?;
        while union.advance()? {
            let (mut df, mut cf) = (0, 0);
            for &owner in &union.owners {
                let (segment, terms) = (&self.segments[owner], &union.streams[owner]);
                let found = segment.frequencies(terms.number(), &segment.data.list(terms.spans())?);
                df += u64::from(found.0);
                cf += found.1;
            }
            if df > 0 && !f(&union.term, df, cf) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Terms that begin so with their df and cf: the `limit` most frequent ones, most frequent first.
    pub fn terms(&self, prefix: &[u8], limit: Option<usize>) -> Result<Vec<(Vec<u8>, u64, u64)>> {
        let limit = limit.unwrap_or(usize::MAX);
        let better = |a: &(Vec<u8>, u64, u64), b: &(Vec<u8>, u64, u64)| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0));
        let (mut found, mut least) = (Vec::new(), 0);
        self.for_each_term(prefix, |term, df, cf| {
            if !term.starts_with(prefix) {
                return false;
            }
            if df >= least {
                found.push((term.to_vec(), df, cf));
                // Keep no more than twice as many as are wanted.
                if limit > 0 && found.len() / 2 >= limit {
                    found.select_nth_unstable_by(limit - 1, better);
                    found.truncate(limit);
                    least = found[limit - 1].1;
                }
            }
            true
        })?;
        found.sort_unstable_by(better);
        found.truncate(limit);
        Ok(found)
    }

    /// Every term with its df and cf, in the order of bytes: `limit` of them, after a term.
    pub fn vocabulary(&self, after: Option<&[u8]>, limit: usize) -> Result<Vec<(Vec<u8>, u64, u64)>> {
        let mut found = Vec::new();
        self.for_each_term(after.unwrap_or_default(), |term, df, cf| {
            if after != Some(term) {
                found.push((term.to_vec(), df, cf));
            }
            found.len() < limit
        })?;
        Ok(found)
    }

    /// Terms at most so many edits of bytes away from a word, with the edits and df. An edit puts in, takes out or
    /// changes a byte, or swaps two neighbours (optimal string alignment). Terms of other fields are not near.
    pub fn near(&self, word: &[u8], edits: u8) -> Result<Vec<(Vec<u8>, u8, u64)>> {
        let mark = mark_of(word);
        let mut best: HashMap<Vec<u8>, (u8, u64), RandomState> = HashMap::default();
        for segment in &self.segments {
            let mut distances = Distances::new(word, edits);
            let mut terms = segment.data.dictionary().from(first_with(mark))?;
            while terms.advance()? && terms.term().starts_with(mark) {
                let Some(distance) = distances.to(terms.term()) else { continue };
                let (df, _) = segment.frequencies(terms.number(), &segment.data.list(terms.spans())?);
                if df > 0 {
                    best.entry(terms.term().to_vec()).or_insert((distance, 0)).1 += u64::from(df);
                }
            }
        }
        Ok(best.into_iter().map(|(term, (distance, df))| (term, distance, df)).collect())
    }

    /// The terms that are this one but for their accents, and that some record holds.
    pub fn accented(&self, plain: &str) -> Result<Vec<String>> {
        let mark = mark_of(plain.as_bytes());
        let mut found: Vec<String> = Vec::new();
        for segment in &self.segments {
            for term in segment.data.derived.accented(segment, mark)?.get(plain).into_iter().flatten() {
                if !found.contains(term) && self.frequencies(term.as_bytes())?.0 > 0 {
                    found.push(term.clone());
                }
            }
        }
        Ok(found)
    }

    /// The number of terms and of postings; counted once.
    pub fn sizes(&self) -> Result<(u64, u64)> {
        if let Some(sizes) = self.sizes.get() {
            return Ok(*sizes);
        }
        let (mut terms, mut postings) = (0, 0);
        self.for_each_term(&[], |_, df, _| {
            terms += 1;
            postings += df;
            true
        })?;
        Ok(*self.sizes.get_or_init(|| (terms, postings)))
    }

    /// A digest of all statistics: equal for equal content, however the index is laid out.
    pub fn fingerprint(&self) -> Result<String> {
        let mut state = blake2b_simd::Params::new().hash_length(16).to_state();
        state.update(format!("{} {}\n", self.documents(), self.length()).as_bytes());
        self.for_each_term(&[], |term, df, cf| {
            state.update(term);
            state.update(format!(" {df} {cf}\n").as_bytes());
            true
        })?;
        let mut rows = Vec::with_capacity(self.documents());
        for segment in &self.segments {
            let columns = &segment.data.columns;
            rows.extend(
                (0..segment.size())
                    .filter(|&doc| segment.is_live(doc))
                    .map(|doc| (columns.ties[doc], columns.lengths[doc], columns.norms[doc], columns.dates[doc])),
            );
        }
        rows.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)).then(a.3.cmp(&b.3)));
        for row in &rows {
            state.update(&row.0.to_le_bytes());
        }
        for row in &rows {
            state.update(&row.1.to_le_bytes());
        }
        for row in &rows {
            state.update(&row.2.to_le_bytes());
        }
        for row in &rows {
            state.update(&row.3.to_le_bytes());
        }
        Ok(state.finalize().to_hex().to_string())
    }

    // ---- documents

    fn locate(&self, id: i64) -> Option<(&Segment, usize)> {
        self.segments.iter().find_map(|segment| {
            let doc = segment.data.document(id).filter(|&doc| segment.is_live(doc))?;
            Some((segment, doc))
        })
    }

    /// A record's tfs of some terms, its length and its norm; `None` if the index does not hold it.
    pub fn document(&self, id: i64, terms: &[Vec<u8>]) -> Result<Option<(Vec<u32>, u32, f64)>> {
        let Some((segment, doc)) = self.locate(id) else { return Ok(None) };
        let columns = &segment.data.columns;
        Ok(Some((tfs_of(&lists_of(segment, terms)?, doc as u32)?, columns.lengths[doc], columns.norms[doc])))
    }

    /// The ids of all records that match, in no particular order.
    pub fn matching_ids(&self, expression: &Expression) -> Result<Vec<i64>> {
        let mut out = Vec::new();
        for segment in &self.segments {
            let mut docs = Matcher::new(segment).matching(expression)?;
            segment.retain_live(&mut docs);
            out.extend(docs.iter().map(|doc| segment.data.columns.ids[doc]));
        }
        Ok(out)
    }

    /// The values of a facet whose values are terms: `limit` from a key on or, backwards, the last ones before it.
    pub fn list_values(&self, mark: &[u8], start: &[u8], limit: usize, backwards: bool) -> Result<Vec<Value>> {
        let columns = self.value_columns(mark)?;
        let columns: Vec<&ValueColumn> = columns.iter().map(|column| &**column).collect();
        facets::list_values(&self.segments, &columns, mark, start, limit, backwards)
    }

    fn value_columns(&self, mark: &[u8]) -> Result<Vec<Arc<ValueColumn>>> {
        let mut out = Vec::new();
        for segment in &self.segments {
            out.push(segment.data.derived.value_column(mark, || ValueColumn::read(segment, mark))?);
        }
        Ok(out)
    }

    // ---- searching

    pub fn search(&self, request: &Request) -> Result<Page> {
        let none = Groups::default();
        let groups = if request.collapse { self.groups()? } else { &none };
        let terms = request.scoring.terms;
        let plain = request.expression.is_any_of_terms()
            && request.sort == Sort::Score
            && request.first.iter().all(|part| holds_one(part, terms));
        let (mut matched, mut hidden, mut loose) = (Vec::new(), Vec::new(), false);
        for segment in &self.segments {
            let mut matcher = Matcher::new(segment);
            let mut excluded = segment.gone().map(Cow::Borrowed);
            for filter in request.filters {
                let mut out = matcher.matching(filter)?;
                out.invert();
                hide(&mut excluded, &out);
            }
            if !plain || !request.facets.is_empty() {
                let mut docs = matcher.matching(request.expression)?;
                excluded.iter().for_each(|excluded| docs.subtract(excluded));
                matched.push(docs);
            }
            hidden.push(excluded);
            loose |= matcher.loose;
        }
        let mut page = match request.sort {
            Sort::Score => self.best(request, groups, (!plain).then_some(&matched[..]), hidden, &mut loose)?,
            _ => self.sorted(request, groups, &matched)?,
        };
        page.loose = loose;
        for facet in request.facets {
            page.facets.push(match facet {
                Facet::Column(name) => {
                    facets::count_column(&self.segments, &matched, groups, facets::column_number(name)?)?
                }
                Facet::Values(mark) => {
                    let columns = self.value_columns(mark)?;
                    let columns: Vec<&ValueColumn> = columns.iter().map(|column| &**column).collect();
                    facets::count_values(&self.segments, &columns, &matched, groups, mark, request.values)?
                }
            });
        }
        Ok(page)
    }

    /// By score: what matches the first expression of `first` comes before what matches the second, and so on. A
    /// resource stands where the best of its records does.
    fn best(
        &self,
        request: &Request,
        groups: &Groups,
        matched: Option<&[BitSet]>,
        mut hidden: Vec<Hidden>,
        loose: &mut bool,
    ) -> Result<Page> {
        let mut page = Page::default();
        let mut seen = BitSet::empty(groups.members.len() + 1);
        let (mut totals, mut left_out) = (Vec::new(), request.offset);
        for tier in 0..=request.first.len() {
            let mut docs = Vec::new();
            if let Some(expression) = request.first.get(tier) {
                for (number, segment) in self.segments.iter().enumerate() {
                    let mut matcher = Matcher::new(segment);
                    let mut own = matcher.matching(expression)?;
                    *loose |= matcher.loose;
                    hidden[number].iter().for_each(|hidden| own.subtract(hidden));
                    if let Some(matched) = matched {
                        own.intersect(&matched[number]);
                    }
                    docs.push(own);
                }
            }
            let matching = if tier < request.first.len() { Some(&docs[..]) } else { matched };
            let wanted = request.limit - page.hits.len();
            let size = if wanted > 0 { left_out.saturating_add(wanted) } else { 0 };
            let (total, hits) = self.best_of(request.scoring, matching, &hidden, groups, &mut seen, size)?;
            page.hits.extend(hits.into_iter().skip(left_out).take(wanted));
            left_out = left_out.saturating_sub(total);
            totals.push(total);
            if total > 0 && tier < request.first.len() {
                self.hide(&mut hidden, &docs, groups);
            }
        }
        page.total = totals.iter().sum();
        let last = totals.iter().rposition(|&total| total > 0).unwrap_or(0);
        page.ahead = totals[..last].iter().sum();
        Ok(page)
    }

    /// Hide some documents, and all others of their groups.
    fn hide(&self, hidden: &mut [Hidden], docs: &[BitSet], groups: &Groups) {
        let mut taken = BitSet::empty(groups.members.len() + 1);
        for (number, own) in docs.iter().enumerate() {
            hide(&mut hidden[number], own);
            if let Some((of, grouped)) = groups.of.get(number) {
                let mut some = own.clone();
                some.intersect(grouped);
                some.iter().for_each(|doc| taken.insert(of[doc] as usize));
            }
        }
        if taken.is_empty() {
            return;
        }
        for (hidden, (of, grouped)) in hidden.iter_mut().zip(&groups.of) {
            hide(hidden, &BitSet::collect(of.len(), |doc| grouped.contains(doc) && taken.contains(of[doc] as usize)));
        }
    }

    /// The best `size` of some documents (of those that hold a term, if none are given), and how many there are.
    fn best_of(
        &self,
        scoring: &Scoring,
        matching: Option<&[BitSet]>,
        hidden: &[Hidden],
        groups: &Groups,
        seen: &mut BitSet,
        size: usize,
    ) -> Result<(usize, Vec<Hit>)> {
        let size = size.min(self.documents());
        let task = Ranking { searcher: self, scoring, matching, hidden, groups, seen, size };
        scoring.with_model(task)?
    }

    /// By date, title or author.
    fn sorted(&self, request: &Request, groups: &Groups, matched: &[BitSet]) -> Result<Page> {
        let mut rows: Vec<Row> = Vec::new();
        for (number, (segment, docs)) in self.segments.iter().zip(matched).enumerate() {
            let columns = &segment.data.columns;
            for doc in docs.iter() {
                let date = i64::from(columns.dates[doc]);
                let key = match request.sort {
                    Sort::Newest if date > 0 => -date,
                    Sort::Oldest if date > 0 => date,
                    Sort::Newest | Sort::Oldest => i64::MAX,
                    _ => 0,
                };
                let group = groups.group(number, doc);
                rows.push(Row { key, tie: columns.ties[doc], id: columns.ids[doc], segment: number, doc, group });
            }
        }
        if !groups.is_empty() {
            // Of each group the first, by key, tie and id.
            let mut firsts: HashMap<u32, (i64, u64, i64), RandomState> = HashMap::default();
            for row in rows.iter().filter(|row| row.group > 0) {
                let order = (row.key, row.tie, row.id);
                firsts.entry(row.group).and_modify(|first| *first = (*first).min(order)).or_insert(order);
            }
            rows.retain(|row| row.group == 0 || firsts[&row.group] == (row.key, row.tie, row.id));
        }
        let total = rows.len();
        let count = request.offset.saturating_add(request.limit).min(total);
        let picked = match request.sort {
            Sort::Title | Sort::Author => self.first_by_name(rows, request.sort, count)?,
            _ => {
                if count > 0 && count < rows.len() {
                    rows.select_nth_unstable_by_key(count - 1, |row| (row.key, row.tie, row.id));
                }
                rows.truncate(count);
                rows.sort_unstable_by_key(|row| (row.key, row.tie, row.id));
                rows
            }
        };
        let mut hits = Vec::new();
        for row in picked.into_iter().skip(request.offset) {
            let score = self.score(request.scoring, row.segment, row.doc)?;
            let (segment, doc) = (row.segment as u32, row.doc as u32);
            hits.push(Hit { score, tie: row.tie, id: row.id, segment, doc, group: row.group });
        }
        Ok(Page { total, hits, ..Page::default() })
    }

    fn first_by_name(&self, rows: Vec<Row>, sort: Sort, count: usize) -> Result<Vec<Row>> {
        let marks: &[&[u8]] = if sort == Sort::Title { &[TITLE] } else { &[AUTHOR, TITLE] };
        type Named = (Vec<(bool, Vec<u8>)>, u64, i64, Row);
        let mut candidates: Vec<Named> = Vec::new();
        for (number, segment) in self.segments.iter().enumerate() {
            let mut orders = Vec::new();
            for mark in marks {
                orders.push(segment.data.derived.name_order(mark, || NameOrder::read(segment, mark))?);
            }
            let ranks = |row: &Row| orders.iter().map(|order| order.ranks[row.doc]).collect::<Vec<_>>();
            let mut own: Vec<(Vec<u32>, Row)> =
                rows.iter().filter(|row| row.segment == number).map(|row| (ranks(row), row.clone())).collect();
            own.sort_unstable_by(|a, b| (&a.0, a.1.tie, a.1.id).cmp(&(&b.0, b.1.tie, b.1.id)));
            own.truncate(count);
            let dictionary = segment.data.dictionary();
            for (ranks, row) in own {
                let mut names = Vec::new();
                for (rank, order) in ranks.iter().zip(&orders) {
                    names.push(order.name(&dictionary, *rank)?);
                }
                candidates.push((names, row.tie, row.id, row));
            }
        }
        candidates.sort_unstable_by(|a, b| (&a.0, a.1, a.2).cmp(&(&b.0, b.1, b.2)));
        Ok(candidates.into_iter().take(count).map(|(_, _, _, row)| row).collect())
    }

    fn score(&self, scoring: &Scoring, number: usize, doc: usize) -> Result<f64> {
        let segment = &self.segments[number];
        let columns = &segment.data.columns;
        let row = (tfs_of(&lists_of(segment, scoring.terms)?, doc as u32)?, columns.lengths[doc], columns.norms[doc]);
        struct One<'a>(&'a Scoring<'a>, (Vec<u32>, u32, f64));
        impl Use for One<'_> {
            type Output = f64;

            fn with<M: Model>(self, model: M) -> f64 {
                let One(scoring, (tfs, length, norm)) = self;
                let query = Query { model: &model, terms: scoring.constants, constants: scoring.query };
                query.score(tfs.into_iter(), length, norm)
            }
        }
        scoring.with_model(One(scoring, row))
    }

    /// Work out what every search needs to know, so that the first one need not.
    pub fn make_ready(&self) -> Result<()> {
        self.groups()?;
        for segment in &self.segments {
            segment.data.derived.classes(&segment.data.columns, false);
        }
        self.accented("").map(drop)
    }
}

#[derive(Clone)]
struct Row {
    key: i64,
    tie: u64,
    id: i64,
    segment: usize,
    doc: usize,
    group: u32,
}

struct Ranking<'a> {
    searcher: &'a Searcher,
    scoring: &'a Scoring<'a>,
    matching: Option<&'a [BitSet]>,
    hidden: &'a [Hidden<'a>],
    groups: &'a Groups,
    seen: &'a mut BitSet,
    size: usize,
}

impl Use for Ranking<'_> {
    type Output = Result<(usize, Vec<Hit>)>;

    fn with<M: Model>(self, model: M) -> Self::Output {
        let segments = &self.searcher.segments;
        let query = Query { model: &model, terms: self.scoring.constants, constants: self.scoring.query };
        let (mut lists, mut classes) = (Vec::new(), (u8::MAX, 0));
        let mut max_tfs = vec![1; self.scoring.terms.len()];
        for segment in segments {
            let own = segment.data.derived.classes(&segment.data.columns, M::BY_NORM);
            classes = (own.first.min(classes.0), own.last.max(classes.1));
            let found = lists_of(segment, self.scoring.terms)?;
            for (max_tf, list) in max_tfs.iter_mut().zip(&found) {
                *max_tf = list.map_or(1, |list| list.max_tf).max(*max_tf);
            }
            lists.push(found);
        }
        let mut ranker = Ranker::new(query, max_tfs, classes, self.size);
        for (number, (segment, lists)) in segments.iter().zip(&lists).enumerate() {
            let visible = Visible {
                matching: self.matching.map(|matching| &matching[number]),
                hidden: self.hidden[number].as_deref(),
                groups: self.groups.of.get(number).map(|(of, grouped)| (&of[..], grouped)),
            };
            ranker.search(segment, number as u32, lists, &visible, self.seen)?;
        }
        Ok((ranker.total, ranker.heap.into_sorted()))
    }
}

/// The documents of a segment that do not count; `None` if all do.
type Hidden<'a> = Option<Cow<'a, BitSet>>;

fn hide(hidden: &mut Hidden, docs: &BitSet) {
    match hidden {
        Some(hidden) => hidden.to_mut().unite(docs),
        None => *hidden = Some(Cow::Owned(docs.clone())),
    }
}

fn lists_of<'a>(segment: &'a Segment, terms: &[Vec<u8>]) -> Result<Vec<Option<PostingList<'a>>>> {
    let dictionary = segment.data.dictionary();
    let list = |term: &Vec<u8>| match dictionary.find(term)? {
        None => Ok(None),
        Some((_, spans)) => segment.data.list(spans).map(Some),
    };
    terms.iter().map(list).collect()
}

fn tfs_of(lists: &[Option<PostingList>], doc: u32) -> Result<Vec<u32>> {
    lists.iter().map(|list| list.as_ref().map_or(Ok(0), |list| list.tf(doc))).collect()
}

/// Whether what matches surely holds one of the terms.
fn holds_one(expression: &Expression, terms: &[Vec<u8>]) -> bool {
    match expression {
        Expression::Term { term, .. } => terms.contains(term),
        Expression::And(parts) => parts.iter().any(|part| holds_one(part, terms)),
        Expression::Or(parts) => !parts.is_empty() && parts.iter().all(|part| holds_one(part, terms)),
        _ => false,
    }
}

fn positive(weight: f64) -> Result<f64> {
    if weight > 0.0 {
        Ok(weight)
    } else {
        Err(Error::Value(format!("a term has the weight {weight}: it must be above 0")))
    }
}
