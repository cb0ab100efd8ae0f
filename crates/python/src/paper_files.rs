//! Measurements and claims of the papers, as files that ship with Graven; the front end reads them.

use serde_json::json;

macro_rules! papers {
    ($($name:literal)*) => {
        /// Name, experiments and claims of each paper.
        const PAPERS: &[(&str, &str, &str)] = &[$((
            $name,
            include_str!(concat!("../papers/", $name, "/experiments.toml")),
            include_str!(concat!("../papers/", $name, "/claims.toml")),
        ),)*];
    };
}

papers! { "silo" "morlog" "fwb" "hoop" "lalea" }

/// Experiments and claims by paper, as JSON.
pub fn texts() -> String {
    let all: serde_json::Map<String, serde_json::Value> = PAPERS
        .iter()
        .map(|&(name, experiments, claims)| {
            (name.to_owned(), json!({ "experiments": experiments, "claims": claims }))
        })
        .collect();
    serde_json::Value::Object(all).to_string()
}
