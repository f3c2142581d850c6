//! BM25+: `indlet.service.rank.bm25_plus`.

use super::{Constants, Model, QueryConstants, Range};

pub struct Bm25Plus {
    k1: f64,
    b: f64,
    average: f64,
    delta: f64,
}

pub fn model(parameters: &[f64]) -> Bm25Plus {
    Bm25Plus { k1: parameters[0], b: parameters[1], average: parameters[2], delta: parameters[3] }
}

impl Model for Bm25Plus {
    fn share(&self, term: Constants, tf: u32, length: u32) -> f64 {
        let damping = self.k1 * (1.0 - self.b + self.b * f64::from(length) / self.average);
        let tf = f64::from(tf);
        term.0 * (tf * (self.k1 + 1.0) / (tf + damping) + self.delta)
    }

    // The share grows with tf and falls with the length.
    fn bound(&self, term: Constants, _query: QueryConstants, range: &Range) -> f64 {
        self.share(term, range.most_tf, range.shortest).max(0.0)
    }
}
