//! The vector space model: `indlet.service.rank.vsm`.

use super::{Constants, Model, QueryConstants, Range};

pub struct Vsm;

pub fn model(_parameters: &[f64]) -> Vsm {
    Vsm
}

fn or_one(value: f64) -> f64 {
    if value == 0.0 { 1.0 } else { value }
}

impl Model for Vsm {
    const BY_NORM: bool = true;

    fn share(&self, term: Constants, tf: u32, _length: u32) -> f64 {
        term.0 * (1.0 + f64::from(tf).ln())
    }

    fn finish(&self, query: QueryConstants, total: f64, _length: u32, norm: f64) -> f64 {
        total / (or_one(norm) * or_one(query.0))
    }

    fn bound(&self, term: Constants, query: QueryConstants, range: &Range) -> f64 {
        (self.share(term, range.most_tf, 0) / or_one(query.0) / range.least_norm).max(0.0)
    }
}
