//! Configuration: what is refused and in which words, what the presets say, and that no text panics.
//!
//! The messages are asserted whole: people read them, and each must name the file or argument, the
//! key, the value and what is allowed.

use crate::common::registry;
use graven::comparison::MachineFile;
use graven::config::validate;
use graven::config::{
    Annotation, CellKind, Config, ControllerConfig, CoreConfig, CoreModel, DramConfig, L1Config,
    L2Config, LlcConfig, PmConfig, Size, Source,
};
use graven::{PARTS, Preset};
use proptest::prelude::*;
use serde::Deserialize;
use toml::{Table, Value};

/// The machine's own sections; presets speak of all their keys and of nothing else.
const MACHINE_SECTIONS: [&str; 9] =
    ["core", "l1", "l2", "llc", "domain", "controller", "pm", "tlc", "dram"];

/// The message with which a file is refused, on reading or on validation.
fn refusal(text: &str) -> String {
    match MachineFile::read(registry(), text, "my.toml").and_then(|file| validate(&file.config)) {
        Ok(()) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

/// The message with which a value is refused, after which nothing has changed.
fn set_refusal(key: &str, text: &str) -> String {
    let mut config = registry().defaults();
    let before = config.to_json();
    let error = config.set(key, text).expect_err("accepted").to_string();
    assert_eq!(config.to_json(), before, "a refused value changed something");
    error
}

fn machine_keys() -> Vec<String> {
    let config = registry().defaults();
    let machine = config.sections().filter(|s| MACHINE_SECTIONS.contains(&s.name()));
    machine
        .flat_map(|s| s.fields().into_iter().map(move |f| format!("{}.{}", s.name(), f.key)))
        .collect()
}

// ---- What is refused ------------------------------------------------------------------------

/// A case of `refusals.toml`.
#[derive(Deserialize)]
struct Refusal {
    rule: String,
    file: Option<String>,
    set: Option<[String; 2]>,
    #[serde(default)]
    values: Vec<Vec<String>>,
    message: String,
}

#[derive(Deserialize)]
struct Refusals {
    case: Vec<Refusal>,
}

#[test]
fn what_is_refused_is_refused_in_these_words() {
    let sections: Vec<&str> =
        registry().defaults().sections().map(|section| section.name()).collect();
    let known = sections.join(", ");
    let refusals: Refusals = toml::from_str(include_str!("refusals.toml")).expect("cases");
    for case in refusals.case {
        // A case without values is one; `{0}` stands in none of its texts.
        let once = vec![Vec::new()];
        for values in if case.values.is_empty() { &once } else { &case.values } {
            let fill = |text: &str| {
                let with = values.iter().enumerate();
                let known = text.replace("{known}", &known);
                with.fold(known, |text, (i, value)| text.replace(&format!("{{{i}}}"), value))
            };
            let message = match (&case.file, &case.set) {
                (Some(file), None) => refusal(&fill(file)),
                (None, Some([key, text])) => set_refusal(key, text),
                _ => panic!("{}: either a file or a setting", case.rule),
            };
            assert_eq!(message, fill(&case.message), "{}: {values:?}", case.rule);
        }
    }
}

#[test]
fn an_integer_beyond_64_bits_is_refused() {
    let message = refusal("[core]\ncount = 99999999999999999999");
    let start = "my.toml: not valid TOML: TOML parse error at line 2, column 9\n  |\n2 | count = 99999999999999999999\n";
    assert!(message.starts_with(start), "{message}");
}

#[test]
fn an_unknown_machine_is_refused_with_those_that_exist() {
    assert_eq!(
        registry().machine("fbw").unwrap_err().to_string(),
        "unknown machine `fbw`; did you mean `fwb`? known are silo, morlog, fwb, hoop, lalea, cramped, miniature"
    );
}

#[test]
fn a_negative_zero_is_zero() {
    let config = registry().machine_file("[pm]\nprecharge_ns = -0.0", "my.toml").unwrap();
    assert!(config.get::<PmConfig>().precharge_ns.is_sign_positive());
}

#[test]
fn sizes_are_read_in_every_usual_spelling() {
    for text in ["65536", "64 KB", "64KB", "64k", " 64 KiB ", "65536 B"] {
        let mut config = registry().defaults();
        config.set("l1.bytes", text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(config.get::<L1Config>().bytes, Size::kb(64), "{text}");
        assert_eq!(config.to_json()["l1"]["bytes"], "64 KB");
    }
}

/// In-order cores have neither reorder buffer nor load queue, which threads would have to share evenly.
#[test]
fn queues_that_a_core_has_not_need_not_be_even() {
    let text = "[core]\nthreads_per_core = 2\nrob_entries = 9\nload_queue_entries = 1";
    validate(&registry().machine_file(text, "my.toml").unwrap()).unwrap();
}

#[test]
fn the_value_set_last_is_to_blame() {
    let mut config = registry().machine("silo").unwrap();
    config.set("pm.capacity_bytes", "32 MB").unwrap();
    assert_eq!(
        validate(&config).unwrap_err().to_string(),
        "--set: `pm.capacity_bytes` = \"32 MB\" does not fit: \
         pm.log_region_bytes = 64 MB must leave room for data in pm.capacity_bytes = 32 MB"
    );
    config.set("pm.log_region_bytes", "48 MB").unwrap();
    assert_eq!(
        validate(&config).unwrap_err().to_string(),
        "--set: `pm.log_region_bytes` = \"48 MB\" does not fit: \
         pm.log_region_bytes = 48 MB must leave room for data in pm.capacity_bytes = 32 MB"
    );
}

// ---- What is accepted -----------------------------------------------------------------------

#[test]
fn the_defaults_are_valid() {
    validate(&registry().defaults()).unwrap();
    assert!(registry().defaults().annotations().iter().all(|a| a.source == Source::Default));
}

#[test]
fn a_file_inherits_from_its_base() {
    let text = "extends = \"lalea\"\ntitle = \"wider\"\n[core]\ncount = 16";
    let config = registry().machine_file(text, "my.toml").unwrap();
    assert_eq!(config.machine, "my.toml");
    assert_eq!(config.get::<CoreConfig>().count, 16);
    assert_eq!(config.get::<CoreConfig>().model, CoreModel::OutOfOrder);
    assert_eq!(config.get::<ControllerConfig>().adr_entries, 16);
    assert_eq!(config.source("core.count"), Some(&Source::User("my.toml".into())));
    assert_eq!(config.source("pm.banks"), Some(&Source::Paper("LALEA Table I".into())));
}

#[test]
fn a_value_is_set_from_text() {
    let mut config = registry().defaults();
    for (key, text) in [
        ("core.count", "16"),
        ("core.model", "out-of-order"),
        ("controller.adr", "false"),
        ("pm.read_ns", "48"),
        (" llc.bytes ", " 2 MB "),
    ] {
        config.set(key, text).unwrap_or_else(|e| panic!("{e}"));
    }
    validate(&config).unwrap();
    assert_eq!(config.get::<CoreConfig>().count, 16);
    assert_eq!(config.get::<CoreConfig>().model, CoreModel::OutOfOrder);
    assert!(!config.get::<ControllerConfig>().adr);
    assert_eq!(config.get::<PmConfig>().read_ns, 48.0);
    assert_eq!(config.get::<LlcConfig>().bytes, Size::mb(2));
    assert_eq!(config.source("core.count"), Some(&Source::User("--set core.count=16".into())));
    assert_eq!(config.source("core.mshrs"), Some(&Source::Default));
    assert_eq!(config.source("core.nothing"), None);
}

#[test]
fn the_record_of_a_configuration_restores_it() {
    for preset in registry().presets() {
        let config = registry().machine(preset.name).unwrap();
        let record = config.to_json();
        let mut restored = registry().defaults();
        for (section, values) in record.as_object().unwrap() {
            for (key, value) in values.as_object().unwrap() {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                restored.set(&format!("{section}.{key}"), &text).unwrap();
            }
        }
        assert_eq!(restored.to_json(), record, "{}", preset.name);
    }
}

#[test]
fn annotations_say_value_unit_and_source() {
    let mut config = registry().machine("fwb").unwrap();
    config.set("llc.ways", "8").unwrap();
    let annotations = config.annotations();
    let keys: Vec<&str> = annotations.iter().map(|a| a.key.as_str()).collect();
    let machine = machine_keys();
    assert_eq!(keys[..machine.len()], machine, "every key once, in the order of declaration");

    let expect = |key: &str, value: &str, unit: &'static str, source: Source, shown: &str| {
        let found = annotations.iter().find(|a| a.key == key).expect(key);
        let wanted = Annotation { key: key.into(), value: value.into(), unit, source };
        assert_eq!((found, found.source.to_string().as_str()), (&wanted, shown));
    };
    let paper = || Source::Paper("FWB Table II".into());
    expect("pm.row_hit_ns", "36.0", "ns", paper(), "FWB Table II");
    expect("pm.capacity_bytes", "8 GB", "", paper(), "FWB Table II");
    expect(
        "controller.drain_high_percent",
        "80",
        "%",
        Source::Assumed("MorLog Table III".into()),
        "assumed: MorLog Table III",
    );
    expect(
        "llc.ways",
        "8",
        "ways",
        Source::User("--set llc.ways=8".into()),
        "set by --set llc.ways=8",
    );
    expect("workload.element_bytes", "64 B", "", Source::Default, "default");
}

// ---- The papers' machines -------------------------------------------------------------------

/// The presets that are papers' machines; the others extend one of them.
fn papers() -> impl Iterator<Item = &'static Preset> {
    registry().presets().iter().copied().filter(|preset| preset.file.starts_with("papers/"))
}

#[test]
fn a_file_extends_a_machine_and_parts() {
    let read = |text: &str| registry().machine_file(text, "my.toml");
    let [silo, ddr5] = ["extends = 'silo'", "extends = ['silo', 'ddr5-4800']"].map(read);
    let (silo, ddr5) = (silo.unwrap(), ddr5.unwrap());
    assert_eq!(ddr5.get::<PmConfig>().write_ns, silo.get::<PmConfig>().write_ns);
    let dram = |config: &Config| {
        let dram = config.get::<DramConfig>();
        (dram.clock_mhz, dram.channels, dram.ccd_l_write_clocks)
    };
    assert_eq!((dram(&silo), dram(&ddr5)), ((1200.0, 1, 6), (2400.0, 2, 48)));
    // What the file says itself comes last.
    let own = read("extends = 'ddr4-3200'\n[dram]\nchannels = 4").unwrap();
    assert_eq!(dram(&own), (1600.0, 4, 8));
    let refused = |text: &str| read(text).unwrap_err().to_string();
    let expected = "my.toml: `extends` = \"ddr4\" is not allowed; it must be the name of a machine or a part, or a list of them; ";
    assert!(refused("extends = ['silo', 'ddr4']").starts_with(expected));
    assert!(refused("extends = 4").contains("it must be the name of a machine or a part"));
    let expected = "it must be a machine as the first name alone, parts behind it";
    assert!(refused("extends = ['ddr4-2400', 'silo']").ends_with(expected));
}

#[test]
fn parts_are_valid_and_have_a_source_for_each_value() {
    for part in PARTS {
        let table: Table = part.text.parse().unwrap();
        assert_eq!(table["title"].as_str(), Some(part.title), "{}", part.file);
        let config = registry().machine_file(part.text, part.file).unwrap();
        validate(&config).unwrap_or_else(|e| panic!("{e}"));
        let own = ["capacity_bytes", "read_queue_entries", "write_queue_entries"];
        let keys = machine_keys()
            .into_iter()
            .filter(|key| key.strip_prefix("dram.").is_some_and(|key| !own.contains(&key)));
        for key in keys {
            let source = config.source(&key);
            let is_said = matches!(source, Some(Source::Paper(_) | Source::Assumed(_)));
            assert!(is_said, "{}: {key}: {source:?}", part.file);
        }
    }
}

#[test]
fn the_laboratorys_machine_is_silos_made_cramped() {
    let [silo, cramped] = ["silo", "cramped"].map(|name| registry().machine(name).unwrap());
    validate(&cramped).unwrap_or_else(|e| panic!("{e}"));
    assert!(cramped.get::<LlcConfig>().bytes.0 <= silo.get::<LlcConfig>().bytes.0 >> 10);
    assert_eq!(cramped.get::<PmConfig>().write_ns, silo.get::<PmConfig>().write_ns);
}

#[test]
fn every_preset_is_valid_and_annotates_every_machine_key() {
    for preset in papers() {
        let config = registry().machine(preset.name).unwrap_or_else(|e| panic!("{e}"));
        validate(&config).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(config.machine, preset.name);
        let has_tlc = config.get::<PmConfig>().cells == CellKind::TlcRram;
        for key in machine_keys().into_iter().filter(|key| has_tlc || !key.starts_with("tlc.")) {
            let source = config.source(&key).expect("a declared key");
            let (Source::Paper(text) | Source::Assumed(text)) = source else {
                panic!("{}: {key} has neither source nor reason: {source:?}", preset.file);
            };
            assert!(text.len() >= 4, "{}: {key}: {text:?} says too little", preset.file);
        }
    }
}

#[test]
fn presets_speak_of_the_machine_and_of_what_the_paper_runs_on_it() {
    // Designs that a paper reads otherwise than those that compare with them.
    let designs = |preset: &str| match preset {
        "lalea" => &["lad"][..],
        "fwb" => &["fwb"],
        _ => &[],
    };
    for preset in papers() {
        let table: Table = preset.text.parse().unwrap();
        assert_eq!(table["title"].as_str(), Some(preset.title), "{}", preset.file);
        let sections: Vec<&str> = table
            .keys()
            .map(String::as_str)
            .filter(|k| !["title", "extends", "comparison", "workload"].contains(k))
            .filter(|k| !designs(preset.name).contains(k))
            .collect();
        let cells = table["pm"]["cells"]["value"].as_str();
        let machine =
            MACHINE_SECTIONS.into_iter().filter(|&s| s != "tlc" || cells == Some("tlc-rram"));
        assert_eq!(sections, machine.collect::<Vec<_>>(), "{}", preset.file);
    }
    assert_eq!(registry().find_preset("silo").unwrap().file, "papers/silo/machine.toml");
}

/// What a paper leaves open is the same on every machine: the default of its declaration.
#[test]
fn assumed_values_are_the_defaults() {
    let defaults = registry().defaults().annotations();
    let mut differ = Vec::new();
    for preset in registry().presets() {
        let config = registry().machine(preset.name).unwrap();
        for (own, default) in config.annotations().iter().zip(&defaults) {
            if matches!(own.source, Source::Assumed(_)) && own.value != default.value {
                differ.push((preset.name, own.key.clone(), own.value.clone()));
            }
        }
    }
    let differ: Vec<(&str, &str, &str)> =
        differ.iter().map(|(name, key, value)| (*name, key.as_str(), value.as_str())).collect();
    // Out-of-order cores issue four, only Silo's PM has a buffer, programs of MorLog and FWB remove, too, and
    // HOOP's update a part of what they insert. Writes of FWB and LALEA take twice as long. LALEA's queues are volatile, but for the ADR entries.
    let expected = [
        ("morlog", "pm.buffer_lines", "0"),
        ("morlog", "workload.insert_percent", "50"),
        ("morlog", "workload.remove_percent", "50"),
        ("fwb", "core.issue_width", "4"),
        ("fwb", "controller.age_limit_ns", "19200.0"),
        ("fwb", "pm.buffer_lines", "0"),
        ("fwb", "workload.insert_percent", "50"),
        ("fwb", "workload.remove_percent", "50"),
        ("hoop", "core.issue_width", "4"),
        ("hoop", "pm.buffer_lines", "0"),
        ("hoop", "workload.update_bytes", "64 B"),
        ("hoop", "workload.insert_percent", "50"),
        ("lalea", "core.issue_width", "4"),
        ("lalea", "controller.age_limit_ns", "19200.0"),
        ("lalea", "controller.adr", "false"),
        ("lalea", "pm.buffer_lines", "0"),
    ];
    assert_eq!(differ, expected);
}

/// The numbers that make each machine what it is, typed in from the papers a second time: cores and clock; sizes and
/// latencies of L1, L2 and LLC; write queue, ADR and its entries; PM with read and write latency.
#[test]
fn presets_have_the_papers_numbers() {
    for (name, numbers) in [
        ("silo", "8 × 2000 MHz; 32 KB 4, 256 KB 12, 8 MB 28; 64, true 64; 16 GB 50/150 ns"),
        ("morlog", "8 × 3000 MHz; 32 KB 4, 256 KB 12, 8 MB 28; 64, true 64; 8 GB 25/150 ns"),
        ("fwb", "4 × 2500 MHz; 32 KB 4, 0 B 12, 8 MB 11; 64, false 64; 8 GB 100/300 ns"),
        ("hoop", "16 × 2500 MHz; 32 KB 4, 256 KB 12, 2 MB 28; 64, true 64; 512 GB 50/150 ns"),
        ("lalea", "4 × 2000 MHz; 32 KB 2, 256 KB 8, 8 MB 25; 64, false 16; 8 GB 48/300 ns"),
    ] {
        let config = registry().machine(name).unwrap();
        let core = config.get::<CoreConfig>();
        let controller = config.get::<ControllerConfig>();
        let pm = config.get::<PmConfig>();
        let l1 = config.get::<L1Config>();
        let l2 = config.get::<L2Config>();
        let llc = config.get::<LlcConfig>();
        let caches = format!(
            "{} {}, {} {}, {} {}",
            l1.bytes, l1.latency_cycles, l2.bytes, l2.latency_cycles, llc.bytes, llc.latency_cycles,
        );
        let queue = (controller.write_queue_entries, controller.adr, controller.adr_entries);
        let found = format!(
            "{} × {} MHz; {caches}; {}, {} {}; {} {}/{} ns",
            core.count,
            core.frequency_mhz,
            queue.0,
            queue.1,
            queue.2,
            pm.capacity_bytes,
            pm.read_ns,
            pm.write_ns,
        );
        assert_eq!(found, numbers, "{name}");
    }
}

// ---- Nothing panics -------------------------------------------------------------------------

/// Values of every TOML type, near the edges of the ranges and far outside them.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Value::Integer),
        (0u32..63, -1i64..=1).prop_map(|(shift, off)| Value::Integer((1i64 << shift) + off)),
        (0i64..200).prop_map(Value::Integer),
        any::<f64>().prop_map(Value::Float),
        (0.0..1000.0f64).prop_map(Value::Float),
        any::<bool>().prop_map(Value::Boolean),
        any::<String>().prop_map(Value::String),
        (any::<u64>(), " ?[kmgtKMGT]?[bB]?")
            .prop_map(|(n, unit)| Value::String(format!("{n}{unit}"))),
        (0u64..2000, " ?[kmgKMG][bB]").prop_map(|(n, unit)| Value::String(format!("{n}{unit}"))),
        prop_oneof![Just("in-order"), Just("out-of-order"), Just("line"), Just("page")]
            .prop_map(|word| Value::String(word.into())),
        Just(Value::Datetime("1979-05-27T07:32:00Z".parse().unwrap())),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let name = prop_oneof![Just("value"), Just("source"), Just("assumed"), Just("x")];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec((name, inner), 0..3).prop_map(|pairs| {
                Value::Table(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
}

fn any_key() -> impl Strategy<Value = (String, String)> {
    let known: Vec<(String, String)> = registry()
        .defaults()
        .annotations()
        .iter()
        .map(|a| a.key.split_once('.').map(|(s, k)| (s.into(), k.into())).unwrap())
        .collect();
    let comparison = ["designs", "workloads", "baseline", "vary"];
    let compared =
        prop::sample::select(comparison.map(|key| ("comparison".into(), key.into())).to_vec());
    prop_oneof![8 => prop::sample::select(known), 1 => compared, 1 => (any::<String>(), any::<String>())]
}

/// A file's tables, made of arbitrary values under mostly known keys.
fn any_file() -> impl Strategy<Value = Table> {
    let values = prop::collection::vec((any_key(), any_value()), 0..12);
    let top =
        prop_oneof![Just("extends"), Just("title"), Just("core"), Just("comparison"), Just("x")];
    (values, prop::option::weighted(0.1, (top, any_value()))).prop_map(|(values, stray)| {
        let mut file = Table::new();
        for ((section, key), value) in values {
            let table = file.entry(section).or_insert_with(|| Table::new().into());
            table.as_table_mut().expect("made above").insert(key, value);
        }
        file.extend(stray.map(|(name, value)| (name.to_owned(), value)));
        file
    })
}

/// Every error names where it is from, and every accepted value stands in the record.
fn check(result: Result<Config, graven::config::ConfigError>) {
    match result.and_then(|c| validate(&c).map(|()| c)) {
        Ok(config) => {
            assert_eq!(config.annotations().len(), registry().defaults().annotations().len())
        }
        Err(error) => {
            let (message, places) =
                (error.to_string(), ["any.toml: ", "any.toml, [comparison] vary: "]);
            assert!(places.iter().any(|place| message.starts_with(place)), "{message}");
        }
    }
}

proptest! {
    #[test]
    fn no_file_panics(file in any_file()) {
        check(registry().machine_file(&file.to_string(), "any.toml"));
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        check(registry().machine_file(&text, "any.toml"));
    }

    #[test]
    fn no_argument_panics(
        settings in prop::collection::vec((any_key(), any_value()), 1..12),
        noise in any::<String>(),
    ) {
        let mut config = registry().defaults();
        let _ = config.set(&noise, &noise);
        for ((section, key), value) in settings {
            let before = config.to_json();
            if config.set(&format!("{section}.{key}"), &value.to_string()).is_err() {
                prop_assert_eq!(config.to_json(), before, "a refused value changed something");
            }
        }
        // Whether the values fit each other is another matter; it must be said without a panic.
        let _ = validate(&config);
    }
}
