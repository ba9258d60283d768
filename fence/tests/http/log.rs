//! The lines that the receiver logs.

use std::fmt::Debug;
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

/// Level, message and fields of each line, in the order in which they were logged.
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

/// The message of an event, and its fields behind it.
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.fields.push_str(&format!(" {name}={value:?}")),
        }
    }
}

impl Subscriber for LoggedLines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("lockkeeper_fence")
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line { message: String::new(), fields: String::new() };
        event.record(&mut line);
        self.0.lock().push(format!("{} {}{}", event.metadata().level(), line.message, line.fields));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
