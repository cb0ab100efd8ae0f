//! Lines that are far apart in memory and together in the host's.
//!
//! An [`Image`] takes host memory in pages: of a trace that writes lines at random over a few hundred megabytes it soon has
//! all pages, though one line in eight was written, and the first touch of each page is a fault. Here a line takes 64 bytes,
//! behind those of the line that was written before it for the first time, and a table says where they are.

use super::{Image, LineAddr, LineData, WORDS_PER_LINE};
use crate::host;

/// Lines of which the table takes host memory at once: 1 KB for 16 KB of lines. Lines that are far from all others take no
/// more than that.
const PART_LINES: usize = 256;

/// Numbers of lines, from one on, in the order in which they were written first; 0 for a line that was not.
type Part = [u32; PART_LINES];

/// Parts of a directory: those of 16 MB of lines, so that a trace that has one line at the end of a large memory has no long
/// list of parts.
const DIRECTORY_PARTS: usize = 1024;

/// Parts beside each other.
type Directory = [Option<Box<Part>>; DIRECTORY_PARTS];

/// The content of lines, zero where they were never written.
#[derive(Clone, Default)]
pub struct LineStore {
    directories: Vec<Option<Box<Directory>>>,
    written: u32,
    /// Content by number.
    lines: Image,
}

/// The directory of a line, its part there, and its place in that.
#[inline]
const fn locate(line: LineAddr) -> (usize, usize, usize) {
    let (part, at) = (line.0 as usize / PART_LINES, line.0 as usize % PART_LINES);
    (part / DIRECTORY_PARTS, part % DIRECTORY_PARTS, at)
}

impl LineStore {
    /// The number of a line, if others near it have any.
    #[inline]
    fn number(&self, line: LineAddr) -> Option<&u32> {
        let (directory, part, at) = locate(line);
        let directory = self.directories.get(directory)?.as_ref()?;
        Some(&directory[part].as_ref()?[at])
    }

    /// The place of a line that was written.
    #[inline]
    fn place(&self, line: LineAddr) -> Option<LineAddr> {
        let number = *self.number(line)?;
        (number > 0).then(|| LineAddr(number.into()))
    }

    /// The place of a line that is being written, and whether it is new.
    ///
    /// # Panics
    /// With 2^32 lines, which take 256 GB.
    #[inline]
    fn place_to_write(&mut self, line: LineAddr) -> (LineAddr, bool) {
        let (directory, part, at) = locate(line);
        if directory >= self.directories.len() {
            self.directories.resize_with(directory + 1, || None);
        }
        let directory = self.directories[directory]
            .get_or_insert_with(|| Box::new([const { None }; DIRECTORY_PARTS]));
        let part = directory[part].get_or_insert_with(|| Box::new([0; PART_LINES]));
        let number = &mut part[at];
        let is_new = *number == 0;
        if is_new {
            self.written = self.written.checked_add(1).expect("lines fit into the host's memory");
            *number = self.written;
        }
        (LineAddr((*number).into()), is_new)
    }

    /// The eight words of a line.
    #[inline]
    pub fn load_line(&self, line: LineAddr) -> LineData {
        self.place(line).map_or([0; WORDS_PER_LINE], |place| self.lines.load_line(place))
    }

    /// The eight words of a line, to be changed; it is written from now on.
    #[inline]
    pub fn line_mut(&mut self, line: LineAddr) -> &mut LineData {
        let place = self.place_to_write(line).0;
        self.lines.line_mut(place)
    }

    /// The same of a line that was written.
    #[inline]
    pub fn written_line_mut(&mut self, line: LineAddr) -> Option<&mut LineData> {
        let place = self.place(line)?;
        Some(self.lines.line_mut(place))
    }

    /// Has a line hold this unless it was written; returns true if it was not. It is written from now on.
    #[inline]
    pub fn begin_line(&mut self, line: LineAddr, data: &LineData) -> bool {
        let (place, is_new) = self.place_to_write(line);
        if is_new {
            // Zeros, too, though they are there: the host's caches have the line from now on.
            self.lines.store_line(place, data);
        }
        is_new
    }

    /// Asks the host to bring near where a line is found, ahead of its use.
    #[inline]
    pub fn prefetch_place(&self, line: LineAddr) {
        if let Some(number) = self.number(line) {
            host::prefetch(number);
        }
    }

    /// Asks the host to bring a line near, ahead of its use, once it has been asked for its place.
    #[inline]
    pub fn prefetch(&self, line: LineAddr) {
        if let Some(place) = self.place(line) {
            self.lines.prefetch(place);
        }
    }

    /// Bytes of host memory taken so far.
    pub fn host_bytes(&self) -> u64 {
        let directories = || self.directories.iter().flatten();
        let parts = directories().flat_map(|directory| directory.iter().flatten()).count();
        let bytes = size_of_val(&self.directories[..])
            + directories().count() * size_of::<Directory>()
            + parts * size_of::<Part>();
        bytes as u64 + self.lines.host_bytes()
    }
}

#[cfg(test)]
mod tests {
    //! Bug classes: a line that has the place of another, or content before it was written.

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Write(LineData),
        WriteIfWritten(LineData),
        Begin(LineData),
    }

    fn step() -> impl Strategy<Value = Step> {
        let data = || prop_oneof![Just([0; 8]), any::<LineData>()];
        prop_oneof![
            data().prop_map(Step::Write),
            data().prop_map(Step::WriteIfWritten),
            data().prop_map(Step::Begin),
        ]
    }

    proptest! {
        #[test]
        fn lines_are_as_those_of_an_image(
            steps in prop::collection::vec((0..3u64, 0..3u64, step()), 0..80),
        ) {
            let (mut store, mut image) = (LineStore::default(), Image::new());
            let mut written = std::collections::BTreeSet::new();
            let lines = |part: u64, at: u64| LineAddr(part * PART_LINES as u64 * 1000 + at * 255);
            for (part, at, step) in steps {
                let line = lines(part, at);
                store.prefetch_place(line);
                store.prefetch(line);
                match step {
                    Step::Write(data) => {
                        *store.line_mut(line) = data;
                        image.store_line(line, &data);
                        written.insert(line);
                    }
                    Step::WriteIfWritten(data) => {
                        let held = store.written_line_mut(line);
                        prop_assert_eq!(held.is_some(), written.contains(&line));
                        if let Some(held) = held {
                            *held = data;
                            image.store_line(line, &data);
                        }
                    }
                    Step::Begin(data) => {
                        let is_new = written.insert(line);
                        prop_assert_eq!(store.begin_line(line, &data), is_new);
                        if is_new {
                            image.store_line(line, &data);
                        }
                    }
                }
                for line in (0..3).flat_map(|part| (0..3).map(move |at| lines(part, at))) {
                    prop_assert_eq!(store.load_line(line), image.load_line(line));
                }
            }
        }
    }

    #[test]
    fn lines_far_apart_take_little_host_memory() {
        let mut store = LineStore::default();
        let lines: u64 = 100;
        for line in 0..lines {
            store.line_mut(LineAddr(line << 22))[0] = line;
        }
        assert!((0..lines).all(|line| store.load_line(LineAddr(line << 22))[0] == line));
        // A line has a directory and a part of its own, the last of them at 26 GB.
        assert!(store.host_bytes() <= lines * (8 + 1 + 1) * 1024 + (2 << 20));
    }
}
