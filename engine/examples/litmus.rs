//! Runs litmus files: `litmus FILE…`.

use graven_engine::crash::story_of;
use graven_engine::litmus::{Case, designs_of, parse};

fn main() {
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
        let litmus = parse(&text).unwrap_or_else(|e| panic!("{file}: {e}"));
        for (design, must_convict) in designs_of(&litmus).unwrap_or_else(|e| panic!("{file}: {e}"))
        {
            let case = Case::new(&litmus, design).unwrap_or_else(|e| panic!("{file}: {e}"));
            let outcome = case.run().unwrap_or_else(|e| panic!("{file}: {e}"));
            let convicted = !outcome.convictions.is_empty();
            let verdict = if convicted == must_convict { "as expected" } else { "NOT AS EXPECTED" };
            println!(
                "{file}: {}: {verdict}, {:?} {:?}",
                design.name, outcome.tally, outcome.refused
            );
            if convicted != must_convict && convicted {
                let told = story_of(&litmus, design).unwrap_or_else(|e| panic!("{file}: {e}"));
                if let Some((_, timeline)) = told {
                    println!("{timeline}");
                }
            }
        }
    }
}
