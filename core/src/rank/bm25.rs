//! Okapi BM25: `indlet.service.rank.bm25`.

use super::{Constants, Model, QueryConstants, Range};

pub struct Bm25 {
    k1: f64,
    b: f64,
    average: f64,
}

pub fn model(parameters: &[f64]) -> Bm25 {
    Bm25 { k1: parameters[0], b: parameters[1], average: parameters[2] }
}

impl Model for Bm25 {
    fn share(&self, term: Constants, tf: u32, length: u32) -> f64 {
        let damping = self.k1 * (1.0 - self.b + self.b * f64::from(length) / self.average);
        term.0 * f64::from(tf) / (f64::from(tf) + damping)
    }

    // The share grows with tf and falls with the length.
    fn bound(&self, term: Constants, _query: QueryConstants, range: &Range) -> f64 {
        self.share(term, range.most_tf, range.shortest).max(0.0)
    }
}
