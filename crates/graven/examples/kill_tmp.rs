//! tmp
use graven::lab::adversary::{Adversary, Draws};
use graven::lab::case::Case;
use graven::lab::explorer::Thoroughness;
use std::sync::Arc;
fn main() {
    let registry = graven::standard();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let varied: u64 = args[0].parse().unwrap();
    let n: u64 = args[1].parse().unwrap();
    let control: Arc<graven::control::Control> = Arc::default();
    let _ = &control;
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (d, m) = line.split_once(' ').unwrap();
        let design = registry.find_design(d).unwrap();
        let t = std::time::Instant::now();
        let mut a = Adversary::new(design, Draws::with(&[("varied".into(), varied)]).unwrap());
        let mut end = None;
        for seed in 1..=n {
            let mut l = a.schedule(seed);
            l.mutant = Some(m.into());
            let Ok(c) = Case::new(&registry, &l, design) else { continue };
            let o = c.examined(Thoroughness::DRAWN);
            let r = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| o.run().unwrap()));
            match r {
                Err(_) => {
                    end = Some((seed, "panic".to_string()));
                    break;
                }
                Ok(o) => {
                    a.learn(&o.reached());
                    if let Some(v) = o.violations.first() {
                        end = Some((seed, v.what.clone()));
                        break;
                    }
                }
            }
        }
        println!("{d} {m} {:?} {:.1}s", end.as_ref().map(|e| e.0), t.elapsed().as_secs_f64());
    }
}
