use super::*;
use crate::testing::{every_commit_is_sound, losses, populated, request, run, small};

/// The workload with its own keys set so.
fn with(request: &Request, settings: &[(&str, &str)]) -> Result<Box<dyn Workload>, ConfigError> {
    let mut whole = request.whole.clone();
    for (key, value) in settings {
        whole.set(key, value).unwrap_or_else(|e| panic!("{e}"));
    }
    build(&Request { whole, ..request.clone() })
}

/// The contract for one mix on one index. Threads share a store, whatever they are asked to.
macro_rules! contract_of {
    ($name:ident, $($key:literal: $value:literal),*) => {
        mod $name {
            use super::*;

            fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
                with(request, &[$((concat!("ycsb.", $key), $value)),*])
            }

            crate::testing::contract!(build;
                sharing_threads_are_isolated
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
        }
    };
}

contract_of!(papers, "mix": "papers");
contract_of!(papers_in_a_tree, "index": "btree");
contract_of!(d, "mix": "d");
contract_of!(e, "mix": "e", "index": "btree", "scan_records_max": "20");
contract_of!(f, "mix": "f");

#[test]
fn lost_words_are_seen() {
    crate::testing::lost_words_are_seen(build);
    let request = request(small(), 2, 200);
    let build = |request: &Request| with(request, &[("ycsb.mix", "d"), ("ycsb.index", "btree")]);
    let workload = build(&request).expect("it fits");
    let mut image = Image::new();
    workload.populate(&mut image);
    let (lost, unseen) = losses(workload.as_ref(), &request, image, |_| true);
    assert!(lost > 50 && unseen.len() * 10 < lost * 4, "{} of {lost} not seen", unseen.len());
}

#[test]
fn threads_share_one_store_whatever_they_are_asked_to() {
    let request = request(small(), 4, 400);
    let (workload, image) = populated(build, &request);
    let (mut stored, mut by) = (std::collections::BTreeMap::new(), 0);
    let (_, counts) = run(workload.as_ref(), &request, image, |thread, _, writes| {
        for (at, _) in writes {
            by += u32::from(stored.insert(*at, thread).is_some_and(|before| before != thread));
        }
    });
    assert!(by > 100, "{by} stores to a word that another thread stored to before");
    assert_eq!(counts.locks, 400, "one lock for each operation on a hash table");
}

/// Reads and updates of a tree take two locks, insertions all of the latch.
#[test]
fn only_insertions_exclude_others_from_a_tree() {
    let request = request(small(), 4, 1000);
    for (mix, least, most) in
        [("a", 2000, 2000), ("c", 2000, 2000), ("d", 2050, 2200), ("e", 1100, 1300)]
    {
        let settings = [("ycsb.mix", mix), ("ycsb.index", "btree")];
        let workload = with(&request, &settings).expect("it fits");
        let mut image = Image::new();
        workload.populate(&mut image);
        let (_, counts) = run(workload.as_ref(), &request, image, |_, _, _| {});
        assert!((least..=most).contains(&counts.locks), "{mix}: {} locks", counts.locks);
    }
}

#[test]
fn transactions_do_what_the_mix_says() {
    for (mix, loads_per_store) in
        [("papers", 0.0..1.2), ("a", 1.0..3.0), ("b", 20.0..50.0), ("f", 2.0..5.0)]
    {
        let request = request(small(), 4, 2000);
        let workload = with(&request, &[("ycsb.mix", mix)]).expect("it fits");
        let mut image = Image::new();
        workload.populate(&mut image);
        let (_, counts) = run(workload.as_ref(), &request, image, |_, _, _| {});
        let ratio = counts.loads as f64 / counts.stores as f64;
        println!("{mix}: {ratio:.2}, {counts:?}");
        assert!(loads_per_store.contains(&ratio), "{mix}: {ratio}");
    }
    let request = request(small(), 4, 100);
    let workload = with(&request, &[("ycsb.mix", "c")]).expect("it fits");
    let mut image = Image::new();
    workload.populate(&mut image);
    let (_, counts) = run(workload.as_ref(), &request, image, |_, _, _| {});
    assert_eq!((counts.stores, counts.transactions), (0, 100), "c stores nothing");
}

#[test]
fn scans_of_a_hash_table_are_refused() {
    let request = request(small(), 4, 100);
    let refusal = with(&request, &[("ycsb.mix", "e")]).err().expect("refused").to_string();
    assert!(refusal.contains("ycsb.index") && refusal.contains("btree would do"), "{refusal}");
    assert!(with(&request, &[("ycsb.mix", "e"), ("ycsb.index", "btree")]).is_ok());
}

/// Table III of HOOP: 8 to 32 stores per transaction (`hoop-wl-ycsb`), with pairs of 512 B and of 1 KB. On its
/// machine an update stores 64 B.
#[test]
fn stores_per_transaction_on_hoops_machine_are_as_documented() {
    use graven_base::config::Size;
    let machine = crate::testing::registry().machine("hoop").expect("the preset loads");
    for element_bytes in [Size(512), Size::kb(1)] {
        let config = WorkloadConfig {
            element_bytes,
            footprint_bytes: Size::mb(4),
            ..machine.get::<WorkloadConfig>().clone()
        };
        let request = request(config, 8, 4000);
        let (workload, image) = populated(build, &request);
        let mut stores = std::collections::BTreeMap::new();
        run(workload.as_ref(), &request, image, |_, _, writes| {
            *stores.entry(writes.len()).or_insert(0) += 1;
        });
        assert!(stores.keys().copied().eq([0, 8]), "{stores:?}");
        assert!((700..900).contains(&stores[&0]), "a fifth of them read: {stores:?}");
    }
}
