//! A segment with any byte changed, or cut at any length, is refused with `Error::Damaged`. Where its checksum is made to fit,
//! searches give an answer or that same error, and never panic or loop.

#[path = "../fuzz/fuzz_targets/shared/mod.rs"]
mod shared;

use std::path::{Path, PathBuf};

use indlet_core::index::searcher::Searcher;
use indlet_core::index::segment::SegmentData;
use indlet_core::{Error, Result, Stamp};

/// A file that is removed in the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn written(name: &str) -> (Scratch, Stamp, Vec<u8>) {
    let file = Scratch(shared::scratch(name));
    let stamp = shared::sample().write(&file.0).unwrap();
    let good = std::fs::read(&file.0).unwrap();
    (file, stamp, good)
}

fn stamp_of(bytes: &[u8]) -> Stamp {
    Stamp { size: bytes.len() as u64, checksum: crc32fast::hash(bytes) }
}

fn search_all(path: &Path, stamp: Stamp) -> Result<()> {
    let data = SegmentData::open(path, stamp)?;
    shared::ask_everything(&Searcher::new(vec![shared::segment(data)]))
}

/// The file with one byte changed, for every byte, and the file cut at every length.
fn damaged_versions(good: &[u8]) -> impl Iterator<Item = (String, Vec<u8>)> {
    let changed = (0..good.len()).flat_map(move |place| {
        [1 << (place % 8), 0xFF].into_iter().map(move |mask| {
            let mut bad = good.to_vec();
            bad[place] ^= mask;
            (format!("byte {place} xor {mask:#x}"), bad)
        })
    });
    changed.chain((0..good.len()).map(|size| (format!("cut at {size}"), good[..size].to_vec())))
}

#[test]
fn a_damaged_file_is_refused() {
    let (file, stamp, good) = written("refused");
    for (what, bad) in damaged_versions(&good) {
        std::fs::write(&file.0, &bad).unwrap();
        let opened = SegmentData::open(&file.0, stamp).map(drop);
        assert!(matches!(opened, Err(Error::Damaged(_))), "{what}: {opened:?}");
    }
    std::fs::write(&file.0, &good).unwrap();
    search_all(&file.0, stamp).unwrap();
}

#[test]
fn a_damaged_file_whose_checksums_fit_is_an_error_or_an_answer() {
    let (file, _, good) = written("fitting");
    let mut refused = 0;
    for (what, mut bad) in damaged_versions(&good) {
        shared::restore_directory_checksum(&mut bad);
        std::fs::write(&file.0, &bad).unwrap();
        let found = search_all(&file.0, stamp_of(&bad));
        assert!(matches!(found, Ok(()) | Err(Error::Damaged(_))), "{what}: {found:?}");
        refused += usize::from(found.is_err());
    }
    assert!(refused > good.len(), "{refused} of {} files were refused", 3 * good.len());
}
