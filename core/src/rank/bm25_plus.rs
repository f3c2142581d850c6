//! BM25+: `indlet.service.rank.bm25_plus`.

use super::{Class, Constants, Model, QueryConstants};

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
    fn by_length(&self, length: u32) -> f64 {
        self.k1 * (1.0 - self.b + self.b * f64::from(length) / self.average)
    }

    fn share(&self, term: Constants, tf: u32, _length: u32, by_length: f64) -> f64 {
        let tf = f64::from(tf);
        term.0 * (tf * (self.k1 + 1.0) / (tf + by_length) + self.delta)
    }

    // The share grows with tf and falls with the length.
    fn bound(&self, term: Constants, _query: QueryConstants, max_tf: u32, class: &Class) -> f64 {
        self.share(term, max_tf, class.shortest, self.by_length(class.shortest)).max(0.0)
    }
}
