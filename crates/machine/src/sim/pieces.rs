//! Pieces of a region in steady state, simulated side by side.
//!
//! A long region keeps one core of the host busy. With `region.pieces` = *k* it is divided into *k* pieces, each of which is
//! simulated by itself, on as many threads of the host as the caller lends. A piece is the same experiment further on. Its programs
//! first execute the transactions of the pieces before it, in memory alone ([`Simulation::pass_over`]). The transactions without
//! time that fill the caches, the timed warm-up and its part of the region follow, as for any region ([`super::region`]). So
//! pieces are independent of each other, and results do not depend on the number of threads.
//!
//! Counters and times of the pieces add up to those of the region. The windows of all pieces, in order, are the series that
//! intervals are of. Three things differ from a region in one go: each piece has a warm-up of its
//! own, the transactions before a piece interleave as they do without time, and the content of caches, logs and tables is that of a
//! warm-up, not of all time since the beginning. (Where a program fills the caches so slowly that transactions without time are
//! added, their number may differ from piece to piece, and pieces overlap, or leave out, as many.) The price is the work before
//! each piece: all transactions before it, beside the caches.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::{self, Builder};

use super::beginning::Beginning;
use super::error::SimError;
use super::record::Results;
use super::run::Simulation;
use super::spec::Spec;
use graven_base::config::ConfigError;
use graven_base::control::Control;

/// Simulates the pieces of a region, on the caller's thread and on up to `threads - 1` more, and returns what they have measured
/// together. `control` has the progress of all.
///
/// # Errors
/// Those of the first piece that has any.
pub fn in_pieces<E>(
    spec: &Spec,
    beginning: Option<&Arc<Beginning>>,
    threads: usize,
    control: &Arc<Control>,
) -> Result<Results, E>
where
    E: From<ConfigError> + From<SimError> + Send,
{
    let count = spec.pieces();
    let (next, ended) = (AtomicU32::new(0), AtomicU32::new(count));
    let work = || {
        let mut measured = Vec::new();
        loop {
            let piece = next.fetch_add(1, Relaxed);
            // Those before a piece that has failed have begun, and tell their errors first.
            if piece >= ended.load(Relaxed) {
                return measured;
            }
            let results = piece_of::<E>(spec, beginning, piece, control);
            if results.is_err() {
                ended.fetch_min(piece, Relaxed);
            }
            measured.push((piece, results));
        }
    };
    let mut measured = thread::scope(|scope| {
        let start = |_| Builder::new().spawn_scoped(scope, work);
        // A host that has no thread more to give lends fewer.
        let others: Vec<_> =
            (1..threads.min(count as usize)).map_while(|n| start(n).ok()).collect();
        let mut measured = work();
        for other in others {
            measured.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        measured
    });
    measured.sort_unstable_by_key(|(piece, _)| *piece);
    let mut pieces = measured.into_iter().map(|(_, results)| results);
    let mut whole = pieces.next().expect("a region has a piece")?;
    for piece in pieces {
        whole.join(piece?);
    }
    Ok(whole)
}

/// Simulates one piece, numbered from 0. `control` has the progress of all.
///
/// # Errors
/// Parameters that design or workload cannot work with, and those of a simulation ([`SimError`]).
///
/// # Panics
/// The region has fewer pieces.
pub fn piece_of<E>(
    spec: &Spec,
    beginning: Option<&Arc<Beginning>>,
    piece: u32,
    control: &Arc<Control>,
) -> Result<Results, E>
where
    E: From<ConfigError> + From<SimError>,
{
    assert!(piece < spec.pieces(), "piece {piece} of a region of {}", spec.pieces());
    let mut simulation = Simulation::begun(spec, beginning.cloned())?;
    simulation.set_control(Arc::new(Control::share_of(control)));
    simulation.measured.piece = Some(piece);
    // Populating is alike for all pieces; what they execute before they are measured is not.
    simulation.beginning = None;
    let digest = simulation.run()?;
    Ok(simulation.results(digest))
}
