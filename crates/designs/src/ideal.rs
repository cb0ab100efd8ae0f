//! `ideal`: no persistence at all (FWB's *non-pers*, HOOP's *Ideal*).
//!
//! A run without the cost of logging, and no upper bound of performance: a design that writes lines back
//! earlier than by eviction can be faster.
//!
//! Lines reach PM when the caches evict them and not before; after a power failure anything may be
//! missing or there in part. Unsafe, and marked so.
//!
//! Where caches survive (`domain.caches = "all"`, eADR) each store is durable when it is performed, without a design: the machine
//! promises the order `strict`, and no transactions.

use graven_base::config::Config;
use graven_base::cost::NOTHING;
use graven_machine::config::DomainConfig;
use graven_machine::design::{Design, DesignInfo, Guarantee, NoEvent, Unused, plug};
use graven_persistency::cut::STRICT;

fn guarantee(config: &Config) -> Guarantee {
    match config.get::<DomainConfig>().keeps_caches() {
        true => Guarantee::Order(&STRICT),
        false => Guarantee::None,
    }
}

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "ideal",
    summary: "no persistence: lines reach PM by eviction only (unsafe)",
    paper: "FWB §VI (non-pers), HOOP §IV-A (Ideal)",
    guarantee,
    build: |_| Ok(plug(Ideal).into()),
    cost: NOTHING,
    ..DesignInfo::DEFAULT
};

struct Ideal;

impl Design for Ideal {
    type Write = Unused;
    type Read = Unused;
    type Timer = Unused;
    type Event = NoEvent;
}
