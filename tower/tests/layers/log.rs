//! The lines that a layer logs.

use std::fmt::Debug;
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

/// The messages of the layers, in the order in which they were logged.
#[derive(Clone, Default)]
pub(crate) struct LoggedLines(Arc<Mutex<Vec<String>>>);

impl LoggedLines {
    /// Keeps the lines of this thread for as long as the guard is kept.
    pub(crate) fn begin() -> (Self, DefaultGuard) {
        // The first use of a callsite on a thread without a subscriber would disable it for all threads, so
        // every thread has a subscriber.
        static EVERYWHERE: Once = Once::new();
        EVERYWHERE.call_once(|| {
            tracing::subscriber::set_global_default(Self::default()).expect("none before");
        });
        let lines = Self::default();
        (lines.clone(), tracing::subscriber::set_default(lines))
    }

    pub(crate) fn read(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

/// The message of an event.
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for LoggedLines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("lockkeeper_tower")
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().push(message.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
