//! Files of a captured program, as an image of memory holds them.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use graven::memory::{Addr, Image};
use serde_json::Value;

/// Name in the trace for memory that is no file's.
const MEMORY: &str = "(memory)";

/// A file of the program's.
pub struct ImageFile {
    /// Name, without folder and without characters that mean something to a shell.
    pub name: String,
    /// First byte in the trace.
    pub start: u64,
    /// Bytes of it that the trace may have.
    pub bytes: u64,
    /// Length when the trace begins, in bytes; none: it is not known, or this is no file.
    pub length: Option<u64>,
}

/// The files of a captured program, by what its trace's header says; none: it has no such files.
pub fn of(capture: &Value) -> Option<Vec<ImageFile>> {
    let paths = capture["files"].as_array()?;
    let regions = capture["report"]["regions"].as_array()?;
    let mut files = Vec::new();
    let mut names = HashSet::new();
    for (number, (path, region)) in paths.iter().zip(regions).enumerate() {
        let path = path.as_str()?;
        let name = safe_name(Path::new(path).file_name()?.to_str()?);
        // Of two with the same name, in different folders, the second one has its number, too.
        let name = if names.contains(&name) { format!("{number}-{name}") } else { name };
        names.insert(name.clone());
        let (start, bytes) = (region["start"].as_u64()?, region["bytes"].as_u64()?);
        let length = region["file_bytes"].as_u64().filter(|_| path != MEMORY);
        files.push(ImageFile { name, start, bytes, length });
    }
    Some(files)
}

/// A name as it is, if a shell reads it so.
fn safe_name(name: &str) -> String {
    let is_safe = |c: char| c.is_alphanumeric() || "._-+,@%".contains(c);
    name.chars().map(|c| if is_safe(c) { c } else { '_' }).collect()
}

impl ImageFile {
    /// Writes it into a folder, with a length in bytes, and leaves zeros as holes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, folder: &Path, image: &Image, length: u64) -> io::Result<()> {
        let file = File::create(folder.join(&self.name))?;
        let (mut run, mut at) = (Vec::new(), 0);
        let end = self.start + self.bytes.min(length).next_multiple_of(8);
        for (addr, word) in image.nonzero_words_in(Addr(self.start), Addr(end)) {
            let offset = addr.0 - self.start;
            if offset != at + run.len() as u64 {
                file.write_all_at(&run, at)?;
                run.clear();
                at = offset;
            }
            run.extend(word.to_le_bytes());
        }
        file.write_all_at(&run, at)?;
        // Of the last word there may be a part that is not the file's.
        file.set_len(length)
    }
}

/// A folder that is removed with all that is in it.
pub struct Folder(pub PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left there harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}
