//! Query likelihood with Jelinek–Mercer smoothing: `indlet.service.rank.jelinek_mercer`.

use super::{Constants, Model, QueryConstants, Range};

pub struct JelinekMercer;

pub fn model(_parameters: &[f64]) -> JelinekMercer {
    JelinekMercer
}

impl Model for JelinekMercer {
    fn share(&self, term: Constants, tf: u32, length: u32) -> f64 {
        term.0 * (1.0 + f64::from(tf) * term.1 / f64::from(length.max(1))).ln()
    }

    fn finish(&self, query: QueryConstants, total: f64, _length: u32, _norm: f64) -> f64 {
        total + query.1
    }

    // The share grows with tf and falls with the length.
    fn bound(&self, term: Constants, _query: QueryConstants, range: &Range) -> f64 {
        self.share(term, range.most_tf, range.shortest).max(0.0)
    }

    fn base(&self, query: QueryConstants, _range: &Range) -> f64 {
        query.1
    }
}
