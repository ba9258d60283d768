//! The log lines about losses. To an operator such a line means a lost hold, so the oracle checks that it is
//! true.

use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::world::World;

thread_local! {
    /// The world that this thread plays, and what was said in it.
    static LISTENING: RefCell<Option<(World, Vec<SaidLost>)>> = const { RefCell::new(None) };
}

/// A node that the log says was held and is lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct SaidLost {
    message: String,
    pub(crate) path: String,
    pub(crate) reason: String,
    /// Its own session had asked for its delete before.
    pub(crate) was_given_up: bool,
}

/// From now on what is said on this thread is said in this world.
pub(crate) fn listen(world: &World) {
    // One for all threads: a log line without a subscriber at its first use is switched off for all threads.
    static EVERYWHERE: Once = Once::new();
    EVERYWHERE.call_once(|| tracing::subscriber::set_global_default(Listener).expect("the only one"));
    LISTENING.set(Some((world.clone(), Vec::new())));
}

/// The log lines since the last call.
pub(crate) fn said() -> Vec<SaidLost> {
    LISTENING.with_borrow_mut(|listening| match listening {
        Some((_, said)) => std::mem::take(said),
        None => Vec::new(),
    })
}

/// The world of this thread has come to its end.
pub(crate) fn end() {
    LISTENING.take();
}

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN && metadata.is_event()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let mut said = SaidLost::default();
        event.record(&mut said);
        if said.message != "hold lost" {
            return;
        }
        LISTENING.with_borrow_mut(|listening| {
            if let Some((world, all)) = listening {
                said.was_given_up = world.was_given_up(&said.path);
                all.push(said);
            }
        });
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Visit for SaidLost {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let field = match field.name() {
            "message" => &mut self.message,
            "path" => &mut self.path,
            "reason" => &mut self.reason,
            _ => return,
        };
        *field = format!("{value:?}").trim_matches('"').to_owned();
    }
}
