use super::*;
use crate::testing::{
    corrupt_each_word, every_commit_is_sound, extremes_of, losses, origins, populated, request,
    run, small,
};
use graven_base::config::Size;

crate::testing::contract!(super::build;
    sharing_threads_are_isolated
    lost_words_are_seen
    the_seed_decides
    parameters_that_do_not_fit_are_refused
);

#[test]
fn one_thread_leaves_sound_states() {
    let base = WorkloadConfig { sharing: Sharing::Shared, ..small() };
    every_commit_is_sound(build, &base, 1, 150);
}

/// Data are there twice: in the input and in the graph.
#[test]
fn extremes_run() {
    extremes_of(build, Size::mb(1));
}

/// Chunks are pointed at; marks are where the number of a vertex, the lower half of a word, says.
#[test]
fn pointers_remember_their_loads() {
    let chunk_bytes = Multigraph::chunk_bytes(8)[0];
    let (known, chased) = origins(build, |word, at| {
        let points = (word..word + chunk_bytes).contains(&at.0);
        points || word & u64::from(u32::MAX) < 1 << 10
    });
    assert!(chased > 500 && known > 500, "{chased} accesses through pointers, {known} others");
}

/// About thirty edges between few vertices.
fn tiny() -> WorkloadConfig {
    WorkloadConfig {
        element_bytes: Size(1000),
        footprint_bytes: Size::kb(64),
        ..Default::default()
    }
}

fn parts(request: &Request) -> Parts {
    assemble(request).expect("it fits").parts
}

/// Range of the searches.
fn searches(parts: &Parts) -> std::ops::Range<Addr> {
    let start = parts.searches[0].record();
    let bytes = Search::bytes(parts.graph.vertices()).next_multiple_of(LINE_BYTES);
    start..start.plus(parts.threads() * bytes)
}

/// Transactions enough to build the graph from nothing, to classify and to search it many times.
#[test]
fn a_long_run_builds_classifies_and_searches_all() {
    for threads in [1, 3, 8] {
        let request = request(tiny(), threads, 1500);
        let (workload, image) = populated(build, &request);
        let parts = parts(&request);
        let Parts { input, graph, heaviest, .. } = &parts;
        assert_eq!(parts.check_graph(&image).map(|edges| edges.len()), Ok(0), "it begins empty");
        let (image, counts) = run(workload.as_ref(), &request, image, |_, before, _| {
            assert_eq!(workload.check(before), Ok(()));
        });
        assert!(counts.locks > 0, "threads share the graph, whatever they are asked to share");
        assert_eq!(workload.check(&image), Ok(()));

        let edges = parts.check_graph(&image).expect("the graph is sound");
        assert_eq!(edges.len() as u64, input.edges);
        let list = heaviest.check(&image, graph, input, &edges).expect("the list is sound");
        let tuples = (0..input.edges).map(|number| (number, input.generator.tuple(number)));
        let largest = tuples.clone().map(|(_, tuple)| tuple.weight).max().expect("edges");
        let heavy = tuples.filter(|(_, tuple)| tuple.weight == largest);
        let mut sorted = list.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(heavy.map(|(number, _)| number)));
        for search in &parts.searches {
            assert!(search.searches(&image) > list.len() as u64, "each heaviest edge has its turn");
        }
    }
}

/// No vertex is classified before the last edge was added, and none after the first search began.
#[test]
fn threads_wait_for_each_other_between_kernels() {
    let request = request(small(), 4, 400);
    let (workload, image) = populated(build, &request);
    let parts = parts(&request);
    let kernel_of = |writes: &[(Addr, u64)]| {
        let (first, last) = (parts.built(0).addr, parts.built(parts.threads()).addr);
        let searches = searches(&parts);
        match writes {
            _ if writes.iter().any(|&(at, _)| (first..last).contains(&at)) => 1,
            _ if writes.iter().any(|&(at, _)| searches.contains(&at)) => 3,
            _ => 2,
        }
    };
    let mut kernels = Vec::new();
    run(workload.as_ref(), &request, image, |_, _, writes| kernels.push(kernel_of(writes)));
    assert!(kernels.is_sorted(), "{kernels:?}");
    let counts = [1, 2, 3].map(|kernel| kernels.iter().filter(|&&k| k == kernel).count());
    assert_eq!(counts, [132, 132, 136], "a third each");
}

/// In every kernel: a word that a transaction changed and a failure lost.
#[test]
fn a_lost_word_of_any_kernel_is_seen() {
    let request = request(tiny(), 1, 200);
    let (workload, image) = populated(build, &request);
    let (lost, unseen) = losses(workload.as_ref(), &request, image, |_| true);
    assert!(lost > 2000, "{lost} words were lost");
    // To classify a vertex again changes nothing but the count, and to follow edges to vertices that
    // have been reached nothing but the place.
    assert!(
        unseen.len() * 20 < lost,
        "{} of {lost} losses were not seen: {unseen:?}",
        unseen.len()
    );
}

/// Chunks that are not full yet are in no edge's share, and vertices are a power of two.
#[test]
fn the_footprint_is_about_what_was_asked_for() {
    for (bytes, threads) in [(8, 1), (8, 8), (64, 4), (256, 8)] {
        let asked = Size::mb(4);
        let config =
            WorkloadConfig { element_bytes: Size(bytes), footprint_bytes: asked, ..small() };
        let request = request(config, threads, 24);
        let (_, image) = populated(build, &request);
        let parts = parts(&request);
        let chunks: u64 = parts.arenas.iter().map(|arena| arena.used(&image)).sum();
        let found = (searches(&parts).end.0 - request.start.0 + chunks) as f64 / asked.0 as f64;
        println!("{bytes} B, {threads} threads: {found:.2} of what was asked for");
        assert!((0.9..1.35).contains(&found), "{bytes} B, {threads} threads: {found:.2}");
    }
}

/// A walk in corrupted structures ends: every third word in turn is replaced.
#[test]
fn the_check_ends_on_any_word() {
    let request = request(tiny(), 2, 300);
    let (workload, image) = populated(build, &request);
    let (mut image, _) = run(workload.as_ref(), &request, image, |_, _, _| {});
    let range = request.start.0..searches(&parts(&request)).end.0;
    let (seen, tried) = corrupt_each_word(workload.as_ref(), &mut image, (range, 3));
    assert!(tried > 500 && seen > tried * 9 / 10, "{seen} of {tried}");
}
