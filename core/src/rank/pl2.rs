//! PL2, divergence from randomness: `indlet.service.rank.pl2`.

use std::f64::consts::{E, LN_2, PI};

use super::{Class, Constants, Model, QueryConstants};

pub struct Pl2 {
    c: f64,
    average: f64,
    log2_e: f64,
}

pub fn model(parameters: &[f64]) -> Pl2 {
    Pl2 { c: parameters[0], average: parameters[1], log2_e: E.log2() }
}

impl Model for Pl2 {
    fn by_length(&self, length: u32) -> f64 {
        (self.c * self.average / f64::from(length.max(1))).ln_1p()
    }

    fn share(&self, term: Constants, tf: u32, _length: u32, by_length: f64) -> f64 {
        let Constants(weight, mean) = term;
        let tfn = f64::from(tf) * by_length / LN_2;
        let chance = tfn * (tfn / mean).log2()
            + (mean + 1.0 / (12.0 * tfn) - tfn) * self.log2_e
            + 0.5 * (2.0 * PI * tfn).log2();
        weight * chance / (tfn + 1.0)
    }

    // With x = tfn the share is N(x) / (x + 1). Its derivative has the sign of N'(x) (x + 1) - N(x), which grows with x,
    // for its own derivative is (x + 1) N''(x) = (x + 1) (x² - x/2 + 1/6) / (x³ ln 2) > 0. So the share falls, then
    // rises, and is highest at the least or the largest tfn.
    fn bound(&self, term: Constants, _query: QueryConstants, max_tf: u32, class: &Class) -> f64 {
        let most = self.share(term, max_tf, class.shortest, self.by_length(class.shortest));
        let least = self.share(term, 1, class.longest, self.by_length(class.longest));
        most.max(least).max(0.0)
    }
}
