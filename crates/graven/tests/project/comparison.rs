//! What is compared on a machine: the table `[comparison]` of a file, and variations of parameters.
//!
//! Files that are refused stand in `refusals.toml`, with those of the configuration.

use crate::common::registry;
use graven::catalogue;
use graven::comparison::{Comparison, MachineFile};
use graven::config::CoreConfig;
use graven::config::validate;

use serde_json::{Value, json};

const WHOLE: &str = r#"
[comparison]
designs = ["base", "fwb"]
workloads = ["queue", "micro"]
threads = [8, 2]
transactions = 20_000
baseline = "fwb"
vary = { "workload.element_bytes" = [64, "4096"], "controller.adr" = [true, false] }
metrics = ["ipc", "media_writes_suppressed"]
"#;

fn read(text: &str) -> MachineFile {
    MachineFile::read(registry(), text, "my.toml")
        .unwrap_or_else(|e| panic!("{e}\nfor the file:\n{text}"))
}

/// `--vary`, on the defaults and with the settings given.
fn varied(set: &[(&str, &str)], vary: &[(&str, &[&str])]) -> Result<Value, String> {
    let set: Vec<_> = set.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    let vary: Vec<_> = vary
        .iter()
        .map(|(key, texts)| ((*key).to_owned(), texts.iter().map(|&t| t.to_owned()).collect()))
        .collect();
    let whole = read(WHOLE);
    let found =
        whole.comparison.with(&whole.config, &set, Some(&vary)).map_err(|e| e.to_string())?;
    Ok(catalogue::comparison(&found)["vary"].clone())
}

fn keys(comparison: &Comparison) -> Vec<&str> {
    comparison.vary.iter().flatten().map(|variation| variation.key.as_str()).collect()
}

#[test]
fn a_machine_says_what_is_compared_on_it() {
    let config = read(WHOLE);
    validate(&config.config).unwrap();
    let origin = "my.toml, [comparison] vary";
    assert_eq!(
        catalogue::comparison(&config.comparison),
        json!({
            "designs": ["base", "fwb"],
            "workloads": ["queue", "micro"],
            "threads": [8, 2],
            "transactions": 20000,
            "baseline": "fwb",
            "metrics": ["ipc", "media_writes_suppressed"],
            "vary": [
                { "key": "workload.element_bytes", "values": ["64 B", "4 KB"], "origin": origin },
                { "key": "controller.adr", "values": ["true", "false"], "origin": origin },
            ],
        })
    );
    assert_eq!(
        config.config.to_json(),
        registry().defaults().to_json(),
        "no parameter has changed"
    );
}

#[test]
fn a_machine_need_not_say() {
    assert_eq!(read("").comparison, Comparison::default());
    assert_eq!(read("[comparison]").comparison, Comparison::default());
}

#[test]
fn a_key_needs_no_quotation_marks() {
    let quoted = read("[comparison]\nvary = { \"pm.write_ns\" = [1, 2], \"pm.read_ns\" = [3] }");
    let plain = read("[comparison]\nvary = { pm.write_ns = [1, 2], pm.read_ns = [3] }");
    let table = read("[comparison.vary]\npm.write_ns = [1, 2]\npm.read_ns = [3]");
    assert_eq!(quoted.comparison, plain.comparison);
    assert_eq!(quoted.comparison, table.comparison);
}

// ---- What is refused ------------------------------------------------------------------------

#[test]
fn an_unknown_parameter_is_refused_as_if_it_were_set() {
    let origin = "my.toml, [comparison] vary";
    let unknown = registry().defaults().set_by(origin, "pm.write", "1");
    let text = "[comparison]\nvary = { \"pm.write\" = [1] }";
    let found = MachineFile::read(registry(), text, "my.toml").map(|_| ());
    assert_eq!(found.unwrap_err().to_string(), unknown.unwrap_err().to_string());
}

#[test]
fn unknown_names_are_refused_with_a_suggestion() {
    for (text, key, value, what) in [
        ("designs = [\"base\", \"sillo\"]", "designs", "sillo", "the name of a design"),
        ("baseline = \"sillo\"", "baseline", "sillo", "the name of a design"),
        (
            "workloads = [\"ques\"]",
            "workloads",
            "ques",
            "the name of a workload or of a group of them",
        ),
    ] {
        let error =
            MachineFile::read(registry(), &format!("[comparison]\n{text}"), "my.toml").unwrap_err();
        let meant = if value == "ques" { "queue" } else { "silo" };
        let start = format!(
            "my.toml: `comparison.{key}` = \"{value}\" is not allowed; it must be {what}; \
             did you mean `{meant}`? known are "
        );
        assert!(error.to_string().starts_with(&start), "{error}");
    }
}

#[test]
fn a_metric_is_a_statistic_that_is_one_number() {
    for name in ["throughputt", "image_digest", "core*.ipc", "core0.ipc"] {
        let text = format!("[comparison]\nmetrics = [\"cycles\", \"{name}\"]");
        let error = MachineFile::read(registry(), &text, "my.toml").unwrap_err().to_string();
        let expected = format!(
            "my.toml: `comparison.metrics` = \"{name}\" is not allowed; it must be the name of a statistic; "
        );
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn other_names_of_designs_can_be_compared() {
    let config = read("[comparison]\ndesigns = [\"non-pers\", \"fwb\"]\nbaseline = \"non-pers\"");
    assert_eq!(config.comparison.designs, Some(vec!["non-pers".into(), "fwb".into()]));
}

#[test]
fn other_names_stand_for_designs_that_exist() {
    let names: Vec<&str> = registry().design_names().collect();
    for alias in registry().aliases() {
        assert_eq!(names.iter().filter(|&&name| name == alias.name).count(), 1, "{}", alias.name);
        for name in alias.of {
            assert_eq!(registry().find_design(name).map(|entry| entry.name), Ok(*name));
        }
        match (alias.of, registry().find_design(alias.name)) {
            ([one], found) => assert_eq!(found.map(|entry| entry.name), Ok(*one)),
            (_, found) => {
                let error = found.err().map(|error| error.to_string()).unwrap_or_default();
                assert!(error.contains("name one of them here"), "{error}");
            }
        }
    }
}

/// Of designs that are not listed one by one, any may be the baseline.
#[test]
fn a_baseline_may_be_any_of_all_designs() {
    read("[comparison]\ndesigns = [\"all\"]\nbaseline = \"silo\"");
    read("[comparison]\nbaseline = \"silo\"");
}

// ---- What overrides what --------------------------------------------------------------------

#[test]
fn what_is_set_is_not_varied() {
    let config = read(WHOLE);
    let set = [(" workload.element_bytes ".to_owned(), "1 KB".to_owned())];
    let found = config.comparison.with(&config.config, &set, None).unwrap();
    assert_eq!(keys(&found), ["controller.adr"]);
    assert_eq!(found.designs, config.comparison.designs);
}

#[test]
fn variations_that_are_given_take_the_place_of_the_machines() {
    assert_eq!(
        varied(&[], &[(" workload.element_bytes ", &[" 128 ", "4 KB"])]),
        Ok(json!([
            { "key": "workload.element_bytes", "values": ["128 B", "4 KB"], "origin": "--vary" },
        ]))
    );
    assert_eq!(varied(&[], &[]), Ok(json!([])));
}

#[test]
fn a_variation_that_makes_no_sense_is_refused() {
    let refused = |set: &[_], vary: &[(&str, &[&str])], message: &str| {
        assert_eq!(varied(set, vary), Err(message.to_owned()));
    };
    refused(
        &[("pm.write_ns", "1")],
        &[("pm.write_ns", &["1", "2"])],
        "--vary: `pm.write_ns` = 1,2 does not fit: --set gives it one value",
    );
    refused(
        &[],
        &[("pm.write_ns", &["1"]), ("pm.write_ns", &["2"])],
        "--vary: `pm.write_ns` = [2] does not fit: the same key is there before",
    );
    refused(
        &[],
        &[("workload.element_bytes", &["4 KB", "4096"])],
        "--vary: `workload.element_bytes` = 4096 is not allowed; \
         it must be another value than those before it, and \"4 KB\" is there",
    );
    refused(
        &[],
        &[("core.count", &["1", "many"])],
        "--vary: `core.count` = \"many\" is not allowed; it must be a whole number from 1 to 64",
    );
    refused(
        &[],
        &[("core.cont", &["1"])],
        "--vary: unknown key `core.cont`; did you mean `count`? known are count, frequency_mhz, model, \
         threads_per_core, issue_width, rob_entries, load_queue_entries, store_queue_entries, \
         write_combining_lines, mshrs",
    );
    refused(
        &[],
        &[("count", &["1"])],
        "--vary: unknown key `count`; a key has the form SECTION.KEY, as in core.count",
    );
    refused(
        &[],
        &[("core.count", &[])],
        "--vary: `core.count` = [] is not allowed; it must be a list of at least one value",
    );
}

/// Claims `hoop-cfg-threads` and `hoop-cfg-item-sizes`.
#[test]
fn hoop_runs_eight_threads_on_items_of_two_sizes() {
    let config = MachineFile::named(registry(), "hoop").unwrap();
    assert_eq!(config.config.get::<CoreConfig>().count, 16);
    let said = catalogue::comparison(&config.comparison);
    assert_eq!((&said["threads"], &said["baseline"]), (&json!([8]), &json!("opt-redo")));
    let [sizes] = said["vary"].as_array().unwrap().as_slice() else { panic!("one key is varied") };
    assert_eq!(sizes["key"], "workload.element_bytes");
    assert_eq!(sizes["values"], json!(["64 B", "1 KB"]));
}

#[test]
fn presets_name_what_can_be_compared() {
    for preset in registry().presets() {
        let config = MachineFile::named(registry(), preset.name).unwrap();
        for variation in config.comparison.vary.iter().flatten() {
            for value in &variation.values {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let mut varied = config.config.clone();
                varied.set(&variation.key, &text).unwrap();
                validate(&varied).unwrap_or_else(|e| panic!("{}: {e}", preset.name));
            }
        }
    }
}
