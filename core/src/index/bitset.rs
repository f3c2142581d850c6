//! Sets of documents as bits.

/// A set of the numbers below `len`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BitSet {
    words: Vec<u64>,
    len: usize,
}

impl BitSet {
    pub fn empty(len: usize) -> BitSet {
        BitSet { words: vec![0; len.div_ceil(64)], len }
    }

    pub fn full(len: usize) -> BitSet {
        let mut set = BitSet { words: vec![u64::MAX; len.div_ceil(64)], len };
        set.trim();
        set
    }

    pub fn collect(len: usize, mut has: impl FnMut(usize) -> bool) -> BitSet {
        let mut set = BitSet::empty(len);
        for number in 0..len {
            set.words[number >> 6] |= u64::from(has(number)) << (number & 63);
        }
        set
    }

    fn trim(&mut self) {
        if self.len & 63 != 0
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << (self.len & 63)) - 1;
        }
    }

    /// How many numbers the set may have, not how many it has.
    pub fn capacity(&self) -> usize {
        self.len
    }

    pub fn words(&self) -> &[u64] {
        &self.words
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    #[inline]
    pub fn contains(&self, number: usize) -> bool {
        self.words[number >> 6] >> (number & 63) & 1 == 1
    }

    #[inline]
    pub fn insert(&mut self, number: usize) {
        self.words[number >> 6] |= 1 << (number & 63);
    }

    pub fn remove(&mut self, number: usize) {
        self.words[number >> 6] &= !(1 << (number & 63));
    }

    pub fn unite(&mut self, other: &BitSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a |= b);
    }

    pub fn intersect(&mut self, other: &BitSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= b);
    }

    pub fn subtract(&mut self, other: &BitSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= !b);
    }

    pub fn invert(&mut self) {
        self.words.iter_mut().for_each(|word| *word = !*word);
        self.trim();
    }

    /// The numbers in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(place, &word)| Ones(word).map(move |bit| place * 64 + bit))
    }
}

/// The places of the bits of a word, lowest first.
pub struct Ones(pub u64);

impl Iterator for Ones {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}
