//! The best documents of a segment for a query, without scoring those that provably are not among them.
//!
//! Documents pass in windows. Each posting in a window adds an upper bound of its share in the score to a sum for its
//! document; bounds are integers, looked up in a table by tf and by class of length or norm. Documents whose sum can
//! reach the worst score that is kept so far are scored exactly. Invariant: a document that is not scored is below the
//! worst one of a full heap. All documents are counted, scored or not.
//!
//! Leaving out frequent terms whose bounds are low (MaxScore, WAND) was measured to be slower: documents have to be counted
//! anyway, and the highest bound of a term is so far above its usual share that many more documents had to be scored.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;

use super::bitset::{BitSet, Ones};
use super::codec::{BLOCK, Blocks, PostingList};
use super::derived::{CLASSES, class_limits};
use super::segment::Segment;
use crate::Result;
use crate::rank::{Constants, Model, QueryConstants, Range};

/// Documents at a time.
pub const WINDOW: usize = 8192;
const WORDS: usize = WINDOW / 64;
/// Tfs that have bounds of their own; higher ones share the last row.
const ROWS: usize = 16;
/// The upper bounds of a term, `UNKNOWN` until they are needed.
type Table = [i16; ROWS * CLASSES];
const UNKNOWN: i16 = -1;

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

impl Eq for Hit {}

/// Best first: by score, highest first, then by tie, then by id.
impl Ord for Hit {
    fn cmp(&self, other: &Hit) -> Ordering {
        let by_score = other.score.partial_cmp(&self.score).unwrap_or(Ordering::Equal);
        by_score.then_with(|| (self.tie, self.id).cmp(&(other.tie, other.id)))
    }
}

impl PartialOrd for Hit {
    fn partial_cmp(&self, other: &Hit) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The best so far, worst on top; of the records of a group, the best one.
pub struct Heap {
    hits: BinaryHeap<Hit>,
    size: usize,
}

impl Heap {
    pub fn new(size: usize) -> Heap {
        Heap { hits: BinaryHeap::with_capacity(size.min(1 << 16)), size }
    }

    fn is_full(&self) -> bool {
        self.hits.len() == self.size
    }

    /// The worst hit, if there is no room for another.
    fn worst(&self) -> Option<&Hit> {
        self.hits.peek().filter(|_| self.is_full())
    }

    /// A score that no document below can get into the heap with; there is room for rounding.
    fn threshold(&self) -> f64 {
        self.worst().map_or(f64::NEG_INFINITY, |worst| worst.score - 1e-8 * (worst.score.abs() + 1.0))
    }

    pub fn offer(&mut self, hit: Hit) {
        if self.size == 0 || self.worst().is_some_and(|worst| hit > *worst) {
            return;
        }
        if hit.group > 0
            && let Some(held) = self.hits.iter().find(|held| held.group == hit.group).copied()
        {
            if hit < held {
                self.hits.retain(|held| held.group != hit.group);
                self.hits.push(hit);
            }
            return;
        }
        if self.is_full() {
            self.hits.pop();
        }
        self.hits.push(hit);
    }

    /// Best first.
    pub fn into_sorted(self) -> Vec<Hit> {
        self.hits.into_sorted_vec()
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

/// One term's postings from the first of the window on.
struct Cursor<'a> {
    blocks: Blocks<'a>,
    docs: Vec<u32>,
    tfs: Vec<u32>,
    /// How many of them are in the window.
    count: usize,
}

impl<'a> Cursor<'a> {
    fn new(list: PostingList<'a>) -> Cursor<'a> {
        Cursor { blocks: list.blocks(), docs: Vec::new(), tfs: Vec::new(), count: 0 }
    }

    /// Go on to the window that ends before `limit`.
    fn advance(&mut self, limit: u32) -> Result<()> {
        self.docs.drain(..self.count);
        self.tfs.drain(..self.count);
        while self.docs.last().is_none_or(|&last| last < limit) {
            let (mut docs, mut tfs) = ([0; BLOCK], [0; BLOCK]);
            if !self.blocks.advance(&mut docs)? {
                break;
            }
            self.blocks.tfs(&mut tfs)?;
            self.docs.extend_from_slice(&docs[..self.blocks.count]);
            self.tfs.extend_from_slice(&tfs[..self.blocks.count]);
        }
        self.count = self.docs.partition_point(|&doc| doc < limit);
        Ok(())
    }

    /// The tf of a document of the window; 0 if the list does not hold it.
    fn tf(&self, doc: u32) -> u32 {
        self.docs[..self.count].binary_search(&doc).map_or(0, |at| self.tfs[at])
    }
}

/// A query by one model.
pub struct Query<'q, M: Model> {
    pub model: &'q M,
    pub terms: &'q [Constants],
    pub constants: QueryConstants,
}

impl<M: Model> Query<'_, M> {
    /// The score of a document with these tfs, which are in the order of the terms.
    pub fn score(&self, tfs: impl Iterator<Item = u32>, length: u32, norm: f64) -> f64 {
        let mut total = 0.0;
        for (&term, tf) in self.terms.iter().zip(tfs) {
            if tf > 0 {
                total += self.model.share(term, tf, length);
            }
        }
        self.model.finish(self.constants, total, length, norm)
    }
}

/// Ranks the documents of segments, one segment after the other.
pub struct Ranker<'q, M: Model> {
    query: Query<'q, M>,
    /// The highest tf of each term.
    max_tfs: Vec<u32>,
    /// Bounds are multiplied by this and rounded up. No sum of them is beyond an i16.
    scale: f64,
    tables: Vec<Table>,
    /// The classes of all documents, and the most that one of each has without any term.
    classes: RangeInclusive<usize>,
    bases: [f64; CLASSES],
    sums: Box<[i16; WINDOW]>,
    found: [u64; WORDS],
    /// Documents that have to be scored: sum of bounds, place in the window.
    candidates: Vec<(i16, u16)>,
    pub heap: Heap,
    /// Documents that match; a group counts once.
    pub total: usize,
}

impl<'q, M: Model> Ranker<'q, M> {
    /// `max_tfs` are the highest tfs of the terms, `classes` the first and the last class of any document.
    pub fn new(query: Query<'q, M>, max_tfs: Vec<u32>, classes: (u8, u8), size: usize) -> Ranker<'q, M> {
        let mut bases = [0.0; CLASSES];
        let mut all = class_limits(classes.0);
        for class in classes.0..=classes.1 {
            let limits = class_limits(class);
            bases[usize::from(class)] = query.model.base(query.constants, &limits);
            all.longest = limits.longest;
        }
        let most = |(&term, &max_tf): (&Constants, &u32)| {
            let range = Range { most_tf: max_tf, ..all };
            query.model.bound(term, query.constants, &range)
        };
        let highest: Vec<f64> = query.terms.iter().zip(&max_tfs).map(most).collect();
        let total: f64 = highest.iter().sum();
        let room = i16::MAX as usize - (2 * highest.len()).min(i16::MAX as usize);
        Ranker {
            max_tfs,
            // Without a scale, all bounds are 0 and nothing is left out.
            scale: if total.is_finite() && total > 0.0 { room as f64 / total } else { 0.0 },
            tables: vec![[UNKNOWN; ROWS * CLASSES]; highest.len()],
            classes: usize::from(classes.0)..=usize::from(classes.1),
            bases,
            sums: Box::new([0; WINDOW]),
            found: [0; WORDS],
            candidates: Vec::new(),
            heap: Heap::new(size),
            total: 0,
            query,
        }
    }

    /// Offer the documents of a segment that count to the heap, and count them: a group that is in `seen` counts no
    /// more. `lists` are those of the terms.
    pub fn search(
        &mut self,
        segment: &Segment,
        number: u32,
        lists: &[Option<PostingList>],
        visible: &Visible,
        seen: &mut BitSet,
    ) -> Result<()> {
        let mut cursors: Vec<Option<Cursor>> = lists.iter().map(|list| list.map(Cursor::new)).collect();
        for base in (0..segment.size()).step_by(WINDOW) {
            let limit = (base + WINDOW).min(segment.size());
            for cursor in cursors.iter_mut().flatten() {
                cursor.advance(limit as u32)?;
            }
            let window = Window { segment, number, cursors: &cursors, base, words: (limit - base).div_ceil(64) };
            self.search_window(&window, visible, seen);
        }
        Ok(())
    }

    fn search_window(&mut self, window: &Window, visible: &Visible, seen: &mut BitSet) {
        if visible.matching.is_none() && window.cursors.iter().flatten().all(|cursor| cursor.count == 0) {
            return;
        }
        self.found[..window.words].fill(0);
        for (t, cursor) in window.cursors.iter().enumerate().filter_map(|(t, cursor)| Some((t, cursor.as_ref()?))) {
            self.add_bounds(t, cursor, window);
        }
        self.count(window, visible, seen);
        if M::CONSTANT {
            self.offer_by_tie(window, visible);
            return;
        }
        self.choose_candidates(window);
        // Until the heap is full, those with the highest bounds come first: they make a threshold for the others.
        let wanted = self.heap.size - self.heap.hits.len();
        if wanted > 0 && self.candidates.len() > wanted {
            self.candidates.select_nth_unstable_by(wanted, |a, b| b.0.cmp(&a.0));
        }
        let classes = window.classes(M::BY_NORM);
        for (sum, place) in std::mem::take(&mut self.candidates) {
            let least = self.heap.threshold() - self.bases[usize::from(classes[usize::from(place)])];
            if f64::from(sum) < least * self.scale {
                continue;
            }
            self.offer(window, usize::from(place), visible);
        }
    }

    /// Add the bounds of a term's postings in the window, and mark their documents.
    #[inline(never)] // it gets registers of its own: 20 % fewer instructions
    fn add_bounds(&mut self, t: usize, cursor: &Cursor, window: &Window) {
        let (table, sums, found) = (&mut self.tables[t], &mut *self.sums, &mut self.found);
        let (classes, base) = (window.classes(M::BY_NORM), window.base as u32);
        for (&doc, &tf) in cursor.docs[..cursor.count].iter().zip(&cursor.tfs) {
            let place = doc.wrapping_sub(base) as usize % WINDOW;
            found[place >> 6] |= 1 << (place & 63);
            if M::CONSTANT {
                continue;
            }
            let class = classes[place];
            let bound = &mut table[(tf as usize).min(ROWS - 1) * CLASSES + usize::from(class)];
            if *bound == UNKNOWN {
                *bound = upper_bound(&self.query, t, self.scale, tf, self.max_tfs[t], class);
            }
            sums[place] = sums[place].wrapping_add(*bound);
        }
    }

    /// Leave those that match and are not hidden marked, and count them.
    fn count(&mut self, window: &Window, visible: &Visible, seen: &mut BitSet) {
        let (first, found) = (window.base >> 6, &mut self.found[..window.words]);
        if let Some(matching) = visible.matching {
            found.copy_from_slice(&matching.words()[first..first + window.words]);
        }
        if let Some(hidden) = visible.hidden {
            found.iter_mut().zip(&hidden.words()[first..]).for_each(|(found, hidden)| *found &= !hidden);
        }
        self.total += found.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        let Some((groups, grouped)) = visible.groups else { return };
        for (word, (&found, &grouped)) in found.iter().zip(&grouped.words()[first..]).enumerate() {
            for bit in Ones(found & grouped) {
                let group = groups[window.base + 64 * word + bit] as usize;
                if seen.contains(group) {
                    self.total -= 1;
                } else {
                    seen.insert(group);
                }
            }
        }
    }

    /// Collect the documents whose sums of bounds are high enough; all sums are 0 then.
    fn choose_candidates(&mut self, window: &Window) {
        let classes = window.classes(M::BY_NORM);
        let threshold = self.heap.threshold();
        let (mut needs, mut least) = ([0; CLASSES], i16::MAX);
        for class in self.classes.clone() {
            needs[class] = (((threshold - self.bases[class]) * self.scale) as i16).max(0);
            least = needs[class].min(least);
        }
        self.candidates.clear();
        for (word, sums) in self.sums.chunks_exact_mut(64).take(window.words).enumerate() {
            if sums.iter().copied().max() >= Some(least) {
                for bit in Ones(self.found[word]) {
                    let place = 64 * word + bit;
                    if sums[bit] >= needs[usize::from(classes[place])] {
                        self.candidates.push((sums[bit], place as u16));
                    }
                }
            }
            sums.fill(0);
        }
    }

    /// Offer all documents, where ties decide: those with the lowest ones come first, and often no others are needed.
    fn offer_by_tie(&mut self, window: &Window, visible: &Visible) {
        let data = &window.segment.data;
        let early = &data.derived.early(&data.columns).words()[window.base >> 6..];
        for first in [true, false] {
            for (word, early) in early.iter().take(window.words).enumerate() {
                let chosen = if first { *early } else { !early };
                for bit in Ones(self.found[word] & chosen) {
                    self.offer(window, 64 * word + bit, visible);
                }
            }
            if self.heap.size == 0 || self.heap.worst().is_some_and(|worst| worst.tie >> 58 == 0) {
                return;
            }
        }
    }

    fn offer(&mut self, window: &Window, place: usize, visible: &Visible) {
        let (doc, columns) = (window.base + place, &window.segment.data.columns);
        let cursors = if M::CONSTANT { &[] } else { window.cursors };
        let tfs = cursors.iter().map(|cursor| cursor.as_ref().map_or(0, |cursor| cursor.tf(doc as u32)));
        let norm = if M::BY_NORM { columns.norms[doc] } else { 1.0 };
        let score = self.query.score(tfs, columns.lengths[doc], norm);
        if score < self.heap.threshold() {
            return;
        }
        let (tie, id) = (columns.ties[doc], columns.ids[doc]);
        let group = visible.groups.map_or(0, |(groups, _)| groups[doc]);
        self.heap.offer(Hit { score, tie, id, segment: window.number, doc: doc as u32, group });
    }
}

/// What a posting of a term with that tf adds to a sum.
#[cold]
fn upper_bound<M: Model>(query: &Query<M>, t: usize, scale: f64, tf: u32, max_tf: u32, class: u8) -> i16 {
    let least_tf = tf.min(ROWS as u32 - 1);
    let most_tf = if tf < ROWS as u32 - 1 { tf } else { max_tf };
    let range = Range { least_tf, most_tf, ..class_limits(class) };
    // Rounded down and one more: no less than the bound.
    ((query.model.bound(query.terms[t], query.constants, &range) * scale) as i16).saturating_add(1)
}

/// The documents from `base` on, `words` times 64 or fewer, and the postings of the terms there.
struct Window<'a> {
    segment: &'a Segment,
    number: u32,
    cursors: &'a [Option<Cursor<'a>>],
    base: usize,
    words: usize,
}

impl Window<'_> {
    fn classes(&self, by_norm: bool) -> &[u8; WINDOW] {
        let data = &self.segment.data;
        data.derived.classes(&data.columns, by_norm).of[self.base..].first_chunk().expect("classes fill windows")
    }
}
