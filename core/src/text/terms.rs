//! Terms as numbers: each distinct term is kept once, and everything else refers to it by its number.

use ahash::RandomState;
use hashbrown::HashTable;

/// The number of a term in one [`TermTable`].
pub type TermId = u32;

/// Terms in the order in which they were first met. Hashing is seeded: a page cannot choose terms that collide.
#[derive(Clone)]
pub struct TermTable {
    hasher: RandomState,
    ids: HashTable<(Prefix, TermId)>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Default for TermTable {
    fn default() -> Self {
        TermTable { hasher: RandomState::new(), ids: HashTable::new(), bytes: Vec::new(), ends: Vec::new() }
    }
}

/// A term up to its fifteenth byte, then its size: nearly all terms are told apart by it, without a look at their bytes.
type Prefix = [u8; 16];

fn prefix(term: &[u8]) -> Prefix {
    let mut out = [0; 16];
    let size = term.len().min(15);
    out[..size].copy_from_slice(&term[..size]);
    out[15] = term.len().min(16) as u8;
    out
}

impl TermTable {
    /// The number of a term, a new one if the term is new.
    pub fn intern(&mut self, term: &[u8]) -> TermId {
        let (hash, prefix) = (self.hasher.hash_one(term), prefix(term));
        if let Some(id) = self.look_up(hash, &prefix, term) {
            return id;
        }
        let id = self.ends.len() as TermId;
        self.bytes.extend_from_slice(term);
        self.ends.push(self.bytes.len());
        let (hasher, bytes, ends) = (&self.hasher, &self.bytes, &self.ends);
        self.ids.insert_unique(hash, (prefix, id), |&(_, id)| hasher.hash_one(slice(bytes, ends, id)));
        id
    }

    /// The number of a term that is known.
    pub fn find(&self, term: &[u8]) -> Option<TermId> {
        self.look_up(self.hasher.hash_one(term), &prefix(term), term)
    }

    fn look_up(&self, hash: u64, prefix: &Prefix, term: &[u8]) -> Option<TermId> {
        let is_it = |(own, id): &(Prefix, TermId)| own == prefix && (term.len() <= 15 || self.get(*id) == term);
        self.ids.find(hash, is_it).map(|&(_, id)| id)
    }

    pub fn get(&self, id: TermId) -> &[u8] {
        slice(&self.bytes, &self.ends, id)
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// About how much memory the table takes.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
            + self.ends.capacity() * size_of::<usize>()
            + self.ids.capacity() * (size_of::<(Prefix, TermId)>() + 1)
    }

    pub fn clear(&mut self) {
        self.ids.clear();
        self.bytes.clear();
        self.ends.clear();
    }
}

fn slice<'a>(bytes: &'a [u8], ends: &[usize], id: TermId) -> &'a [u8] {
    let id = id as usize;
    &bytes[if id == 0 { 0 } else { ends[id - 1] }..ends[id]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_terms_have_one_number() {
        let mut table = TermTable::default();
        let ids: Vec<_> = ["acid", "air", "acid", ""].iter().map(|t| table.intern(t.as_bytes())).collect();
        assert_eq!(ids, [0, 1, 0, 2]);
        assert_eq!(table.get(1), b"air");
        assert_eq!(table.find(b"wing"), None);
        for n in 0..10_000 {
            table.intern(format!("t{n}").as_bytes());
        }
        assert_eq!(table.len(), 10_003);
        assert_eq!(table.find(b"t9999"), Some(10_002));
    }
}
