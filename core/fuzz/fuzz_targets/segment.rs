//! A damaged segment whose checksum fits (its sections changed, or cut) is refused, or answers with an error or with
//! something else: it never panics, and never takes without end.
#![no_main]

mod shared;

use std::sync::OnceLock;

use indlet_core::Stamp;
use indlet_core::index::searcher::Searcher;
use indlet_core::index::segment::SegmentData;
use libfuzzer_sys::fuzz_target;

static GOOD: OnceLock<Vec<u8>> = OnceLock::new();

/// Edits, six bytes each: a place (4), a length (low four bits) and an operation, a byte.
fn damage(file: &mut [u8], edits: &[u8]) {
    for edit in edits.chunks_exact(6) {
        let place = u32::from_le_bytes([edit[0], edit[1], edit[2], edit[3]]) as usize % file.len();
        let end = (place + 1 + (edit[4] & 15) as usize).min(file.len());
        for byte in &mut file[place..end] {
            match edit[4] >> 4 & 3 {
                0 => *byte = edit[5],
                1 => *byte ^= edit[5],
                2 => *byte = byte.wrapping_add(edit[5]),
                _ => *byte = 0xFF,
            }
        }
    }
}

fuzz_target!(|edits: &[u8]| {
    let path = shared::scratch("segment");
    let good = GOOD.get_or_init(|| {
        shared::sample().write(&path).expect("a segment is written");
        std::fs::read(&path).expect("it is there")
    });
    let mut bad = good.clone();
    damage(&mut bad, edits);
    if edits.len() % 6 != 1 {
        shared::restore_directory_checksum(&mut bad);
    }
    std::fs::write(&path, &bad).expect("there is room");
    let stamp = Stamp { size: bad.len() as u64, checksum: crc32fast::hash(&bad) };
    if let Ok(data) = SegmentData::open(&path, stamp) {
        let _ = shared::ask_everything(&Searcher::new(vec![shared::segment(data)]));
    }
});
