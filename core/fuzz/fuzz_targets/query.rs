//! Any expression over a small index is answered, and every way to count its documents agrees.
#![no_main]

mod shared;

use std::sync::OnceLock;

use indlet_core::index::matching::Expression;
use indlet_core::index::searcher::Searcher;
use indlet_core::index::segment::SegmentData;
use libfuzzer_sys::fuzz_target;

static SEARCHER: OnceLock<Searcher> = OnceLock::new();

/// Reads an expression from bytes; when these end, everything is asked for.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0xFF };
        self.0 = rest;
        first
    }

    fn word(&mut self) -> Vec<u8> {
        const WORDS: [&str; 8] = ["plate", "air", "layer", "wing", "acid", "caf\u{e9}", "\u{1f}twing", "a"];
        let first = self.byte();
        if first < 128 {
            return WORDS[first as usize % WORDS.len()].as_bytes().to_vec();
        }
        let size = (first as usize & 15).min(self.0.len());
        let (word, rest) = self.0.split_at(size);
        self.0 = rest;
        word.to_vec()
    }

    fn expression(&mut self, depth: u8) -> Expression {
        let parts = |source: &mut Self| (0..source.byte() % 4).map(|_| source.expression(depth + 1)).collect();
        match if depth > 6 { 0 } else { self.byte() % 12 } {
            0 => Expression::Term { term: self.word(), weight: 1.0 + f64::from(self.byte()) },
            1 | 2 => {
                let count = self.byte() as usize % 4;
                let terms = (0..count).map(|_| self.word()).collect();
                let offsets = (0..count).map(|_| i64::from(self.byte() as i8)).collect();
                Expression::Phrase { terms, offsets, weight: 1.0 }
            }
            3 => Expression::Prefix { prefix: self.word(), limit: self.byte() as usize },
            4 => Expression::And(parts(self)),
            5 => Expression::Or(parts(self)),
            6 => Expression::Not(Box::new(self.expression(depth + 1))),
            7 => {
                let facet = ["origin", "type", "language", "set", "year", "none"][self.byte() as usize % 6];
                Expression::Filter { facet: facet.into(), value: String::from_utf8_lossy(&self.word()).into() }
            }
            8 => Expression::Dates { low: i64::from(self.byte()) * 100_000, high: i64::from(self.byte()) * 100_000 },
            9 => Expression::Ids((0..self.byte() % 9).map(|_| i64::from(self.byte())).collect()),
            10 => Expression::Positioned,
            _ => Expression::Everything,
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let searcher = SEARCHER.get_or_init(|| {
        let path = shared::scratch("query");
        let stamp = shared::sample().write(&path).expect("a segment is written");
        Searcher::new(vec![shared::segment(SegmentData::open(&path, stamp).expect("it can be read"))])
    });
    let mut source = Source(data);
    let choice = source.byte() as usize;
    let expression = source.expression(0);
    let ids = searcher.matching_ids(&expression).expect("an expression is matched");
    assert!(ids.len() <= searcher.documents());
    shared::search(searcher, &expression, choice).expect("an expression is searched for");
});
