//! A design that never releases a thread: the machine must say so, and laboratories convict it.

use graven::design::{Design, DesignInfo, NoEvent, Port, Stall, Unused, plug};
use graven::ids::Tx;

struct Forgetful;

impl Design for Forgetful {
    type Write = Unused;
    type Read = Unused;
    type Timer = Unused;
    type Event = NoEvent;

    fn on_tx_end(&mut self, _port: &mut Port<'_, Self>, _tx: Tx) -> Stall {
        Stall::UntilReleased
    }
}

/// The design's entry.
pub static FORGETFUL: DesignInfo = DesignInfo {
    name: "forgetful",
    summary: "makes threads wait and never releases them",
    build: |_| Ok(plug(Forgetful).into()),
    ..DesignInfo::DEFAULT
};
