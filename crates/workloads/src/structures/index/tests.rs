use super::*;
use crate::testing::Check;
use graven_base::memory::Image;
use graven_machine::program::Direct;
use graven_machine::workload::BrokenInvariant;
use proptest::prelude::*;
use std::collections::BTreeMap;

const ROOT_AT: Addr = Addr(4096);
const INDEX: Index = Index::new(ROOT_AT);

fn arena() -> Arena {
    Arena::new(Addr(4160), Addr(8192), Addr(1 << 24), [Index::NODE_BYTES])
}

fn empty() -> Image {
    let mut image = Image::new();
    let mut m = Direct::new(&mut image);
    arena().format(&mut m);
    INDEX.format(&mut m, &arena());
    image
}

fn walked(image: &Image) -> Checked<Vec<(u64, u64)>> {
    let mut census = Census::begin("test".into(), image, &[arena()])?;
    let mut entries = Vec::new();
    INDEX.walk(&mut census, 0..Index::KEY_LIMIT, &mut |_, key, to| {
        entries.push((key, to.0));
        Ok(())
    })?;
    census.finish()?;
    Ok(entries)
}

fn scanned(mut image: &Image, keys: RangeInclusive<u64>, most: usize) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    INDEX.scan(&mut image, keys, |_, key, to| {
        found.push((key, to.addr.0));
        if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    found
}

proptest! {
    /// Insertions, removals, look-ups and scans, compared with the standard library's map.
    #[test]
    fn it_behaves_as_a_map(
        steps in prop::collection::vec((0..8u8, 0..400u64, any::<u64>()), 0..1500),
        keys in (0..400u64, 0..400u64),
    ) {
        let (mut image, arena) = (empty(), arena());
        let mut model = BTreeMap::new();
        for (kind, key, to) in steps {
            let mut m = Direct::new(&mut image);
            // Far apart, and up to the last key but one.
            let key = Index::KEY_LIMIT - 1 - key * key * key;
            if kind < 5 {
                let present = INDEX.insert_with(&mut m, &arena, key, |_| Ptr::known(Addr(to)));
                prop_assert_eq!(present.map(|p| p.addr.0), model.get(&key).copied());
                model.entry(key).or_insert(to);
            } else {
                let mut old = None;
                let was = INDEX.remove_with(&mut m, &arena, key, |_, to| old = Some(to.addr.0));
                prop_assert_eq!(was, old.is_some());
                prop_assert_eq!(old, model.remove(&key));
            }
            prop_assert_eq!(INDEX.get(&mut &image, key).map(|p| p.addr.0), model.get(&key).copied());
        }
        let all: Vec<(u64, u64)> = model.iter().map(|(&k, &v)| (k, v)).collect();
        prop_assert_eq!(walked(&image), Ok(all.clone()));
        prop_assert_eq!(scanned(&image, 0..=u64::MAX, usize::MAX), all);
        let [a, b] = [keys.0, keys.1].map(|key| Index::KEY_LIMIT - 1 - key * key * key);
        let range = a.min(b)..=a.max(b);
        let within: Vec<(u64, u64)> = model.range(range.clone()).map(|(&k, &v)| (k, v)).collect();
        let first = INDEX.first(&mut &image, range.clone()).map(|(key, to)| (key, to.addr.0));
        prop_assert_eq!(first, within.first().copied());
        prop_assert_eq!(&scanned(&image, range.clone(), 3)[..], &within[..within.len().min(3)]);
        prop_assert_eq!(scanned(&image, range, usize::MAX), within);
    }
}

/// Rows come and go at the two ends, as the orders do that are still to be delivered.
#[test]
fn a_window_of_keys_moves_on() {
    let (mut image, arena) = (empty(), arena());
    for key in 0..2000 {
        let mut m = Direct::new(&mut image);
        INDEX.insert(&mut m, &arena, key, Ptr::known(Addr(key * 8)));
        if key >= 100 {
            let (oldest, _) = INDEX.first(&mut m, 0..=u64::MAX).expect("it is not empty");
            assert_eq!(oldest, key - 100);
            assert!(INDEX.remove_with(&mut m, &arena, oldest, |_, _| {}));
        }
    }
    assert_eq!(walked(&image), Ok((1900..2000).map(|key| (key, key * 8)).collect()));
    assert!(arena.used(&image) <= Index::nodes_max(101) * Index::NODE_BYTES);
}

/// The most nodes that a run of keys at the end takes, at every size up to a few thousand.
#[test]
fn a_run_of_keys_never_takes_more_nodes_than_arenas_are_sized_for() {
    for run in [1, 5, 15] {
        let (mut image, arena) = (empty(), arena());
        let (mut next, mut most) = (0, 0);
        while next < 6000 {
            let before = arena.used(&image);
            let mut m = Direct::new(&mut image);
            for key in next..next + run {
                INDEX.insert(&mut m, &arena, key, Ptr::known(Addr(8)));
            }
            next += run;
            let taken = (arena.used(&image) - before) / Index::NODE_BYTES;
            assert!(taken <= Index::nodes_of_run(next, run), "{taken} nodes for {run} keys");
            most = most.max(taken);
        }
        assert!(most >= 2, "{most} nodes at most: an inner node was split, too");
    }
}

/// A word that a failure lost: the nodes' own invariants, or what the index holds, say so.
#[test]
fn lost_words_are_seen() {
    let (mut image, arena) = (empty(), arena());
    let entry = |key: u64| (key * 7 % 1009, Ptr::known(Addr(key * 8)));
    let (mut lost, mut seen) = (0, 0);
    for number in 0..200 {
        let before = image.clone();
        let mut m = Direct::new(&mut image);
        let (key, to) = entry(number);
        INDEX.insert(&mut m, &arena, key, to);
        if number % 3 == 2 {
            assert!(INDEX.remove_with(&mut m, &arena, entry(number - 2).0, |_, _| {}));
        }
        let sound = walked(&image);
        let changes: Vec<_> = image.differences(&before, Addr(4096), Addr(1 << 24)).collect();
        for (at, new, old) in changes {
            image.store(at, old);
            lost += 1;
            seen += u32::from(walked(&image) != sound);
            image.store(at, new);
        }
    }
    // Nobody looks at keys beyond a node's count, nor at free nodes.
    assert!(lost > 1500 && seen * 100 > lost * 85, "{seen} of {lost}");
}

#[test]
fn the_walk_ends_on_any_word() {
    let (mut image, arena) = (empty(), arena());
    for key in 0..150 {
        INDEX.insert(&mut Direct::new(&mut image), &arena, key * 3, Ptr::known(Addr(key * 8)));
    }
    let sound = walked(&image);
    // Other content counts as seen, too.
    let check = |image: &Image| match walked(image)? {
        found if Ok(&found) == sound.as_ref() => Ok(()),
        _ => Err(BrokenInvariant { structure: "test".into(), what: "other content".into() }),
    };
    let words = (4096..8192 + arena.used(&image)).step_by(8);
    let (seen, tried) = Check::of(&mut image, check).ends_on_any_word(words, &[ROOT_AT.0, 8192]);
    assert!(seen > tried / 4, "{seen} of {tried}: slack of nodes is free");
}
