//! Index files: named sections one after another, a directory of them, and its size and checksum at the end.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::bytes::{Reader, write_varint};
use crate::map::{MappedFile, Stamp};
use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"indlet-4";
const FOOTER: usize = 8 + 4 + MAGIC.len();

/// Writes a file; [`FileWriter::close`] makes it durable. Dropped before that, the file is removed.
pub struct FileWriter {
    path: PathBuf,
    out: Option<BufWriter<File>>,
    hasher: crc32fast::Hasher,
    size: u64,
    directory: Vec<(String, u64, u64)>,
}

impl FileWriter {
    pub fn create(path: &Path) -> Result<FileWriter> {
        let file = create_private(path)?;
        Ok(FileWriter {
            path: path.to_owned(),
            out: Some(BufWriter::with_capacity(1 << 18, file)),
            hasher: crc32fast::Hasher::new(),
            size: 0,
            directory: Vec::new(),
        })
    }

    /// Begin a section, which goes on until the next one begins.
    pub fn begin(&mut self, name: &str) -> Result<()> {
        self.directory.push((name.to_owned(), self.size, 0));
        Ok(())
    }

    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(bytes)?;
        if let Some(section) = self.directory.last_mut() {
            section.2 += bytes.len() as u64;
        }
        Ok(())
    }

    pub fn add(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.begin(name)?;
        self.append(bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let out = self.out.as_mut().ok_or_else(|| Error::Value("the file is closed".into()))?;
        out.write_all(bytes).map_err(|error| Error::io(&self.path, &error))?;
        self.hasher.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    pub fn close(mut self) -> Result<Stamp> {
        let mut directory = Vec::new();
        for (name, begin, size) in &self.directory {
            write_varint(&mut directory, name.len() as u64);
            directory.extend_from_slice(name.as_bytes());
            write_varint(&mut directory, *begin);
            write_varint(&mut directory, *size);
        }
        self.write(&directory)?;
        self.write(&(directory.len() as u64).to_le_bytes())?;
        self.write(&crc32fast::hash(&directory).to_le_bytes())?;
        self.write(MAGIC)?;
        let failed = |error: std::io::Error| Error::io(&self.path, &error);
        if let Some(mut out) = self.out.take() {
            let flushed = out.flush().and_then(|()| out.get_ref().sync_all());
            if let Err(error) = flushed {
                let _ = std::fs::remove_file(&self.path);
                return Err(failed(error));
            }
        }
        Ok(Stamp { size: self.size, checksum: self.hasher.clone().finalize() })
    }
}

/// Create a file that only its owner may read.
pub fn create_private(path: &Path) -> Result<File> {
    let mut options = File::options();
    options.create(true).truncate(true).read(true).write(true).mode(0o600);
    options.open(path).map_err(|error| Error::io(path, &error))
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if self.out.take().is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A file as written, verified.
pub struct IndexFile {
    file: MappedFile,
    sections: Vec<(String, usize, usize)>,
}

impl IndexFile {
    pub fn open(path: &Path, stamp: Stamp) -> Result<IndexFile> {
        let file = MappedFile::open(path, stamp)?;
        let sections = read_directory(file.bytes())
            .map_err(|_| Error::Damaged(format!("{} is damaged, or of another version", path.display())))?;
        Ok(IndexFile { file, sections })
    }

    pub fn section(&self, name: &str) -> Option<&[u8]> {
        let (_, begin, end) = self.sections.iter().find(|(own, _, _)| own == name)?;
        Some(&self.file.bytes()[*begin..*end])
    }

    pub fn required(&self, name: &str) -> Result<&[u8]> {
        self.section(name).ok_or_else(|| Error::Damaged(format!("an index file has no section {name:?}")))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().map(|(name, _, _)| name.as_str())
    }
}

fn read_directory(bytes: &[u8]) -> Result<Vec<(String, usize, usize)>> {
    let damaged = || Error::Damaged(String::new());
    let (before, footer) = bytes.split_at_checked(bytes.len().wrapping_sub(FOOTER)).ok_or_else(damaged)?;
    let mut reader = Reader::new(footer);
    let (size, checksum) = (reader.u64()? as usize, reader.u32()?);
    if reader.rest != MAGIC {
        return Err(damaged());
    }
    let (data, directory) = before.split_at_checked(before.len().wrapping_sub(size)).ok_or_else(damaged)?;
    if crc32fast::hash(directory) != checksum {
        return Err(damaged());
    }
    let mut reader = Reader::new(directory);
    let mut sections = Vec::new();
    while !reader.rest.is_empty() {
        let length = reader.varint()? as usize;
        let name = String::from_utf8(reader.take(length)?.to_vec()).map_err(|_| damaged())?;
        let (begin, size) = (reader.varint()?, reader.varint()?);
        let end = begin.checked_add(size).filter(|&end| end <= data.len() as u64).ok_or_else(damaged)?;
        sections.push((name, begin as usize, end as usize));
    }
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_come_back_and_damage_is_noticed() {
        let path = std::env::temp_dir().join(format!("indlet-file-{}.idx", std::process::id()));
        let mut writer = FileWriter::create(&path).unwrap();
        writer.add("a", b"first").unwrap();
        writer.begin("b").unwrap();
        writer.append(b"sec").unwrap();
        writer.append(b"ond").unwrap();
        let stamp = writer.close().unwrap();
        let file = IndexFile::open(&path, stamp).unwrap();
        assert_eq!(file.section("a"), Some(&b"first"[..]));
        assert_eq!(file.section("b"), Some(&b"second"[..]));
        assert_eq!(file.section("c"), None);
        drop(file);
        let good = std::fs::read(&path).unwrap();
        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert!(matches!(IndexFile::open(&path, stamp), Err(Error::Damaged(_))), "byte {place}");
            // Even with a checksum that fits, nothing panics.
            let _ = IndexFile::open(&path, Stamp { size: stamp.size, checksum: crc32fast::hash(&bad) });
        }
        std::fs::remove_file(&path).unwrap();
    }
}
