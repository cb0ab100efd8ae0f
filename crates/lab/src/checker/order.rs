//! The checker of designs that promise an order of stores ([`Guarantee::Order`](graven_machine::design::Guarantee::Order)).

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, Image};
use graven_base::surviving::SurvivingImage;
use graven_machine::controller::outside::Outside;
use graven_machine::sim::TransactionObserver;
use graven_persistency::cut::{Cuts, Event, Operation, Order};
use graven_persistency::promise::Words;

use super::{Verdict, recounted};

/// Follows stores, loads and instructions for order, and checks recovered bytes.
#[derive(Clone, Debug)]
pub struct OrderChecker {
    cuts: Cuts,
    start: Addr,
    end: Addr,
}

impl std::hash::Hash for OrderChecker {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.cuts.hash(state);
    }
}

/// The words that recovery has left.
struct Recovered<'a>(&'a SurvivingImage);

impl Words for Recovered<'_> {
    fn word(&self, addr: Addr) -> u64 {
        self.0.peek(addr)
    }
}

impl OrderChecker {
    /// A checker for words in `[start, end)`.
    pub fn new(order: &'static Order, start: Addr, end: Addr) -> OrderChecker {
        OrderChecker { cuts: Cuts::new(order), start, end }
    }

    /// Checks the image that recovery left. `now`: architectural memory at the failure. `different`: the words in which the durable
    /// bytes differed from it, before anything was written to the surviving.
    ///
    /// # Errors
    /// The first contradiction to the order.
    pub fn check(
        &self,
        recovered: &SurvivingImage,
        different: u64,
        now: &Image,
    ) -> Result<(), Verdict> {
        self.cuts.judge(&Recovered(recovered)).map_err(Verdict::NoCut)?;
        let different = recounted(different, recovered, (self.start, self.end), |addr| {
            let committed = now.load(addr);
            move |held| held != committed
        });
        // Words that were stored to have been judged; no other may have changed.
        let differs = |addr: &Addr| recovered.peek(*addr) != now.load(*addr);
        if different == self.cuts.words().filter(differs).count() as u64 {
            return Ok(());
        }
        let stored: std::collections::BTreeSet<Addr> = self.cuts.words().collect();
        let mut others = recovered.image().differences(now, self.start, self.end);
        let other = others.find(|(addr, ..)| !stored.contains(addr));
        let (addr, found, committed) = other.expect("the count says that some word differs");
        Err(Verdict::Lost { addr, found, committed })
    }
}

impl TransactionObserver for OrderChecker {
    fn begin(&mut self, tx: Tx) {
        self.cuts.saw(&Event::Begin(tx));
    }

    fn store(&mut self, tx: Tx, addr: Addr, old: u64, new: u64, _outside: Option<Outside>) {
        self.cuts.saw(&Event::Store { thread: tx.thread, addr, old, new });
    }

    fn store_outside(&mut self, thread: ThreadId, addr: Addr, old: u64, new: u64) {
        self.cuts.saw(&Event::Store { thread, addr, old, new });
    }

    fn forgives_outside(&self) -> bool {
        false
    }

    fn wants_loads(&self) -> bool {
        self.cuts.order().wants_loads()
    }

    fn load(&mut self, thread: ThreadId, addr: Addr, value: u64) {
        self.cuts.saw(&Event::Load { thread, addr, value });
    }

    fn executed(&mut self, thread: ThreadId, operation: Operation) {
        self.cuts.saw(&Event::Executed { thread, operation });
    }

    fn snapshot(&mut self) {
        self.cuts.saw(&Event::Snapshot);
    }

    fn put_off_store(&mut self, _tx: Tx, _addr: Addr) {}

    fn defer(&mut self, _tx: Tx, _words: &[(Addr, u64)]) {}

    fn ending(&mut self, tx: Tx) {
        self.cuts.saw(&Event::Ending(tx));
    }

    fn put_off(&mut self, tx: Tx) {
        self.cuts.saw(&Event::PutOff(tx));
    }

    fn acknowledged(&mut self, tx: Tx) {
        self.cuts.saw(&Event::Acknowledged(tx));
    }
}
