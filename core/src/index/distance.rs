//! Words that are near a misspelt one.

/// Edit distances from one word to many, which come in order: what a term shares with the one before is not worked out
/// again, and what begins with too many edits already is passed over.
pub struct Distances<'a> {
    word: &'a [u8],
    most: u8,
    /// The term before, and a row of distances for each of its beginnings.
    term: Vec<u8>,
    rows: Vec<Vec<u8>>,
}

impl<'a> Distances<'a> {
    pub fn new(word: &'a [u8], most: u8) -> Distances<'a> {
        let first = (0..=word.len()).map(|edits| edits.min(255) as u8).collect();
        Distances { word, most, term: Vec::new(), rows: vec![first] }
    }

    /// The distance to a term; `None` if it is too far away.
    pub fn to(&mut self, term: &[u8]) -> Option<u8> {
        if term.len().abs_diff(self.word.len()) > usize::from(self.most) {
            return None;
        }
        let shared = self.term.iter().zip(term).take_while(|(a, b)| a == b).count();
        self.rows.truncate(shared + 1);
        self.term.truncate(self.rows.len() - 1);
        for &byte in &term[self.term.len()..] {
            let above = self.rows.last().expect("there is a first row");
            if above.iter().all(|&edits| edits > self.most) {
                return None;
            }
            let (depth, mut row) = (self.rows.len(), Vec::with_capacity(above.len()));
            row.push(depth.min(255) as u8);
            for (j, &letter) in self.word.iter().enumerate() {
                let mut edits = above[j].saturating_add(u8::from(byte != letter));
                edits = edits.min(above[j + 1].saturating_add(1)).min(row[j].saturating_add(1));
                if j > 0 && depth > 1 && byte == self.word[j - 1] && self.term[depth - 2] == letter {
                    edits = edits.min(self.rows[depth - 2][j - 1].saturating_add(1));
                }
                row.push(edits);
            }
            self.rows.push(row);
            self.term.push(byte);
        }
        self.rows.last()?.last().copied().filter(|&edits| edits <= self.most)
    }
}
