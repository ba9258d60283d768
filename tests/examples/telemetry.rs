//! The spans and the metrics that the example sends, at a collector of the test.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

#[allow(dead_code, reason = "the other tests use the rest")]
mod program;

use std::collections::BTreeSet;
use std::process::Output;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use lockkeeper::metrics::{ALL, HELD, SENT_BYTES_TOTAL, TXN_UNKNOWN_TOTAL, WAIT_SECONDS};
use lockkeeper_tests::{Timing, eventually};
use lockkeeper_testserver::TestServer;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Metric, NumberDataPoint, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::{TcpListener, TcpSocket};
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::program::{output, program};

/// The lock of the example.
const LOCK: &str = "/telemetry/orders";
const SERVICE: &str = "checkout";
const ORDERS_OF_TASK: u32 = 3;
/// Of both tasks.
const ORDERS: usize = 6;

/// What has been sent. Metrics count from the start, and each export has all of them: the last one is enough.
#[derive(Debug, Default)]
struct Received {
    services: BTreeSet<String>,
    spans: Vec<Span>,
    metrics: Vec<Metric>,
}

type Shared = Arc<Mutex<Received>>;

/// A collector on a free port of the loopback interface.
struct Collector {
    address: String,
    received: Shared,
    serving: JoinHandle<()>,
}

impl Collector {
    async fn start() -> Self {
        let received = Shared::default();
        let router = Router::new()
            .route("/v1/traces", post(traces))
            .route("/v1/metrics", post(metrics))
            .with_state(Arc::clone(&received));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, received, serving }
    }

    /// All that was sent, when nobody sends any more.
    fn close(self) -> Received {
        self.serving.abort();
        std::mem::take(&mut *self.received.lock().unwrap())
    }
}

/// The message of a request, which is in the binary form.
fn decoded<T: Message + Default>(headers: &HeaderMap, body: Bytes) -> T {
    assert_eq!(headers["content-type"], "application/x-protobuf");
    T::decode(body).unwrap()
}

async fn traces(State(received): State<Shared>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let sent: ExportTraceServiceRequest = decoded(&headers, body);
    let mut received = received.lock().unwrap();
    for of_resource in sent.resource_spans {
        received.services.extend(service(of_resource.resource));
        received.spans.extend(of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
    }
    StatusCode::OK
}

async fn metrics(State(received): State<Shared>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let sent: ExportMetricsServiceRequest = decoded(&headers, body);
    let mut received = received.lock().unwrap();
    received.metrics.clear();
    for of_resource in sent.resource_metrics {
        received.services.extend(service(of_resource.resource));
        received.metrics.extend(of_resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics));
    }
    StatusCode::OK
}

/// The text of an attribute.
fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let attribute = attributes.iter().find(|attribute| attribute.key == key)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(text),
        _ => None,
    }
}

fn service(resource: Option<Resource>) -> Option<String> {
    text(&resource?.attributes, "service.name").map(str::to_owned)
}

impl Received {
    fn spans(&self, name: &str) -> Vec<&Span> {
        self.spans.iter().filter(|span| span.name == name).collect()
    }

    fn metric(&self, name: &str) -> (&str, &Data) {
        let metric = self.metrics.iter().find(|metric| metric.name == name);
        let metric = metric.unwrap_or_else(|| panic!("no {name}"));
        (&metric.unit, metric.data.as_ref().unwrap())
    }
}

/// The value of the point that has this label.
fn value(points: &[NumberDataPoint], key: &str, label: &str) -> f64 {
    let point = points.iter().find(|point| text(&point.attributes, key) == Some(label)).unwrap();
    match point.value.unwrap() {
        number_data_point::Value::AsDouble(value) => value,
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        number_data_point::Value::AsInt(value) => value as f64,
    }
}

/// The example with two tasks, on a server of its own, with this collector and no setting of the machine.
fn example(collector: &str, orders_of_task: u32) -> Command {
    let mut command = program("telemetry");
    for (name, _) in std::env::vars_os() {
        if name == "RUST_LOG" || name.as_encoded_bytes().starts_with(b"OTEL_") {
            command.env_remove(name);
        }
    }
    command
        .args(["--tasks", "2", "--orders", &orders_of_task.to_string()])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector)
        .env("OTEL_SERVICE_NAME", SERVICE)
        // A proxy of the machine that runs the test has no part in this.
        .env("NO_PROXY", "127.0.0.1");
    command
}

/// Whether it did its work, and what it logged.
fn log(output: &Output) -> String {
    let (printed, log) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(output.status.success() && printed.contains("worked on 6 orders"), "{printed}{log}");
    log
}

/// The program has ended: what it had not sent by then is never sent.
#[tokio::test]
async fn the_end_of_the_program_loses_no_span_of_a_lock_and_no_metric() {
    let collector = Collector::start().await;
    let log = log(&output(example(&collector.address, ORDERS_OF_TASK)).await);
    assert!(!log.contains("did not reach"), "{log}");
    let received = collector.close();
    assert_eq!(received.services, BTreeSet::from([SERVICE.to_owned()]));
    assert_spans(&received);
    assert_metrics(&received);
}

#[tokio::test]
async fn an_interrupted_program_sends_the_spans_of_its_orders_and_leaves_no_session() {
    let (server, collector) = (TestServer::start().await.unwrap(), Collector::start().await);
    let mut command = example(&collector.address, u32::MAX);
    command.args(["--connect", &server.connect_string()]).env("OTEL_BSP_SCHEDULE_DELAY", "20");
    let running = command.spawn().unwrap();
    let has_order = async || {
        let received = collector.received.lock().unwrap();
        (!received.spans("order").is_empty()).then_some(())
    };
    eventually("an order arrives", Timing::settle(), has_order).await.unwrap();
    let pid = running.id().and_then(|pid| Pid::from_raw(pid.try_into().unwrap())).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let ended = timeout(Timing::settle() * 4, running.wait_with_output()).await.expect("it ends").unwrap();
    let (printed, log) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success() && !log.contains("did not reach"), "{printed}{log}");

    let worked_on =
        printed.trim_end().strip_prefix("worked on ").and_then(|line| line.strip_suffix(" orders"));
    let worked_on: usize = worked_on.unwrap().parse().unwrap();
    let received = collector.close();
    // Each of the two tasks was at an order that it had not ended, or between two orders.
    let orders = received.spans("order").len();
    assert!((worked_on..=worked_on + 2).contains(&orders), "{orders} spans of {worked_on} orders");
    assert!(received.spans("release").len() >= worked_on);
    assert!(server.sessions().is_empty());
    let is_free =
        server.inspect(|machine| machine.tree().node(LOCK).is_some_and(|node| node.children.is_empty()));
    assert!(is_free, "the next holder waits for no session");
}

fn assert_spans(received: &Received) {
    let (orders, acquires) = (received.spans("order"), received.spans("acquire"));
    let traces: BTreeSet<&[u8]> = orders.iter().map(|span| span.trace_id.as_slice()).collect();
    assert_eq!((orders.len(), traces.len()), (ORDERS, ORDERS), "each order is a trace");
    assert_eq!(acquires.len(), ORDERS);
    for span in acquires {
        for (field, expected) in [("path", LOCK), ("recipe", "mutex"), ("outcome", "granted")] {
            assert_eq!(text(&span.attributes, field), Some(expected), "{span:?}");
        }
        assert!(text(&span.attributes, "waited").is_some(), "{span:?}");
        let is_of = |order: &&&Span| order.span_id == span.parent_span_id && order.trace_id == span.trace_id;
        assert_eq!(orders.iter().filter(is_of).count(), 1, "{span:?}");
    }
    for name in ["hold", "release"] {
        let spans = received.spans(name);
        assert_eq!(spans.len(), ORDERS, "{name}");
        for span in spans {
            assert!(text(&span.attributes, "path").unwrap().starts_with(LOCK), "{span:?}");
            assert!(text(&span.attributes, "token").is_some(), "{span:?}");
        }
    }
    let known = ["order", "acquire", "wait", "hold", "release"];
    assert!(received.spans.iter().all(|span| known.contains(&span.name.as_str())), "{received:?}");
}

fn assert_metrics(received: &Received) {
    let (unit, Data::Histogram(waits)) = received.metric(WAIT_SECONDS) else { panic!("no histogram") };
    assert_eq!((unit, waits.data_points.len()), ("s", 1));
    let wait = &waits.data_points[0];
    let labels = ["recipe", "outcome"].map(|label| text(&wait.attributes, label));
    assert_eq!((wait.count, labels), (6, [Some("mutex"), Some("granted")]));
    // Seconds, and not the bounds of milliseconds.
    assert_eq!(wait.explicit_bounds.first(), Some(&0.001));

    let (unit, Data::Sum(sent)) = received.metric(SENT_BYTES_TOTAL) else { panic!("no counter") };
    assert!(unit == "By" && sent.is_monotonic && value(&sent.data_points, "request", "create") > 0.0);
    // A counter is there before it counts for the first time.
    let (_, Data::Sum(unknown)) = received.metric(TXN_UNKNOWN_TOTAL) else { panic!("no counter") };
    assert_eq!(unknown.data_points.len(), 1);

    let (_, Data::Gauge(held)) = received.metric(HELD) else { panic!("no gauge") };
    assert!(value(&held.data_points, "recipe", "mutex").abs() < f64::EPSILON, "all are released");
    for metric in &received.metrics {
        assert!(ALL.contains(&metric.name.as_str()) && !metric.description.is_empty(), "{metric:?}");
    }
}

#[tokio::test]
async fn without_a_collector_the_work_is_done_and_a_warning_says_what_is_lost() {
    // Refuses connections, and keeps the port from others.
    let closed = TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    // This one takes connections, and answers nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    for address in [closed.local_addr().unwrap(), silent.local_addr().unwrap()] {
        let mut command = example(&format!("http://{address}"), ORDERS_OF_TASK);
        // How long an export may take: 10 s if nothing is set.
        command.env("OTEL_EXPORTER_OTLP_TIMEOUT", "1000");
        let log = log(&output(command).await);
        for lost in ["the last spans did not reach the collector", "the last metrics did not reach"] {
            assert!(log.contains(lost), "{log}");
        }
    }
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_before_any_work() {
    let output = output(example("no address", ORDERS_OF_TASK)).await;
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && output.stdout.is_empty(), "{log}");
    assert!(log.contains("telemetry: "), "{log}");
}
