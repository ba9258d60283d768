use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::{ArmedFault, Fault, Gate, Occasion, Passed, Transcript, When};

/// One armed fault.
#[derive(Debug)]
pub(super) struct Rule {
    when: When,
    fault: Fault,
    matches: AtomicU64,
    pub(super) hits: watch::Sender<u64>,
    pub(super) released: watch::Sender<bool>,
}

/// All armed faults of a server or ensemble, in the order in which they were armed.
#[derive(Debug, Default)]
pub(crate) struct Switchboard {
    rules: Mutex<Vec<Arc<Rule>>>,
    transcripts: Mutex<Vec<Weak<Mutex<Vec<Passed>>>>>,
}

impl Switchboard {
    pub(crate) fn arm(self: &Arc<Self>, when: When, fault: Fault) -> ArmedFault {
        let (hits, released) = (watch::Sender::new(0), watch::Sender::new(false));
        let rule = Arc::new(Rule { when, fault, matches: AtomicU64::new(0), hits, released });
        self.rules.lock().push(Arc::clone(&rule));
        ArmedFault::new(rule, Arc::downgrade(self))
    }

    pub(super) fn disarm(&self, rule: &Arc<Rule>) {
        self.rules.lock().retain(|armed| !Arc::ptr_eq(armed, rule));
    }

    pub(crate) fn transcribe(&self) -> Transcript {
        let written = Arc::default();
        self.transcripts.lock().push(Arc::downgrade(&written));
        Transcript(written)
    }

    /// The fault that hits this occasion. Every rule counts its own matches; of several that hit, the first
    /// armed does.
    pub(crate) fn consult(&self, occasion: &Occasion<'_>) -> Option<Strike> {
        self.transcripts.lock().retain(|transcript| {
            transcript.upgrade().map(|written| written.lock().push(occasion.into())).is_some()
        });
        let mut strike = None;
        for rule in self.rules.lock().iter().filter(|rule| rule.when.matches(occasion)) {
            let nth = rule.matches.fetch_add(1, Ordering::Relaxed) + 1;
            if rule.when.counts(nth) && strike.is_none() {
                strike = Some(Strike { rule: Arc::clone(rule) });
            }
        }
        strike
    }
}

/// A fault that is about to hit.
#[derive(Debug)]
pub(crate) struct Strike {
    rule: Arc<Rule>,
}

impl Strike {
    pub(crate) fn fault(&self) -> Fault {
        self.rule.fault
    }

    /// Held messages wait at this gate.
    pub(crate) fn gate(&self) -> Gate {
        Gate::Released(self.rule.released.subscribe())
    }

    /// Wakes the tasks that wait for the hit.
    pub(crate) fn done(&self) {
        self.rule.hits.send_modify(|hits| *hits += 1);
    }
}
