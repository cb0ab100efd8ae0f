//! The panel: it judges images of a story side by side, none twice.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use graven_base::control::Control;
use graven_base::memory::Image;

use crate::candidate::Candidate;
use crate::frontier::Cursor;
use crate::judge::{Fault, Judge, Left, Verdict, Verdicts};
use crate::points::Points;
use crate::story::{EventId, Story, What};

/// Nothing can be explored, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The judge cannot judge.
    Judge(String),
    /// The judge contradicts itself on an image.
    Unsteady(String),
    /// The judge refuses the files after a run in which power did not fail.
    After(Fault),
    /// The caller cancels.
    Cancelled,
}

/// A panel of judges on a story.
pub struct Panel<'a> {
    pub(crate) story: &'a Story,
    pub(crate) points: &'a Points,
    judge: &'a dyn Judge,
    verdicts: &'a Verdicts,
    acknowledges: bool,
    control: &'a Control,
    /// One for each worker.
    cursors: Vec<Mutex<Cursor>>,
    /// The panel's own.
    cursor: Cursor,
    /// Images that were judged, those again too that were judged before.
    pub(crate) judged: u64,
}

impl<'a> Panel<'a> {
    /// A panel of a number of workers, on a story whose memory is `before` as it begins. `acknowledges`: operations that are over
    /// must survive.
    pub fn new(
        (story, points): (&'a Story, &'a Points),
        before: &mut Image,
        (judge, verdicts): (&'a dyn Judge, &'a Verdicts),
        (workers, acknowledges): (usize, bool),
        control: &'a Control,
    ) -> Panel<'a> {
        let mut cursor = Cursor::new(story, before.share());
        let cursors = (0..workers.max(1)).map(|_| Mutex::new(cursor.share())).collect();
        let judged = 0;
        Panel { story, points, judge, verdicts, acknowledges, control, cursors, cursor, judged }
    }

    /// Judges one image.
    ///
    /// # Errors
    /// The judge cannot judge.
    pub fn judge(&mut self, candidate: &Candidate) -> Result<Option<Fault>, Refusal> {
        let verdicts = self.judge_all(std::slice::from_ref(candidate))?;
        Ok(verdicts.into_iter().next().flatten())
    }

    /// Judges one image whether or not it was judged before.
    ///
    /// # Errors
    /// The judge cannot judge.
    pub fn judge_again(&mut self, candidate: &Candidate) -> Result<Option<Fault>, Refusal> {
        let verdicts = self.ask_all(std::slice::from_ref(candidate), None)?;
        Ok(verdicts.into_iter().next().flatten().flatten())
    }

    /// Judges images.
    fn judge_all(&mut self, all: &[Candidate]) -> Result<Vec<Option<Fault>>, Refusal> {
        let judged = self.judge_until(all, None)?;
        Ok(judged.into_iter().map(|verdict| verdict.expect("there is no deadline")).collect())
    }

    /// Judges images of which no verdict is known, and begins none after a deadline: those have no verdict.
    pub(crate) fn judge_until(
        &mut self,
        all: &[Candidate],
        deadline: Option<Instant>,
    ) -> Result<Vec<Option<Option<Fault>>>, Refusal> {
        let identities: Vec<u64> = all.iter().map(|candidate| self.identity(candidate)).collect();
        let is_new = |identity: &u64| self.verdicts.get(*identity).is_none();
        let numbers: Vec<usize> =
            (0..all.len()).filter(|&number| is_new(&identities[number])).collect();
        let new: Vec<Candidate> = numbers.iter().map(|&number| all[number].clone()).collect();
        for (number, fault) in numbers.into_iter().zip(self.ask_all(&new, deadline)?) {
            if let Some(fault) = fault {
                self.verdicts.put(identities[number], fault);
            }
        }
        Ok(identities.iter().map(|&identity| self.verdicts.get(identity)).collect())
    }

    /// Asks the judge about images side by side.
    fn ask_all(
        &mut self,
        all: &[Candidate],
        deadline: Option<Instant>,
    ) -> Result<Vec<Option<Option<Fault>>>, Refusal> {
        let next = AtomicUsize::new(0);
        let verdicts = Mutex::new(vec![None; all.len()]);
        let work = |worker: usize| {
            let mut cursor = self.cursors[worker].lock().expect("no worker panics with it");
            loop {
                let number = next.fetch_add(1, Relaxed);
                let Some(candidate) = all.get(number) else { break };
                let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
                if self.control.is_cancelled() || is_late() {
                    break;
                }
                let point = &self.points.all[candidate.point];
                cursor.seek(self.story, point.at);
                let acknowledges = self.acknowledges;
                let verdict =
                    candidate.left(self.story, point, &mut cursor, acknowledges, |left| {
                        self.judge.judge(worker, left)
                    });
                verdicts.lock().expect("no worker panics with it")[number] = Some(verdict);
            }
        };
        match self.cursors.len().min(all.len()) {
            0 | 1 => work(0),
            workers => thread::scope(|scope| {
                let work = &work;
                (0..workers).for_each(|worker| {
                    scope.spawn(move || work(worker));
                });
            }),
        }
        self.judged += all.len() as u64;
        self.control.checked(self.judged);
        let verdicts = verdicts.into_inner().expect("no worker panics with it");
        let said = |verdict: Option<Verdict>| match verdict {
            Some(Verdict::Good) => Ok(Some(None)),
            Some(Verdict::Bad(fault)) => Ok(Some(Some(fault))),
            Some(Verdict::Impossible(why)) => Err(Refusal::Judge(why)),
            None if self.control.is_cancelled() => Err(Refusal::Cancelled),
            None => Ok(None),
        };
        verdicts.into_iter().map(said).collect()
    }

    pub(crate) fn identity(&mut self, candidate: &Candidate) -> u64 {
        let point = &self.points.all[candidate.point];
        self.cursor.seek(self.story, point.at);
        candidate.identity(self.story, point, &self.cursor)
    }

    /// The first point of which images are judged: the first of all, if the judge finds the files good with which the story begins.
    /// Files that are being made are not good yet: then it is the point behind the first at which the undisturbed ones are good.
    /// Those of the last point must be good.
    pub(crate) fn first_good(&mut self) -> Result<usize, Refusal> {
        let last = self.points.all.len() - 1;
        let newest = |number: usize| Candidate::newest(number, &self.points.all[number]);
        if let Some(fault) = self.judge(&newest(last))? {
            return Err(Refusal::After(fault));
        }
        if self.is_good_at_first()? {
            return Ok(0);
        }
        for number in 0..last {
            if self.judge(&newest(number))?.is_none() {
                return Ok(number + 1);
            }
        }
        Ok(last)
    }

    /// Tells whether the judge finds the files good with which the story begins.
    fn is_good_at_first(&mut self) -> Result<bool, Refusal> {
        self.cursor.seek(self.story, 0);
        let Cursor { image, lengths, .. } = &self.cursor;
        self.judged += 1;
        match self.judge.judge(0, &Left { image, lengths, acknowledged: 0, begun: 0 }) {
            Verdict::Good => Ok(true),
            Verdict::Bad(_) => Ok(false),
            Verdict::Impossible(why) => Err(Refusal::Judge(why)),
        }
    }

    /// The judge learns the states between operations.
    ///
    /// # Errors
    /// A state cannot be had.
    pub fn learn(&mut self) -> Result<(), Refusal> {
        if !self.judge.compares_states() {
            return Ok(());
        }
        let mut cursor = self.cursor.share();
        let (mut operations, mut begun) = (0, 0);
        for id in 0..self.story.events.len() {
            let is_end = match self.story.events[id].what {
                What::Begins => {
                    begun += 1;
                    begun == 1
                }
                What::Ends => {
                    operations += 1;
                    true
                }
                _ => false,
            };
            if !is_end {
                continue;
            }
            cursor.seek(self.story, id as EventId);
            let Cursor { image, lengths, .. } = &cursor;
            let left = Left { image, lengths, acknowledged: operations, begun: operations };
            self.judge.learn(operations, &left).map_err(Refusal::Judge)?;
            if self.control.is_cancelled() {
                return Err(Refusal::Cancelled);
            }
        }
        Ok(())
    }
}
