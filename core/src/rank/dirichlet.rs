//! Query likelihood with Dirichlet smoothing: `indlet.service.rank.dirichlet`.

use super::{Constants, Model, QueryConstants, Range};

pub struct Dirichlet {
    mu: f64,
}

pub fn model(parameters: &[f64]) -> Dirichlet {
    Dirichlet { mu: parameters[0] }
}

impl Model for Dirichlet {
    fn share(&self, term: Constants, tf: u32, _length: u32) -> f64 {
        term.0 * (1.0 + f64::from(tf) / term.1).ln()
    }

    fn finish(&self, query: QueryConstants, total: f64, length: u32, _norm: f64) -> f64 {
        total + query.0 * (self.mu / (f64::from(length) + self.mu)).ln() + query.1
    }

    fn bound(&self, term: Constants, _query: QueryConstants, range: &Range) -> f64 {
        self.share(term, range.most_tf, 0).max(0.0)
    }

    // The discount falls with the length.
    fn base(&self, query: QueryConstants, range: &Range) -> f64 {
        self.finish(query, 0.0, range.shortest, 1.0)
    }
}
