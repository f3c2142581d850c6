//! Files in memory: the one module with `unsafe` code.

#![allow(unsafe_code)]

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;

use memmap2::Mmap;

use crate::{Error, Result};

/// What a file's owner knows of it: its size in bytes and its CRC-32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    pub size: u64,
    pub checksum: u32,
}

/// Files that this process has read through and found whole, by device, inode, times and checksum. When there are too
/// many, those that are still used are read once more.
static VERIFIED: Mutex<Option<HashSet<[i64; 7]>>> = Mutex::new(None);
const MOST_VERIFIED: usize = 10_000;

/// The bytes of a file, which were found to be as they were written.
pub struct MappedFile {
    map: Mmap,
}

/// The CRC-32 of a file, which is read and not mapped: mapped pages would count as memory of the process.
fn checksum(mut file: &File) -> std::io::Result<u32> {
    let (mut hasher, mut buffer) = (crc32fast::Hasher::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize()),
            size => hasher.update(&buffer[..size]),
        }
    }
}

impl MappedFile {
    /// A file of which nothing is known. What it holds has to be checked where it is used.
    pub fn open_unverified(path: &Path) -> Result<MappedFile> {
        let file = File::open(path).map_err(|error| Error::io(path, &error))?;
        // SAFETY: as below. A cache file is written under another name, and only ever replaced as a whole.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| Error::io(path, &error))?;
        Ok(MappedFile { map })
    }

    pub fn open(path: &Path, stamp: Stamp) -> Result<MappedFile> {
        let failed = |error: std::io::Error| Error::io(path, &error);
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if about.len() != stamp.size {
            return Err(Error::Damaged(format!(
                "{} has not the {} bytes that were written",
                path.display(),
                stamp.size
            )));
        }
        // SAFETY: an index file is written once, under a name that is never used again, and is only ever removed. The
        // mapping is private and read-only, so nobody in this process changes what the slice shows.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        let key = [
            about.dev() as i64,
            about.ino() as i64,
            about.mtime(),
            about.mtime_nsec(),
            about.ctime(),
            about.ctime_nsec(),
            i64::from(stamp.checksum),
        ];
        let mut guard = VERIFIED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let verified = guard.get_or_insert_default();
        if !verified.contains(&key) {
            drop(guard);
            if checksum(&file).map_err(failed)? != stamp.checksum {
                return Err(Error::Damaged(format!("{} fails its checksum", path.display())));
            }
            let mut guard = VERIFIED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let verified = guard.get_or_insert_default();
            if verified.len() >= MOST_VERIFIED {
                verified.clear();
            }
            verified.insert(key);
        }
        Ok(MappedFile { map })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.map
    }
}
