//! Persistence designs.

use crate::config::Section;

/// The configuration sections of all designs.
pub fn sections() -> Vec<Box<dyn Section>> {
    vec![]
}
