//! The epochs of the system: the one that all threads are in, those that have ended, and the one that recovery goes back to.

/// Epochs that the four bits of a tag tell apart. Tag 0 is that of a clean line.
pub(super) const TAGS: u64 = 15;

/// The tag of lines that an epoch has stored to.
fn tag_of(epoch: u64) -> u8 {
    1 + (epoch % TAGS) as u8
}

/// The epochs, and the lines of each that are on their way home.
pub(super) struct Epochs {
    /// Epochs between the end of one and its scan.
    gap: u64,
    executing: u64,
    /// The last epoch whose end PM can be brought back to.
    persisted: u64,
    /// Scans are wanted up to this epoch.
    wanted: u64,
    /// Epochs with lines on their way home, and the number of these. Four bits bound its length.
    leaving: Vec<(u64, u32)>,
}

impl Epochs {
    pub(super) fn new(gap: u32) -> Epochs {
        Epochs { gap: gap.into(), executing: 1, persisted: 0, wanted: 0, leaving: Vec::new() }
    }

    /// The epoch that all threads are in.
    pub(super) fn executing(&self) -> u64 {
        self.executing
    }

    /// The last epoch whose end PM can be brought back to.
    pub(super) fn persisted(&self) -> u64 {
        self.persisted
    }

    /// The tag of a line that is stored to now.
    pub(super) fn tag(&self) -> u8 {
        tag_of(self.executing)
    }

    /// The epoch of a dirty line: the newest with this tag.
    pub(super) fn of_tag(&self, tag: u8) -> u64 {
        let mut under_way = (self.persisted + 1..=self.executing).rev();
        under_way.find(|&epoch| tag_of(epoch) == tag).unwrap_or(self.persisted)
    }

    /// Returns true if the epoch may end: no more than `gap + 1` that have ended are not persisted then, which is what the design
    /// promises, and their tags differ.
    pub(super) fn may_end(&self) -> bool {
        self.executing <= self.persisted + self.gap + 1
    }

    /// The next epoch begins.
    pub(super) fn end(&mut self) {
        self.executing += 1;
        self.want((self.executing - 1).saturating_sub(self.gap));
    }

    /// Scans are wanted of all epochs that have ended.
    pub(super) fn want_all(&mut self) {
        self.want(self.executing - 1);
    }

    fn want(&mut self, epoch: u64) {
        self.wanted = self.wanted.max(epoch);
    }

    /// The epoch up to which a scan is due.
    pub(super) fn due(&self) -> Option<u64> {
        (self.wanted > self.persisted).then_some(self.wanted)
    }

    /// PM can be brought back to the end of an epoch.
    pub(super) fn persist(&mut self, epoch: u64) {
        self.persisted = epoch;
    }

    /// A line of an epoch leaves for PM.
    pub(super) fn line_leaves(&mut self, epoch: u64) {
        match self.leaving.iter_mut().find(|(of, _)| *of == epoch) {
            Some((_, lines)) => *lines += 1,
            None => self.leaving.push((epoch, 1)),
        }
    }

    /// Such a line is durable.
    pub(super) fn line_is_home(&mut self, epoch: u64) {
        let place = self.leaving.iter().position(|(of, _)| *of == epoch);
        let place = place.expect("a line of the epoch was on its way");
        self.leaving[place].1 -= 1;
        if self.leaving[place].1 == 0 {
            self.leaving.swap_remove(place);
        }
    }

    /// Returns true if no line of an epoch up to this one is on its way.
    pub(super) fn are_home(&self, epoch: u64) -> bool {
        self.leaving.iter().all(|&(of, _)| of > epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_come_round_and_stay_apart_while_epochs_are_under_way() {
        let mut epochs = Epochs::new(12);
        for persisted in 0..100 {
            while epochs.may_end() {
                epochs.end();
            }
            assert_eq!(
                epochs.executing() - epochs.persisted(),
                14,
                "twelve, one scanned, one executing"
            );
            for epoch in persisted + 1..=epochs.executing() {
                assert_eq!(epochs.of_tag(tag_of(epoch)), epoch);
            }
            epochs.persist(persisted + 1);
        }
    }

    #[test]
    fn a_scan_is_due_when_as_many_epochs_as_the_gap_have_ended_after() {
        let mut epochs = Epochs::new(2);
        epochs.end();
        epochs.end();
        assert_eq!(epochs.due(), None);
        epochs.end();
        assert_eq!(epochs.due(), Some(1));
        assert!(!epochs.may_end(), "the fourth would leave four that are not persisted");
        epochs.persist(1);
        assert!(epochs.may_end());
        epochs.want_all();
        assert_eq!(epochs.due(), Some(3));
    }

    #[test]
    fn lines_are_counted_by_their_epoch() {
        let mut epochs = Epochs::new(3);
        for epoch in [2, 1, 2] {
            epochs.line_leaves(epoch);
        }
        assert!(epochs.are_home(0) && !epochs.are_home(1));
        epochs.line_is_home(1);
        assert!(epochs.are_home(1) && !epochs.are_home(2));
        epochs.line_is_home(2);
        assert!(!epochs.are_home(2));
        epochs.line_is_home(2);
        assert!(epochs.are_home(2));
    }
}
