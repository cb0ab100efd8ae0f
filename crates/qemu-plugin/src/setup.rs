//! The settings of a capture: the file `setup` in the plugin's folder. Each line is a word and its value.
//!
//! | word | value |
//! |---|---|
//! | `file` | a pattern: mappings of files with such paths are persistent memory |
//! | `function` | a name: calls of this function are followed, with its first argument; the first is number 0 |
//! | `synchronises` | the same; it synchronises threads, and what is done for that within it is not recorded |
//! | `waits` | the same, with its second argument |
//! | `begins` | one of these words and a name: the same; the trace does not begin before its entry |
//! | `volatile` | nothing: volatile memory is recorded, too, from the first such entry or marker on; if there is no such function, as long as some memory is persistent |
//! | `heap` | nothing: what `malloc` gives is persistent memory |
//! | `range` | two numbers, a first address and how many bytes: they are persistent memory |
//! | `object` | a name: so are the bytes of this variable of the program or its libraries |

use std::ffi::CString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// An argument of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// The first.
    First,
    /// The second.
    Second,
}

/// A function that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The argument that matters.
    pub argument: Argument,
    /// True if the function synchronises threads.
    pub synchronises: bool,
    /// The trace may begin with its entry.
    pub begins: bool,
}

impl Followed {
    /// The name, and what matters of it, from a line's words.
    fn parse(line: &str, begins: bool) -> Option<(&str, Followed)> {
        let (word, name) = line.split_once(' ')?;
        let (argument, synchronises) = match word {
            "function" => (Argument::First, false),
            "synchronises" => (Argument::First, true),
            "waits" => (Argument::Second, true),
            _ => return None,
        };
        Some((name, Followed { argument, synchronises, begins }))
    }
}

/// The settings of a capture.
#[derive(Debug, Default)]
pub struct Setup {
    /// The folder of the plugin's files.
    pub folder: PathBuf,
    /// Patterns of paths.
    pub files: Vec<CString>,
    /// Names of functions, and what matters of each.
    pub functions: Vec<(String, Followed)>,
    /// Records volatile memory.
    pub volatile: bool,
    /// Takes the heap for persistent memory.
    pub heap: bool,
    /// Ranges of addresses that are.
    pub ranges: Vec<(u64, u64)>,
    /// Names of variables that are.
    pub objects: Vec<String>,
}

impl Setup {
    /// Reads it.
    pub fn read(folder: PathBuf) -> io::Result<Setup> {
        let text = fs::read_to_string(folder.join("setup"))?;
        let mut setup = Setup { folder, ..Setup::default() };
        for line in text.lines() {
            let (begins, rest) =
                line.strip_prefix("begins ").map_or((false, line), |rest| (true, rest));
            if let Some((name, followed)) = Followed::parse(rest, begins) {
                setup.functions.push((name.into(), followed));
                continue;
            }
            match line.split_once(' ') {
                Some(("file", pattern)) => setup.files.push(CString::new(pattern)?),
                Some(("volatile", _)) => setup.volatile = true,
                Some(("heap", _)) => setup.heap = true,
                Some(("object", name)) => setup.objects.push(name.into()),
                Some(("range", numbers)) => {
                    let numbers = numbers.split_once(' ');
                    let numbers = numbers.map(|(start, bytes)| (start.parse(), bytes.parse()));
                    let Some((Ok(start), Ok(bytes))) = numbers else {
                        return Err(io::Error::other(format!("no range of a setup: {line}")));
                    };
                    setup.ranges.push((start, bytes));
                }
                _ => return Err(io::Error::other(format!("no line of a setup: {line}"))),
            }
        }
        Ok(setup)
    }

    /// Tells whether the trace may begin with the entry of a function.
    pub fn waits_for_beginning(&self) -> bool {
        self.functions.iter().any(|(_, followed)| followed.begins)
    }

    /// Tells whether a file of this path is persistent memory.
    pub fn is_persistent(&self, path: &Path) -> bool {
        let Ok(path) = CString::new(path.as_os_str().as_encoded_bytes()) else { return false };
        // SAFETY: both are texts.
        let fits = |p: &CString| unsafe { libc::fnmatch(p.as_ptr(), path.as_ptr(), 0) } == 0;
        self.files.iter().any(fits)
    }
}
