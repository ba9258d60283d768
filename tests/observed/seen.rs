//! The spans and events of a subscriber, kept as text.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// A span or an event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) target: String,
    pub(crate) level: String,
    pub(crate) fields: BTreeMap<String, String>,
    /// A span's parent.
    pub(crate) parent: Option<String>,
    /// Whether it is a span that has ended.
    pub(crate) is_closed: bool,
}

impl Entry {
    fn of(metadata: &Metadata<'_>) -> Self {
        let (target, level) = (metadata.target().to_owned(), metadata.level().to_string());
        Self { name: metadata.name().to_owned(), target, level, ..Self::default() }
    }

    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

impl Visit for Entry {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

/// All spans and events on the thread of one test.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Log>>);

/// Spans with their numbers, and events without one, in order.
type Log = Vec<(Option<Id>, Entry)>;

impl Seen {
    /// Records for as long as the guard is kept.
    pub(crate) fn begin() -> (Self, tracing::subscriber::DefaultGuard) {
        // The first use of a callsite on a thread without a subscriber would disable it for all threads, so
        // every thread has a subscriber.
        static EVERYWHERE: Once = Once::new();
        EVERYWHERE.call_once(|| {
            tracing::subscriber::set_global_default(tracing_subscriber::registry()).expect("none before");
        });
        let seen = Self::default();
        let subscriber = tracing_subscriber::registry().with(seen.clone());
        (seen, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn all(&self) -> Vec<Entry> {
        self.0.lock().iter().map(|(_, entry)| entry.clone()).collect()
    }

    /// The spans of this name, in order.
    pub(crate) fn spans(&self, name: &str) -> Vec<Entry> {
        let entry = self.0.lock();
        let spans = entry.iter().filter(|(id, entry)| id.is_some() && entry.name == name);
        spans.map(|(_, entry)| entry.clone()).collect()
    }

    /// The events of this message, in order.
    pub(crate) fn events(&self, message: &str) -> Vec<Entry> {
        self.all().into_iter().filter(|entry| entry.field("message") == message).collect()
    }

    fn with(&self, id: &Id, change: impl FnOnce(&mut Entry)) {
        let mut entry = self.0.lock();
        // The ids of closed spans are used again.
        if let Some((_, span)) = entry.iter_mut().rev().find(|(of, _)| of.as_ref() == Some(id)) {
            change(span);
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Seen {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut entry = Entry::of(attributes.metadata());
        attributes.record(&mut entry);
        entry.parent = context.span(id).and_then(|span| Some(span.parent()?.name().to_owned()));
        self.0.lock().push((Some(id.clone()), entry));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.with(id, |span| values.record(span));
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut entry = Entry::of(event.metadata());
        event.record(&mut entry);
        self.0.lock().push((None, entry));
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.with(&id, |span| span.is_closed = true);
    }
}
