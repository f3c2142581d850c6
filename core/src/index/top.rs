//! The best documents of a segment for a query, without scoring those that provably are not among them.
//!
//! Documents pass in windows. In a window, the documents of each term are a bit set, and a term's share in a score has an
//! upper bound: by the largest tf of its blocks there, and by the shortest documents, for each of some classes of them
//! apart. Which subsets of the terms can reach the worst score that is kept so far follows from these bounds; set
//! operations then select the few candidates that have to be scored. Invariant: a document that is not selected scores
//! below the worst one of a full heap. All documents are counted, selected or not.

use super::bitset::{BitSet, Ones};
use super::codec::{BLOCK, PostingList, WIDTHS};
use super::derived::{CLASSES, Classes};
use super::segment::Segment;
use crate::Result;
use crate::rank::{Class, Constants, Model, QueryConstants};

/// Documents at a time.
const WINDOW: usize = 16384;
const WORDS: usize = WINDOW / 64;
/// Terms whose subsets are worked out, the rarest; there are two to this power.
const COMBINED: usize = 5;
/// Of the subsets, one bit each: those that have the first term, the second, and so on.
const WITH: [u32; COMBINED] = [0xAAAA_AAAA, 0xCCCC_CCCC, 0xF0F0_F0F0, 0xFF00_FF00, 0xFFFF_0000];
/// Postings in a window below which scoring all documents is less work than selecting some.
const FEW: usize = 16;
/// Documents that are scored first, beyond those that are wanted, to begin with a high threshold.
const SEEDS: usize = 64;
/// Shares of a term that are kept, where they depend on tf alone.
const MEMO: usize = 64;
/// Lengths of which `by_length` is kept.
const TABLE: usize = 1 << 12;

/// A document among the best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    pub score: f64,
    pub tie: u64,
    pub id: i64,
    pub segment: u32,
    pub doc: u32,
    /// The records of one resource are a group; 0 for a record that is alone.
    pub group: u32,
}

impl Hit {
    /// Whether this ranks below another: by score, then by tie, then by id, lowest first.
    #[inline]
    pub fn is_worse(&self, other: &Hit) -> bool {
        if self.score != other.score {
            return self.score < other.score;
        }
        (self.tie, self.id) > (other.tie, other.id)
    }
}

/// The best so far, worst on top; of the records of a group, the best one.
pub struct Heap {
    hits: Vec<Hit>,
    size: usize,
}

impl Heap {
    pub fn new(size: usize) -> Heap {
        Heap { hits: Vec::with_capacity(size.min(1 << 16)), size }
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.hits.len() == self.size
    }

    /// The score that a document has to reach; minus infinity while there is room.
    #[inline]
    fn threshold(&self) -> f64 {
        if self.is_full() && self.size > 0 { self.hits[0].score } else { f64::NEG_INFINITY }
    }

    pub fn offer(&mut self, hit: Hit) {
        if self.is_full() && (self.size == 0 || hit.is_worse(&self.hits[0])) {
            return;
        }
        if hit.group > 0
            && let Some(at) = self.hits.iter().position(|held| held.group == hit.group)
        {
            if self.hits[at].is_worse(&hit) {
                self.hits[at] = hit;
                self.sift_down(at);
            }
            return;
        }
        if self.is_full() {
            self.hits[0] = hit;
            self.sift_down(0);
            return;
        }
        self.hits.push(hit);
        let mut at = self.hits.len() - 1;
        while at > 0 && self.hits[at].is_worse(&self.hits[(at - 1) / 2]) {
            self.hits.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut child = 2 * at + 1;
            if child >= self.hits.len() {
                return;
            }
            if child + 1 < self.hits.len() && self.hits[child + 1].is_worse(&self.hits[child]) {
                child += 1;
            }
            if !self.hits[child].is_worse(&self.hits[at]) {
                return;
            }
            self.hits.swap(at, child);
            at = child;
        }
    }

    /// Best first.
    pub fn into_sorted(mut self) -> Vec<Hit> {
        self.hits.sort_unstable_by(
            |a, b| if b.is_worse(a) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater },
        );
        self.hits
    }
}

/// Which documents count.
pub struct Visible<'a> {
    /// If given, these match, whatever terms they hold; otherwise those that hold a term do.
    pub matching: Option<&'a BitSet>,
    pub hidden: Option<&'a BitSet>,
    /// The group of each document, and which documents have one.
    pub groups: Option<(&'a [u32], &'a BitSet)>,
}

/// One term's list in the window.
struct Cursor<'a> {
    list: PostingList<'a>,
    /// The blocks that touch the window: from, and up to.
    from: usize,
    to: usize,
    /// The largest tf of these is at most two to this power.
    tf_bits: usize,
    /// The documents of these blocks, `BLOCK` for each, and of them those in the window.
    docs: Vec<u32>,
    low: usize,
    high: usize,
    /// The documents in the window, and how many come before each word of these bits.
    bits: Vec<u64>,
    ranks: Vec<u32>,
    /// Tfs of the blocks, decoded when one is asked for.
    tfs: Vec<u32>,
    decoded: Vec<bool>,
    ranked: bool,
}

impl<'a> Cursor<'a> {
    fn new(list: PostingList<'a>) -> Cursor<'a> {
        Cursor {
            list,
            from: 0,
            to: 0,
            tf_bits: 0,
            docs: Vec::new(),
            low: 0,
            high: 0,
            bits: vec![0; WORDS],
            ranks: vec![0; WORDS],
            tfs: Vec::new(),
            decoded: Vec::new(),
            ranked: false,
        }
    }

    /// Find the blocks that touch the documents from `base` to before `limit`; whether there are any.
    fn look_ahead(&mut self, base: u32, limit: u32) -> bool {
        self.from = self.list.seek(self.from, base);
        let (mut block, mut bits) = (self.from, 0u8);
        while block < self.list.blocks() {
            bits = bits.max(self.list.tf_bits(block).unwrap_or_else(|| bits_of(self.list.max_tf)));
            block += 1;
            if self.list.last(block - 1).is_none_or(|last| last >= limit - 1) {
                break;
            }
        }
        self.to = block;
        self.tf_bits = usize::from(bits);
        self.to > self.from
    }

    /// Decode the blocks that touch the window, and set the bits of its documents.
    fn fill(&mut self, base: u32, limit: u32) -> Result<()> {
        let count = self.to - self.from;
        self.docs.resize(count * BLOCK, 0);
        let mut filled = 0;
        for (slot, block) in (self.from..self.to).enumerate() {
            let room: &mut [u32; BLOCK] =
                (&mut self.docs[slot * BLOCK..(slot + 1) * BLOCK]).try_into().expect("a block");
            filled = slot * BLOCK + self.list.docs(block, room)?;
        }
        let docs = &self.docs[..filled];
        self.low = docs.partition_point(|&doc| doc < base);
        self.high = self.low + docs[self.low..].partition_point(|&doc| doc < limit);
        self.bits.fill(0);
        for &doc in &docs[self.low..self.high] {
            let place = (doc - base) as usize;
            self.bits[place >> 6] |= 1 << (place & 63);
        }
        self.decoded.clear();
        self.decoded.resize(count, false);
        self.tfs.resize(count * BLOCK, 0);
        self.ranked = false;
        Ok(())
    }

    fn rank_words(&mut self) {
        let mut rank = self.low as u32;
        for (to, word) in self.ranks.iter_mut().zip(&self.bits) {
            *to = rank;
            rank += word.count_ones();
        }
        self.ranked = true;
    }

    /// The tf of a document of the window, by its place there; 0 if the list does not hold it.
    #[inline]
    fn tf(&mut self, place: usize) -> Result<u32> {
        let (word, bit) = (self.bits[place >> 6], place & 63);
        if word >> bit & 1 == 0 {
            return Ok(0);
        }
        if !self.ranked {
            self.rank_words();
        }
        let at = self.ranks[place >> 6] as usize + (word & ((1 << bit) - 1)).count_ones() as usize;
        let slot = at / BLOCK;
        if !self.decoded[slot] {
            let room: &mut [u32; BLOCK] =
                (&mut self.tfs[slot * BLOCK..(slot + 1) * BLOCK]).try_into().expect("a block");
            self.list.tfs(self.from + slot, room)?;
            self.decoded[slot] = true;
        }
        Ok(self.tfs[at])
    }
}

fn bits_of(max_tf: u32) -> u8 {
    (32 - max_tf.saturating_sub(1).leading_zeros()) as u8
}

/// A query by one model, ready for any number of segments.
pub struct Query<'q, M: Model> {
    pub model: &'q M,
    pub terms: &'q [Constants],
    pub constants: QueryConstants,
    by_length: &'q [f64],
}

impl<'q, M: Model> Query<'q, M> {
    /// `by_length` is a [`length_table`] of the model, or empty.
    pub fn new(model: &'q M, terms: &'q [Constants], constants: QueryConstants, by_length: &'q [f64]) -> Query<'q, M> {
        Query { model, terms, constants, by_length }
    }

    #[inline]
    fn by_length(&self, length: u32) -> f64 {
        match self.by_length.get(length as usize) {
            Some(&value) => value,
            None => self.model.by_length(length),
        }
    }

    /// The score of a document with these tfs, which are in the order of the terms.
    pub fn score(&self, tfs: impl Iterator<Item = u32>, length: u32, norm: f64) -> f64 {
        let by_length = self.by_length(length);
        let mut total = 0.0;
        for (&term, tf) in self.terms.iter().zip(tfs) {
            if tf > 0 {
                total += self.model.share(term, tf, length, by_length);
            }
        }
        self.model.finish(self.constants, total, by_length, norm)
    }
}

/// What a model knows of each usual length.
pub fn length_table<M: Model>(model: &M, longest: u32) -> Vec<f64> {
    (0..=longest.min(TABLE as u32 - 1)).map(|length| model.by_length(length)).collect()
}

/// Working memory for one segment.
struct Window<'a, 'q, M: Model> {
    query: &'q Query<'q, M>,
    segment: &'a Segment,
    number: u32,
    cursors: Vec<Option<Cursor<'a>>>,
    /// Upper bounds for each term, width of tfs and class; not a number while unknown.
    known: Vec<f64>,
    /// The same for the window: `bounds[class][term]`.
    bounds: Vec<f64>,
    memo: Vec<f64>,
    found: Vec<u64>,
    chosen: Vec<u64>,
    classes: &'a Classes,
    limits: [Class; CLASSES],
    bases: [f64; CLASSES],
}

/// Offer the documents that count to the heap; their number, where a group that is in `seen` counts no more.
pub fn search_segment<M: Model>(
    query: &Query<M>,
    segment: &Segment,
    number: u32,
    lists: Vec<Option<PostingList>>,
    visible: &Visible,
    seen: &mut BitSet,
    heap: &mut Heap,
) -> Result<usize> {
    let terms = lists.len();
    let classes = segment.data.derived.classes(&segment.data.columns, M::BY_NORM);
    let limits = classes.limits;
    let mut window = Window {
        query,
        segment,
        number,
        cursors: lists.into_iter().map(|list| list.map(Cursor::new)).collect(),
        known: vec![f64::NAN; terms * WIDTHS * CLASSES],
        bounds: vec![0.0; terms * CLASSES],
        memo: vec![f64::NAN; if M::BY_TF { terms * MEMO } else { 0 }],
        found: vec![0; WORDS],
        chosen: vec![0; WORDS],
        classes,
        limits,
        bases: limits.map(|class| query.model.base(query.constants, &class)),
    };
    let (mut total, mut base) = (0, 0);
    while base < segment.size() {
        let limit = (base + WINDOW).min(segment.size());
        total += window.search(base, limit, visible, seen, heap)?;
        base = limit;
    }
    Ok(total)
}

impl<M: Model> Window<'_, '_, M> {
    fn search(
        &mut self,
        base: usize,
        limit: usize,
        visible: &Visible,
        seen: &mut BitSet,
        heap: &mut Heap,
    ) -> Result<usize> {
        let words = (limit - base).div_ceil(64);
        let mut held = 0;
        for cursor in self.cursors.iter_mut().flatten() {
            if cursor.look_ahead(base as u32, limit as u32) {
                cursor.fill(base as u32, limit as u32)?;
            } else {
                cursor.low = 0;
                cursor.high = 0;
                cursor.bits.fill(0);
            }
            held += cursor.high - cursor.low;
        }
        if held == 0 && visible.matching.is_none() {
            return Ok(0);
        }
        let live = self.count(base, words, visible, seen);
        if live == 0 && self.found[..words].iter().all(|&word| word == 0) || heap.size == 0 {
            return Ok(live);
        }
        self.set_bounds();
        // Until the heap is full, seeds come first: they make the threshold by which the others are selected.
        if !heap.is_full() && !M::CONSTANT && held > FEW {
            self.choose_seeds(words, heap.size - heap.hits.len());
            self.score_chosen(base, words, visible, heap)?;
            for (word, &chosen) in self.found[..words].iter_mut().zip(&self.chosen) {
                *word &= !chosen;
            }
        }
        if M::CONSTANT {
            // Ties decide: the documents with the lowest ones come first, and often no others are needed.
            self.choose_early(base, words, true);
            self.score_chosen(base, words, visible, heap)?;
            if heap.is_full() && heap.hits[0].tie >> 58 == 0 {
                return Ok(live);
            }
            self.choose_early(base, words, false);
        } else if heap.is_full() && held > FEW {
            self.choose_candidates(base, words, heap.threshold());
        } else {
            self.chosen[..words].copy_from_slice(&self.found[..words]);
        }
        self.score_chosen(base, words, visible, heap)?;
        Ok(live)
    }

    /// Set the bits of documents that match and are not hidden; how many of them count.
    fn count(&mut self, base: usize, words: usize, visible: &Visible, seen: &mut BitSet) -> usize {
        let first = base >> 6;
        match visible.matching {
            Some(matching) => self.found[..words].copy_from_slice(&matching.words()[first..first + words]),
            None => {
                self.found[..words].fill(0);
                for cursor in self.cursors.iter().flatten() {
                    for (found, &own) in self.found[..words].iter_mut().zip(&cursor.bits) {
                        *found |= own;
                    }
                }
            }
        }
        if let Some(hidden) = visible.hidden {
            for (found, &hidden) in self.found[..words].iter_mut().zip(&hidden.words()[first..]) {
                *found &= !hidden;
            }
        }
        let mut live: usize = self.found[..words].iter().map(|word| word.count_ones() as usize).sum();
        if let Some((groups, grouped)) = visible.groups {
            for (word, (&found, &grouped)) in self.found[..words].iter().zip(&grouped.words()[first..]).enumerate() {
                for bit in Ones(found & grouped) {
                    let group = groups[base + 64 * word + bit] as usize;
                    if seen.contains(group) {
                        live -= 1;
                    } else {
                        seen.insert(group);
                    }
                }
            }
        }
        live
    }

    fn set_bounds(&mut self) {
        let terms = self.cursors.len();
        for (t, cursor) in self.cursors.iter().enumerate() {
            let Some(cursor) = cursor.as_ref().filter(|cursor| cursor.high > cursor.low) else {
                (0..CLASSES).for_each(|class| self.bounds[class * terms + t] = 0.0);
                continue;
            };
            let at = (t * WIDTHS + cursor.tf_bits) * CLASSES;
            if self.known[at].is_nan() {
                let max_tf = (1u64 << cursor.tf_bits).min(u64::from(cursor.list.max_tf)) as u32;
                for class in 0..CLASSES {
                    let (term, query) = (self.query.terms[t], self.query.constants);
                    self.known[at + class] = self.query.model.bound(term, query, max_tf, &self.limits[class]);
                }
            }
            for class in 0..CLASSES {
                self.bounds[class * terms + t] = self.known[at + class];
            }
        }
    }

    /// Choose some of the documents that hold most terms: of the shorter ones if these are enough.
    fn choose_seeds(&mut self, words: usize, wanted: usize) {
        let mut layers = [[0u64; WORDS]; 3];
        for cursor in self.cursors.iter().flatten().filter(|cursor| cursor.high > cursor.low) {
            for (word, (&own, &found)) in cursor.bits[..words].iter().zip(&self.found).enumerate() {
                let own = own & found;
                layers[2][word] |= layers[1][word] & own;
                layers[1][word] |= layers[0][word] & own;
                layers[0][word] |= own;
            }
        }
        let size =
            |layer: &[u64; WORDS]| -> usize { layer[..words].iter().map(|word| word.count_ones() as usize).sum() };
        let layer = layers.iter().rev().find(|layer| size(layer) >= wanted).unwrap_or(&layers[0]);
        let mut left = wanted + SEEDS;
        for (chosen, &word) in self.chosen[..words].iter_mut().zip(layer) {
            *chosen = if left > 0 { word } else { 0 };
            left = left.saturating_sub(word.count_ones() as usize);
        }
    }

    /// Choose the documents with a tie in the lowest 64th, or the others.
    fn choose_early(&mut self, base: usize, words: usize, wanted: bool) {
        let early = self.segment.data.derived.early(&self.segment.data.columns);
        for (word, chosen) in self.chosen[..words].iter_mut().enumerate() {
            let early = early.words()[(base >> 6) + word];
            *chosen = self.found[word] & if wanted { early } else { !early };
        }
    }

    /// Choose the documents that can reach the threshold.
    ///
    /// Class c has the documents of the classes before it too. From the last class to the first, more subsets of terms
    /// can reach the threshold; a document that holds a minimal one of these, or more terms, is chosen.
    fn choose_candidates(&mut self, base: usize, words: usize, threshold: f64) {
        let least = threshold - 1e-8 * (threshold.abs() + 1.0); // room for rounding
        let terms = self.cursors.len();
        let combined = terms.min(COMBINED);
        self.chosen[..words].fill(0);
        let (mut family, mut sums) = (0u32, [0.0; 1 << COMBINED]);
        for class in (0..CLASSES).rev() {
            let bounds = &self.bounds[class * terms..(class + 1) * terms];
            let rest: f64 = self.bases[class] + bounds[combined..].iter().sum::<f64>();
            let wider = reachable_subsets(&bounds[..combined], rest, least, &mut sums);
            let within = &self.classes.within[class].words()[base >> 6..];
            let mut fresh = minimal_subsets(wider) & !family;
            family = wider;
            while fresh != 0 {
                let subset = fresh.trailing_zeros();
                fresh &= fresh - 1;
                self.choose_subset(subset, within, words);
            }
        }
        for (chosen, &found) in self.chosen[..words].iter_mut().zip(&self.found) {
            *chosen &= found;
        }
    }

    /// Choose the documents of a class that hold all terms of a subset.
    fn choose_subset(&mut self, subset: u32, within: &[u64], words: usize) {
        let members: Vec<&[u64]> = Ones(u64::from(subset))
            .filter_map(|t| self.cursors[t].as_ref().map(|cursor| &cursor.bits[..words]))
            .collect();
        let chosen = &mut self.chosen[..words];
        match members[..] {
            [] => (0..words).for_each(|i| chosen[i] |= within[i]),
            [a] => (0..words).for_each(|i| chosen[i] |= within[i] & a[i]),
            [a, b] => (0..words).for_each(|i| chosen[i] |= within[i] & a[i] & b[i]),
            [a, b, c] => (0..words).for_each(|i| chosen[i] |= within[i] & a[i] & b[i] & c[i]),
            _ => (0..words).for_each(|i| chosen[i] |= members.iter().fold(within[i], |both, own| both & own[i])),
        }
    }

    fn score_chosen(&mut self, base: usize, words: usize, visible: &Visible, heap: &mut Heap) -> Result<()> {
        let (data, query) = (self.segment.data.clone(), self.query);
        let columns = &data.columns;
        for word in 0..words {
            for bit in Ones(self.chosen[word]) {
                let place = 64 * word + bit;
                let doc = base + place;
                let length = columns.lengths[doc];
                let by_length = query.by_length(length);
                let mut total = 0.0;
                for (t, cursor) in self.cursors.iter_mut().enumerate() {
                    let Some(cursor) = cursor else { continue };
                    let tf = cursor.tf(place)?;
                    if tf == 0 {
                        continue;
                    }
                    total += if M::BY_TF && (tf as usize) < MEMO {
                        let kept = &mut self.memo[t * MEMO + tf as usize];
                        if kept.is_nan() {
                            *kept = query.model.share(query.terms[t], tf, length, by_length);
                        }
                        *kept
                    } else {
                        query.model.share(query.terms[t], tf, length, by_length)
                    };
                }
                let norm = if M::BY_NORM { columns.norms[doc] } else { 1.0 };
                let score = query.model.finish(query.constants, total, by_length, norm);
                if score >= heap.threshold() {
                    let group = visible.groups.map_or(0, |(groups, _)| groups[doc]);
                    let (tie, id) = (columns.ties[doc], columns.ids[doc]);
                    heap.offer(Hit { score, tie, id, segment: self.number, doc: doc as u32, group });
                }
            }
        }
        Ok(())
    }
}

/// The subsets of terms whose documents can reach the least score if all else (`rest`) is at its best: one bit for each
/// subset, whose own bits are its terms.
fn reachable_subsets(bounds: &[f64], rest: f64, least: f64, sums: &mut [f64; 1 << COMBINED]) -> u32 {
    sums[0] = rest;
    let mut family = u32::from(rest >= least);
    for (t, bound) in bounds.iter().enumerate() {
        let size = 1 << t;
        for subset in 0..size {
            let total = sums[subset] + bound;
            sums[size + subset] = total;
            family |= u32::from(total >= least) << (size + subset);
        }
    }
    family
}

/// Of a family of subsets, those that are in it but not with one of their terms left out.
fn minimal_subsets(family: u32) -> u32 {
    let larger = (0..COMBINED).fold(0, |larger, t| larger | (family & !WITH[t]) << (1 << t));
    family & !larger
}
