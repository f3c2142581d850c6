//! A small index, and everything that can be asked of one: for the fuzz targets and for `tests/damaged_segment.rs`.
#![allow(dead_code)] // each target uses a part

use std::path::PathBuf;
use std::sync::Arc;

use indlet_core::Result;
use indlet_core::index::builder::SegmentBuilder;
use indlet_core::index::matching::Expression;
use indlet_core::index::records::{Record, add_records};
use indlet_core::index::searcher::{Facet, Request, Scoring, Searcher, Sort};
use indlet_core::index::segment::{Segment, SegmentData};
use indlet_core::rank::{Constants, QueryConstants};

pub const MODELS: [&str; 7] = ["bm25", "bm25_plus", "boolean", "dirichlet", "jelinek_mercer", "pl2", "vsm"];

/// A file of this process alone.
pub fn scratch(name: &str) -> PathBuf {
    let shared = PathBuf::from("/dev/shm");
    let folder = if shared.is_dir() { shared } else { std::env::temp_dir() };
    folder.join(format!("indlet-fuzz-{}-{name}.idx", std::process::id()))
}

pub fn record(id: i64) -> Record<'static> {
    const SETS: [&str; 3] = ["a", "a:b c", ""];
    Record {
        id,
        origin: id % 3,
        identifier: ["oai:x:1", "oai:x:2", "oai:y:3"][id as usize % 3],
        sets: SETS[id as usize % 3],
        resource: id as u64 % 5,
        further: "1 \u{1f}twing \u{1f}TWings\u{1}\n2 \u{1f}Cm\u{fc}ller\u{1}M\u{fc}ller".as_bytes(),
        length: 9,
        language: "en",
        metadata: br#"{"date":["1999-03-01"],"type":["Text"],"language":["eng"]}"#,
        vector: Some("1 acid caf\u{e9} wing\n3 air layer\n7 plate".as_bytes()),
        positions: None,
    }
}

/// Some records, more than a block of postings has, of which every other has positions.
pub fn sample() -> SegmentBuilder {
    let mut builder = SegmentBuilder::default();
    let positions: Vec<u8> = (1..=16).collect();
    for id in 0..150 {
        let mut one = record(id);
        if id % 2 == 0 {
            one.positions = Some(&positions);
        }
        add_records(&mut builder, &[one], None).expect("records of ours");
    }
    builder
}

pub fn everything() -> Vec<Expression> {
    let term = |name: &str| Expression::Term { term: name.as_bytes().to_vec(), weight: 1.0 };
    let words = |names: [&str; 2]| names.map(|name| name.as_bytes().to_vec()).to_vec();
    vec![
        term("plate"),
        term("absent"),
        Expression::Phrase { terms: words(["air", "layer"]), offsets: vec![0, 1], weight: 1.0 },
        Expression::Prefix { prefix: b"a".to_vec(), limit: 50 },
        Expression::And(vec![term("wing"), Expression::Not(Box::new(term("acid")))]),
        Expression::Or(vec![term("wing"), term("\u{1f}twing"), Expression::Positioned]),
        Expression::Filter { facet: "set".into(), value: "a".into() },
        Expression::Dates { low: 19_990_101, high: 20_001_231 },
        Expression::Ids(vec![1, 7, -3]),
        Expression::Everything,
    ]
}

/// Search by an expression, under a model and in an order that `choice` picks.
pub fn search(searcher: &Searcher, expression: &Expression, choice: usize) -> Result<()> {
    let terms: Vec<Vec<u8>> = searcher.query_terms(expression)?.into_iter().map(|found| found.term).collect();
    let constants = vec![Constants(1.5, 0.5); terms.len()];
    let scoring = Scoring {
        terms: &terms,
        constants: &constants,
        query: QueryConstants(9.0, 1.0),
        model: MODELS[choice % MODELS.len()],
        parameters: &[0.5; 8], // more than any model takes
        formula: None,
    };
    let orders = [Sort::Score, Sort::Newest, Sort::Oldest, Sort::Title, Sort::Author];
    let page = searcher.search(&Request {
        expression,
        scoring: &scoring,
        limit: 1 + choice % 20,
        offset: choice % 7,
        filters: &[],
        sort: orders[choice / 7 % orders.len()],
        facets: &[Facet::Column("set".into()), Facet::Values(b"\x1fC".to_vec())],
        collapse: choice % 2 == 0,
        first: &[],
        values: 5,
    })?;
    assert!(page.hits.len() <= page.total);
    Ok(())
}

/// All questions to an index; an error ends them, as it does for whoever asks.
pub fn ask_everything(searcher: &Searcher) -> Result<()> {
    searcher.make_ready()?;
    for (number, expression) in everything().iter().enumerate() {
        searcher.matching_ids(expression)?;
        search(searcher, expression, number)?;
        search(searcher, expression, number + 7)?;
    }
    searcher.terms(b"", Some(10))?;
    searcher.vocabulary(Some(b"air"), 10)?;
    searcher.near(b"plane", 2)?;
    searcher.accented("cafe")?;
    searcher.list_values(b"\x1fC", b"", 10, false)?;
    searcher.list_values(b"\x1fC", b"\x1fCz", 10, true)?;
    searcher.sizes()?;
    searcher.fingerprint()?;
    searcher.document(7, &[b"plate".to_vec()])?;
    searcher.without(&["1".into()]).map(drop)
}

pub fn segment(data: SegmentData) -> Segment {
    Segment::new(Arc::new(data), None)
}

/// Make the checksum of a file's directory fit its bytes. The footer has its size (8), its CRC-32 (4) and a magic number (8).
pub fn restore_directory_checksum(file: &mut [u8]) {
    let Some(footer) = file.len().checked_sub(20) else { return };
    let size = u64::from_le_bytes(file[footer..footer + 8].try_into().unwrap_or_default()) as usize;
    if let Some(begin) = footer.checked_sub(size) {
        let sum = crc32fast::hash(&file[begin..footer]);
        file[footer + 8..footer + 12].copy_from_slice(&sum.to_le_bytes());
    }
}
