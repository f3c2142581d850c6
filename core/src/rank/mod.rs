//! Retrieval models, as fast as they can be scored.
//!
//! The formula in `indlet.service.rank` is the specification: a model here repeats its operations in double precision,
//! in the same order, so that both agree to the last bit. Python works out what depends on terms and query alone; here
//! is what has to be done for each posting. A model is one file in this folder: `build.rs` finds it.

include!(concat!(env!("OUT_DIR"), "/models.rs"));

/// What a model knows of a term: two numbers, which its formula names.
#[derive(Debug, Clone, Copy)]
pub struct Constants(pub f64, pub f64);

/// What a model knows of the whole query: two numbers, which its formula names.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueryConstants(pub f64, pub f64);

/// Some postings: what their tfs and the documents are at least or at most.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    pub least_tf: u32,
    pub most_tf: u32,
    pub shortest: u32,
    pub longest: u32,
    pub least_norm: f64,
}

/// A score is `finish(sum of share over the query terms that a document holds)`.
pub trait Model: Sync {
    /// Whether `finish` divides by the norm of a document: then bounds go by classes of norms, not of lengths.
    const BY_NORM: bool = false;
    /// Whether every document has the same score.
    const CONSTANT: bool = false;

    /// What a document of that length gets for a term that it holds.
    fn share(&self, term: Constants, tf: u32, length: u32) -> f64;

    /// The score of a document with that sum of shares.
    fn finish(&self, _query: QueryConstants, total: f64, _length: u32, _norm: f64) -> f64 {
        total
    }

    /// An upper bound, not below 0, of what one of these postings of a term adds to a score.
    fn bound(&self, term: Constants, query: QueryConstants, range: &Range) -> f64;

    /// An upper bound of the score of such a document if it holds no term.
    fn base(&self, _query: QueryConstants, _range: &Range) -> f64 {
        0.0
    }
}

/// The formula of a model that is not compiled.
pub trait Formula: Sync {
    fn share(&self, term: Constants, tf: u32, length: u32) -> f64;
    fn finish(&self, query: QueryConstants, total: f64, length: u32, norm: f64) -> f64;
}

/// A model of which nothing but its formula is known: it scores every document.
pub struct Interpreted<'a>(pub &'a dyn Formula);

impl Model for Interpreted<'_> {
    const BY_NORM: bool = true;

    fn share(&self, term: Constants, tf: u32, length: u32) -> f64 {
        self.0.share(term, tf, length)
    }

    fn finish(&self, query: QueryConstants, total: f64, length: u32, norm: f64) -> f64 {
        self.0.finish(query, total, length, norm)
    }

    fn bound(&self, _term: Constants, _query: QueryConstants, _range: &Range) -> f64 {
        f64::INFINITY
    }
}

/// Used with the model that a query names.
pub trait Use {
    type Output;

    fn with<M: Model>(self, model: M) -> Self::Output;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::derived::class_limits;

    struct BoundsHold;

    impl Use for BoundsHold {
        type Output = ();

        fn with<M: Model>(self, model: M) {
            let query = QueryConstants(1.5, -3.0);
            let terms = [0.001, 0.4, 0.6, 3.0, 50.0].map(|constant| Constants(2.0, constant));
            // No whole number is between 2¼ and 2½, say: some classes are empty.
            for limits in (0..60).map(class_limits).filter(|limits| limits.shortest <= limits.longest) {
                for (least_tf, most_tf) in [(1, 1), (2, 2), (15, 300), (1, 40)] {
                    let range = Range { least_tf, most_tf, ..limits };
                    for (tf, length) in
                        [(least_tf, limits.longest), (most_tf, limits.shortest), (least_tf, limits.shortest)]
                    {
                        for term in terms {
                            let total = model.share(term, tf, length);
                            let score = model.finish(query, total, length, limits.least_norm);
                            let bound = model.base(query, &range) + model.bound(term, query, &range);
                            assert!(score <= bound + 1e-9, "{score} is above {bound} for {term:?} and {range:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn no_score_is_above_its_bound() {
        for name in MODELS {
            for parameters in [[0.9, 0.6, 80.0, 1.0], [5.0, 1.0, 80.0, 0.5]] {
                with_model(name, &parameters, BoundsHold).unwrap();
            }
        }
    }
}
