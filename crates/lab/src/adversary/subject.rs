//! The design that programs are drawn for, and the machine that they are drawn on.

use crate::case::{Case, SetBy};
use crate::litmus::Litmus;
use graven_base::config::Config;
use graven_machine::design::{DesignInfo, Room};

/// A design, and the machine of programs that name none.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub design: &'static DesignInfo,
    pub machine: &'a Config,
    /// Settings on top of a program's own.
    pub settings: &'a [(String, String)],
}

impl Subject<'_> {
    fn case(&self, litmus: &Litmus) -> Option<Case> {
        let mut litmus = litmus.clone();
        litmus.settings.extend(self.settings.iter().cloned());
        let set_by = SetBy::Adversary { on_top: self.settings };
        Case::on(self.machine.clone(), &litmus, self.design, set_by).ok()
    }

    /// The machine with the settings on top.
    pub fn config(&self) -> Config {
        let mut config = self.machine.clone();
        for (key, value) in self.settings {
            // What does not exist is refused where a program is run.
            drop(config.set(key, value));
        }
        config
    }

    /// The structures of the design in a program's configuration; none, if the two do not fit.
    pub fn rooms(&self, litmus: &Litmus) -> Vec<Room> {
        self.case(litmus).map_or_else(Vec::new, |case| case.rooms())
    }

    /// Returns true if the design cannot be built for a program, or does not run it to its end, with all that it needs
    /// there.
    pub fn refuses(&self, litmus: &Litmus) -> bool {
        self.case(litmus).is_none_or(|case| case.is_refused())
    }
}
