//! Programs that store outside transactions, on every design.

use crate::common::{registry, with_each};
use graven::lab::campaign::{AdversaryCampaign, AdversaryRequest};

#[test]
fn scratch() {
    let designs: Vec<_> =
        registry().designs().iter().filter(|d| d.is_sound(&registry().defaults())).collect();
    let seeds = std::env::var("SEEDS").map_or(300, |s| s.parse().unwrap());
    with_each(&designs, |design| {
        let request = AdversaryRequest {
            designs: vec![design.name.into()],
            seeds,
            first_seed: 1,
            mutant: None,
            settings: Vec::new(),
            draws: vec![("outside".into(), 40)],
            violations_max: 1,
        };
        let campaign = AdversaryCampaign::new(registry(), request, None).unwrap();
        campaign.run(1, &|| std::time::Duration::ZERO);
        for r in campaign.reports() {
            println!("{} {:?} runs {} refused {} {:?} recoveries {}", r.design, r.guarantee, r.runs, r.refused, r.refusal, r.recoveries);
            for v in &r.violations {
                println!("VIOLATION {}: {} {:?}\n{}", r.design, v.what, v.seed, v.replay.clone().unwrap_or_default());
                for row in &v.timeline {
                    println!("  {:?} {} {}", row.cycle, row.who, row.what);
                }
            }
        }
    });
}
