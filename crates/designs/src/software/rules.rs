//! The rules of both ways of logging, and the mutants that break them.

use graven_machine::design::DesignContext;

use super::log::LogRules;

/// Declares `log_rules`: those of `Rules` that are about the log.
macro_rules! log_rules {
    () => {
        /// Returns the rules in a context that are about the log.
        pub(in crate::software) fn log_rules(context: &super::DesignContext) -> super::LogRules {
            let rules = Rules::of(context);
            super::LogRules {
                every_word_has_torn_bit: rules.every_word_has_torn_bit(),
                torn_bit_turns: rules.torn_bit_turns(),
                is_cleared: rules.log_is_cleared(),
                head_is_respected: rules.head_is_respected(),
            }
        }
    };
}

/// Those of `undo-clwb`.
pub mod undo {
    use crate::rules::rules;

    log_rules!();

    rules! {
        /// A store has no record.
        stores_have_records, or "record-missing";
        /// A commit leaves no record.
        commit_leaves_record, or "commit-record-missing";
        /// A word that an earlier transaction has logged is not logged again.
        write_set_is_emptied, or "write-set-not-emptied";
        /// Recovery leaves out the newest record.
        newest_is_undone, or "newest-not-undone";
        /// Recovery leaves out the oldest record.
        oldest_is_undone, or "oldest-not-undone";
        /// Recovery begins at the first slot instead of the head.
        head_is_respected, or "head-ignored";
        /// Only the first word of a record has a torn bit.
        every_word_has_torn_bit, or "torn-bit-in-first-word-only";
        /// The torn bit is the same in all passes.
        torn_bit_turns, or "torn-bit-never-flips";
        /// The log is put to use as it is found.
        log_is_cleared, or "log-not-cleared";

        // Where stores are durable in the order of the program, the following is no mistake.
        /// A store does not wait for its record.
        record_is_awaited, or "record-not-awaited";
        /// The commit record does not wait for the write-backs.
        write_backs_are_awaited, or "write-backs-not-awaited";
        /// The commit record is sent before the write-backs.
        commit_follows_write_backs, or "commit-before-write-backs";
        /// A commit is acknowledged when its record is sent.
        commit_is_awaited, or "commit-not-awaited";

        // Without write-backs there is none to leave out.
        /// Lines are not written back.
        lines_are_written_back, or "write-back-missing";
    }
}

/// Those of `redo-clwb`.
pub mod redo {
    use crate::rules::rules;

    log_rules!();

    rules! {
        /// Stores in place do not wait for the log.
        log_is_awaited, or "log-not-awaited";
        /// A commit leaves no record.
        commit_leaves_record, or "commit-record-missing";
        /// Lines are not written back.
        lines_are_written_back, or "write-back-missing";
        /// Truncation does not wait for the write-backs.
        write_backs_are_awaited, or "write-backs-not-awaited";
        /// Slots are used again when the new head is on its way.
        slots_wait_for_head, or "slots-used-before-head";
        /// Slots are used again, and the head stays.
        head_moves, or "head-stays";
        /// A lock is let go before the log is truncated.
        truncated_for_lock, or "not-truncated-for-lock";
        /// A lock is let go when the new head is on its way.
        head_awaited_for_lock, or "head-not-awaited-for-lock";
        /// Loads do not look into the write set.
        write_set_is_searched, or "write-set-ignored";
        /// A second store to a word does not change its entry in the write set.
        newest_value_is_stored, or "oldest-value-stored";
        /// Recovery writes the newest record first.
        redo_oldest_first, or "redo-newest-first";
        /// Recovery writes words without a commit record, too.
        only_committed_is_redone, or "uncommitted-redone";
        /// Recovery begins at the first slot instead of the head.
        head_is_respected, or "head-ignored";
        /// Only the first word of a record has a torn bit.
        every_word_has_torn_bit, or "torn-bit-in-first-word-only";
        /// The torn bit is the same in all passes.
        torn_bit_turns, or "torn-bit-never-flips";
        /// The log is put to use as it is found.
        log_is_cleared, or "log-not-cleared";
    }
}
