use super::record::Record;
use super::*;
use crate::testing::{Check, every_commit_is_sound, populated, request, run, small};
use graven_base::config::Size;

crate::testing::contract!(super::build;
    sharing_threads_are_isolated
    lost_words_are_seen
    the_seed_decides
    pointers_remember_their_loads
    extremes_run
    parameters_that_do_not_fit_are_refused
);

#[test]
fn one_thread_leaves_sound_states() {
    let base = WorkloadConfig { sharing: Sharing::Shared, ..small() };
    every_commit_is_sound(build, &base, 1, 60);
}

#[test]
fn the_last_put_of_a_key_counts() {
    let put = |key, deletes| Put { key, deletes };
    let mut puts = vec![put(5, false), put(3, true), put(5, true), put(1, false), put(3, false)];
    keep_last(&mut puts);
    assert_eq!(puts, [put(1, false), put(3, false), put(5, true)]);
}

#[test]
fn the_default_puts_what_is_there() {
    let config = WorkloadConfig::default();
    assert_eq!(mix(&config), (0, 0));
    assert_eq!(mix(&WorkloadConfig { insert_percent: 50, remove_percent: 50, ..config }), (50, 50));
}

/// A commit adds a version to each key that it puts, of one timestamp, and its record says so.
#[test]
fn a_commit_adds_versions_of_one_timestamp() {
    let config = WorkloadConfig { footprint_bytes: Size::mb(1), ..small() };
    let request = request(config, 4, 200);
    let (workload, image) = populated(build, &request);
    // Per key: a value of 8 words, 2 words of the record, 5 of versions, 1 or 3 of the allocator; and 6 of the record.
    let (image, counts) = run(workload.as_ref(), &request, image, |_, _, writes| {
        let keys = (writes.len() - 6) as f64;
        let puts = (keys / 18.0).ceil()..=(keys / 16.0).floor();
        assert!(puts.contains(&8.0) || puts.contains(&7.0), "{} stores", writes.len());
    });
    assert_eq!(workload.check(&image), Ok(()));
    assert!(counts.locks > 1000, "nearly eight stripes for each commit: {}", counts.locks);
}

/// Message of the check for a record that contradicts the master.
#[test]
fn a_record_that_does_not_fit_the_master_is_seen() {
    let request = request(small(), 1, 3);
    let (workload, image) = populated(build, &request);
    let (mut image, _) = run(workload.as_ref(), &request, image, |_, _, _| {});
    let record = assemble(&request).expect("it fits").parts.records[0];
    let mut check = Check::of(&mut image, |image| workload.check(image));
    check.finds(record.word(0).addr, 1, "state 1, from");
    check.finds(record.word(1).addr, 1, "but the last is number 1");
    check.finds(record.word(2).addr, 1 << 40, "of 8 at most");
    check.finds(record.word(3).addr, 1 << 30, "but the last is number");
    check.finds(record.word(4).addr, 9, "9 puts of 8 at most");
    check.finds(record.word(4).addr, 0, "0 puts of 8 at most");
    check.finds(record.word(8).addr, 1, "has None");
    check.finds(record.word(9).addr, 64, "but Commit");
}

/// More puts than one batch: operations are batches.
#[test]
fn a_transaction_has_batches() {
    let stores = |operations_per_transaction, batch: &str| {
        let config = WorkloadConfig { operations_per_transaction, ..small() };
        let mut request = request(config, 2, 20);
        request.whole.set("echo.batch_puts", batch).expect("in range");
        let (workload, image) = populated(build, &request);
        run(workload.as_ref(), &request, image, |_, _, _| {}).1.stores
    };
    let (one, two) = (stores(1, "8"), stores(2, "8"));
    assert!(two > one * 3 / 2, "{one}, {two}");
    assert_eq!(stores(2, "4"), one, "the same puts");
    let room = Record::bytes(8);
    assert_eq!(room, 64 + 8 * 16);
}
