//! Records with any vector and positions are written to a segment that can be read.
#![no_main]

mod shared;

use indlet_core::index::builder::SegmentBuilder;
use indlet_core::index::records::{Record, add_records};
use indlet_core::index::searcher::Searcher;
use indlet_core::index::segment::SegmentData;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&size, rest)) = data.split_first() else { return };
    let (vector, positions) = rest.split_at(rest.len().min(size as usize));
    let mut builder = SegmentBuilder::default();
    for (id, other) in [(1, b"1 air\n2 plate".as_slice()), (2, vector)] {
        let positions = if id == 2 { positions } else { &[1, 2, 5] };
        let one = Record { vector: Some(other), positions: Some(positions), ..shared::record(id) };
        add_records(&mut builder, &[one], None).expect("a record is indexed");
    }
    let path = shared::scratch("positions");
    let stamp = builder.write(&path).expect("a segment is written");
    let data = SegmentData::open(&path, stamp).expect("what was written can be read");
    shared::ask_everything(&Searcher::new(vec![shared::segment(data)])).expect("what was written answers");
});
