//! What a member of a double barrier tells metrics and spans.

use std::fmt::{Debug, Write};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use lockkeeper::error::ErrorKind;
use lockkeeper::{ConnectionManager, metrics as names};
use lockkeeper_testserver::{Fault, Op, When};
use metrics::{Counter, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use parking_lot::Mutex;
use tracing::field::Field;
use tracing::span::{Attributes, Id};
use tracing::subscriber::NoSubscriber;
use tracing::{Dispatch, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::{BARRIER, client, member};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

/// How the holds have ended since the last call.
fn ends(snapshotter: &Snapshotter) -> Vec<String> {
    let outcome = |key: &Key| {
        let mut labels = key.labels();
        labels.find(|label| label.key() == "outcome").map(|label| label.value().to_owned())
    };
    let series = snapshotter.snapshot().into_vec().into_iter();
    let holds = series.filter(|(key, ..)| key.key().name() == names::HOLD_SECONDS);
    // A snapshot removes the samples, and leaves the series.
    let ended = holds.filter(|(.., value)| matches!(value, DebugValue::Histogram(of) if !of.is_empty()));
    ended.filter_map(|(key, ..)| outcome(key.key())).collect()
}

#[tokio::test]
async fn a_member_that_has_left_ends_as_released_and_one_without_an_answer_as_unconfirmed() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let server_fixture = ServerFixture::start().await.unwrap();
    let barrier = member(&client(&server_fixture).await, 1, "a");
    let inside = within("the member", barrier.enter()).await.unwrap().unwrap();
    within("the end", inside.leave()).await.unwrap().unwrap();
    assert_eq!(ends(&snapshotter), ["released"]);

    let inside = within("the member", barrier.enter()).await.unwrap().unwrap();
    let delete = When::op(Op::Multi).path(&format!("{BARRIER}/*")).always();
    let silent = server_fixture.server.fault(delete, Fault::HoldRequest);
    let leaving = inside.leave_timeout(Duration::from_millis(300));
    let error = within("the end", leaving).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreleased, "{error}");
    assert_eq!(ends(&snapshotter), ["unconfirmed"]);
    drop(silent);
}

/// The names of the spans with their fields.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let mut text = attributes.metadata().name().to_owned();
        attributes.record(&mut |field: &Field, value: &dyn Debug| {
            write!(text, " {field}={value:?}").unwrap();
        });
        self.0.lock().push(text);
    }
}

#[tokio::test]
async fn a_member_that_is_inside_is_a_span_that_says_how_long_it_waited() {
    let spans = Spans::default();
    // With one subscriber alone, tracing asks the thread that first meets a span whether anyone reads it:
    // that may be a thread of another test, which has no subscriber.
    let _another = Dispatch::new(NoSubscriber::default());
    let _listening = tracing::subscriber::set_default(tracing_subscriber::registry().with(spans.clone()));
    let server_fixture = ServerFixture::start().await.unwrap();
    let barrier = member(&client(&server_fixture).await, 1, "a");
    let inside = within("the member", barrier.enter()).await.unwrap().unwrap();
    let all = spans.0.lock().clone();
    let holds: Vec<&String> = all.iter().filter(|span| span.starts_with("hold ")).collect();
    assert_eq!(holds.len(), 1, "{all:?}");
    for field in ["recipe=\"double_barrier\"", "waited="] {
        assert!(holds[0].contains(field), "{holds:?}");
    }
    within("the end", inside.leave()).await.unwrap().unwrap();
}

/// Begins a shutdown when a hold begins to be counted: in the middle of a poll, as another thread can.
struct ShutDownAtHold(Arc<ShutDown>);

struct ShutDown(ConnectionManager);

impl GaugeFn for ShutDown {
    fn increment(&self, change: f64) {
        if change > 0.0 {
            // Closing continues when the future is dropped.
            drop(self.0.shutdown_within(Duration::from_secs(30)).now_or_never());
        }
    }

    fn decrement(&self, _: f64) {}

    fn set(&self, _: f64) {}
}

impl Recorder for ShutDownAtHold {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        match key.name() == names::HELD {
            true => Gauge::from_arc(Arc::clone(&self.0)),
            false => Gauge::noop(),
        }
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[tokio::test]
async fn a_shutdown_that_begins_before_a_member_is_counted_refuses_the_member() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let barrier = member(&manager, 1, "a");
    let recorder = ShutDownAtHold(Arc::new(ShutDown(manager.clone())));
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let entered = within("the end", barrier.enter()).await.unwrap();
    assert!(manager.is_closing(), "the count was not seen");
    assert!(entered.unwrap_err().is_closed());
}
