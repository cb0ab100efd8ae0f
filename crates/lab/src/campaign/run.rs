//! A run that is crashed at every crash point, its first violation reduced to a program.

use std::sync::Arc;

use super::report::{Finding, Report, as_claimed, replayed_timeline, timeline_without_program};
use crate::explorer::{CrashRun, Thoroughness, Violation};
use crate::litmus::{CrashAt, Litmus};
use crate::minimise::minimise_observed;
use crate::recording::Recording;
use graven_base::config::ConfigError;
use graven_base::control::Control;
use graven_machine::registry::Registry;
use graven_machine::sim::{SimError, Spec};

/// One run, crashed at every crash point.
pub struct RunCampaign<'r> {
    registry: &'r Registry,
    spec: Spec,
    how: Thoroughness,
    run: CrashRun,
}

impl<'r> RunCampaign<'r> {
    /// Checks everything; nothing runs.
    ///
    /// # Errors
    /// Parameters that design or workload cannot work with.
    pub fn new(
        registry: &'r Registry,
        spec: Spec,
        how: Thoroughness,
    ) -> Result<RunCampaign<'r>, ConfigError> {
        let run = CrashRun::new(&spec, None, how.clone())?;
        Ok(RunCampaign { registry, spec, how, run })
    }

    /// For watching and cancelling from another thread: transactions, and power failures.
    pub fn control(&self) -> Arc<Control> {
        self.run.control()
    }

    /// Runs it. The first violation is repeated with every operation recorded, reduced, and told.
    ///
    /// # Errors
    /// [`SimError::Cancelled`].
    pub fn run(self) -> Result<Report, SimError> {
        let mut report = Report::new(self.spec.design);
        let control = self.run.control();
        let outcome = self.run.run(None)?;
        control.minimising(!outcome.violations.is_empty());
        report.add(&outcome);
        for (i, violation) in outcome.violations.iter().enumerate() {
            let finding = if i == 0 {
                reduced(self.registry, &self.spec, &self.how, violation, &control)
            } else {
                None
            };
            report.findings.push(finding.unwrap_or_else(|| Finding {
                timeline: timeline_without_program(violation),
                violation: violation.clone(),
                replay: None,
                seed: None,
            }));
        }
        Ok(report)
    }
}

/// The run as a litmus program, reduced if only part of it is needed.
fn reduced(
    registry: &Registry,
    spec: &Spec,
    how: &Thoroughness,
    violation: &Violation,
    control: &Arc<Control>,
) -> Option<Finding> {
    let failure = violation.failure.clone().unwrap_or_default();
    let only = CrashAt::Point { number: violation.point, failure };
    let recording = Recording::new(spec).ok()?;
    let log = recording.log();
    let how = Thoroughness { at: only.clone(), ..how.clone() };
    let run = CrashRun::new(spec, Some(Box::new(recording)), how);
    run.ok()?.run(None).ok()?;
    let litmus = log.to_litmus(registry, spec, &violation.what)?;
    let least = minimise_observed(registry, &litmus, spec.design, violation, spec.seed, control);
    let replay = least.map_or_else(|| Litmus { crash: only, ..litmus }, |least| least.litmus);
    let (violation, timeline) = replayed_timeline(registry, &replay, spec.design).ok()??;
    Some(Finding {
        violation,
        timeline,
        replay: Some(as_claimed(registry, replay, spec.design)),
        seed: None,
    })
}
