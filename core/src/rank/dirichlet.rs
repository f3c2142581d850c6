//! Query likelihood with Dirichlet smoothing: `indlet.service.rank.dirichlet`.

use super::{Class, Constants, Model, QueryConstants};

pub struct Dirichlet {
    mu: f64,
}

pub fn model(parameters: &[f64]) -> Dirichlet {
    Dirichlet { mu: parameters[0] }
}

impl Model for Dirichlet {
    const BY_TF: bool = true;

    fn by_length(&self, length: u32) -> f64 {
        (self.mu / (f64::from(length) + self.mu)).ln()
    }

    fn share(&self, term: Constants, tf: u32, _length: u32, _by_length: f64) -> f64 {
        term.0 * (1.0 + f64::from(tf) / term.1).ln()
    }

    fn finish(&self, query: QueryConstants, total: f64, by_length: f64, _norm: f64) -> f64 {
        total + query.0 * by_length + query.1
    }

    fn bound(&self, term: Constants, _query: QueryConstants, max_tf: u32, _class: &Class) -> f64 {
        self.share(term, max_tf, 0, 0.0).max(0.0)
    }

    // The discount falls with the length.
    fn base(&self, query: QueryConstants, class: &Class) -> f64 {
        self.finish(query, 0.0, self.by_length(class.shortest), 1.0)
    }
}
