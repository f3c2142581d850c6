//! PL2, divergence from randomness: `indlet.service.rank.pl2`.

use std::f64::consts::{E, LN_2, PI};

use super::{Constants, Model, QueryConstants, Range};

pub struct Pl2 {
    c: f64,
    average: f64,
    log2_e: f64,
}

pub fn model(parameters: &[f64]) -> Pl2 {
    Pl2 { c: parameters[0], average: parameters[1], log2_e: E.log2() }
}

impl Model for Pl2 {
    fn share(&self, term: Constants, tf: u32, length: u32) -> f64 {
        let Constants(weight, mean) = term;
        let tfn = f64::from(tf) * (self.c * self.average / f64::from(length.max(1))).ln_1p() / LN_2;
        let chance = tfn * (tfn / mean).log2()
            + (mean + 1.0 / (12.0 * tfn) - tfn) * self.log2_e
            + 0.5 * (2.0 * PI * tfn).log2();
        weight * chance / (tfn + 1.0)
    }

    // With x = tfn the share is N(x) / (x + 1). Its derivative has the sign of N'(x) (x + 1) - N(x), which grows with x,
    // for its own derivative is (x + 1) N''(x) = (x + 1) (x² - x/2 + 1/6) / (x³ ln 2) > 0. So the share falls, then
    // rises, and is highest at the least or the largest tfn. At x = ½ the sign is that of 0.097 - log2(mean) - mean/ln 2:
    // if the mean is at most ½, the share rises from there on, and tfn is at least ½ if c avgdl/dl is at least √2 - 1.
    fn bound(&self, term: Constants, _query: QueryConstants, range: &Range) -> f64 {
        let most = self.share(term, range.most_tf, range.shortest).max(0.0);
        if term.1 <= 0.5 && self.c * self.average >= 0.4143 * f64::from(range.longest) {
            return most;
        }
        most.max(self.share(term, range.least_tf, range.longest))
    }
}
