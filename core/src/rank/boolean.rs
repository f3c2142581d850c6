//! Boolean retrieval: `indlet.service.rank.boolean`.

use super::{Constants, Model, QueryConstants, Range};

pub struct Boolean;

pub fn model(_parameters: &[f64]) -> Boolean {
    Boolean
}

impl Model for Boolean {
    const CONSTANT: bool = true;

    fn share(&self, _term: Constants, _tf: u32, _length: u32) -> f64 {
        0.0
    }

    fn finish(&self, _query: QueryConstants, _total: f64, _length: u32, _norm: f64) -> f64 {
        1.0
    }

    fn bound(&self, _term: Constants, _query: QueryConstants, _range: &Range) -> f64 {
        0.0
    }

    fn base(&self, _query: QueryConstants, _range: &Range) -> f64 {
        1.0
    }
}
