//! Sends the spans and the metrics of lockkeeper to an OpenTelemetry collector, by OTLP over HTTP.
//!
//! Some tasks contend for a lock. Each order that a task works on is a trace: the span of the program, and in
//! it those of lockkeeper, `acquire`, `wait`, `hold` and `release`. A collector that does not answer costs
//! the telemetry, and never the work. On Ctrl-C and SIGTERM the program drops its work, closes the
//! session, and sends what it has recorded.
//!
//! ```text
//! export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 OTEL_SERVICE_NAME=shop
//! cargo run --example telemetry                                   # on an embedded server
//! cargo run --example telemetry -- --connect host:port,…          # on your servers
//! ```
//!
//! Copy this file, and add the crates `clap` with the feature `derive`, `lockkeeper` with `metrics`,
//! `lockkeeper-testserver`, `metrics`, `metrics-opentelemetry`, `opentelemetry`, `opentelemetry-otlp`,
//! `opentelemetry_sdk`, `tokio` with `macros`, `rt-multi-thread`, `signal` and `time`, `tracing`,
//! `tracing-opentelemetry`, and `tracing-subscriber` with `env-filter`; all with their default features. An
//! endpoint with `https` needs the feature `reqwest-rustls` of `opentelemetry-otlp`.

use std::env;
use std::error::Error;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Parser;
use lockkeeper::{ConnectionManager, Mutex, with_manager};
use lockkeeper_testserver::TestServer;
use metrics_opentelemetry::{OpenTelemetryMetrics, OpenTelemetryRecorder};
use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{MetricExporter, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{EnvFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Works on orders under a lock, and exports what that costs.
#[derive(Debug, Parser)]
#[command(name = "telemetry")]
struct Options {
    /// The ensemble to use, as host:port,host:port/chroot [default: an embedded server, for this run]
    #[arg(long, value_name = "SERVERS")]
    connect: Option<String>,

    /// How many tasks contend for the lock
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    tasks: u32,

    /// How many orders each task works on
    #[arg(long, value_name = "N", default_value_t = 5)]
    orders: u32,
}

type Failure = Box<dyn Error + Send + Sync>;

/// The service of the spans and the metrics, unless `OTEL_SERVICE_NAME` says another.
const SERVICE: &str = "orders";

/// The lock of all orders.
const LOCK: &str = "/telemetry/orders";

/// How long an order waits for the lock at most.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// How long an order takes.
const WORK: Duration = Duration::from_millis(5);

/// What is logged, unless `RUST_LOG` says something else.
const LOG: &str = "info,zookeeper_client=error";

/// The upper ends of the histograms' buckets, in seconds: from a round trip to a session timeout. Those that
/// OpenTelemetry has by default are for milliseconds.
const BUCKETS: [f64; 8] = [0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0];

fn main() -> ExitCode {
    let options = Options::parse();
    let telemetry = match Telemetry::install() {
        Ok(telemetry) => telemetry,
        Err(error) => {
            eprintln!("telemetry: {error}");
            return ExitCode::FAILURE;
        }
    };
    // The runtime ends in here, and with it every task that may still have a span.
    let worked = Runtime::new().map_err(Failure::from).and_then(|runtime| runtime.block_on(work(&options)));
    // After the last span, also when the work has failed. Without this the last seconds of spans and the last
    // minute of metrics are lost.
    telemetry.flush();
    match worked {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("telemetry: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Works on all orders until a signal comes, and closes the session on every way out.
async fn work(options: &Options) -> Result<(), Failure> {
    // Without an ensemble the example brings a server. Its drop ends it.
    let embedded = match options.connect {
        Some(_) => None,
        None => Some(TestServer::start().await?),
    };
    let servers = options.connect.clone().or_else(|| embedded.as_ref().map(TestServer::connect_string));
    with_manager(servers.unwrap_or_default().as_str(), async |manager| {
        let signalled = signalled()?;
        let worked_on = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        for task in 0..options.tasks {
            let (manager, orders, worked_on) = (manager.clone(), options.orders, Arc::clone(&worked_on));
            tasks.spawn(async move {
                for number in 0..orders {
                    order(&manager, task, number).await?;
                    worked_on.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<(), Failure>(())
            });
        }
        let ended = tokio::select! {
            biased;
            () = signalled => Ok(()),
            ended = end_of(&mut tasks) => ended,
        };
        // Drops what a signal or an error has left of the work, and by that its guards.
        tasks.shutdown().await;
        println!("worked on {} orders", worked_on.load(Ordering::Relaxed));
        ended
    })
    .await
}

/// Until all tasks have ended, or one of them with an error.
async fn end_of(tasks: &mut JoinSet<Result<(), Failure>>) -> Result<(), Failure> {
    while let Some(worked) = tasks.join_next().await {
        worked??;
    }
    Ok(())
}

/// Resolves at Ctrl-C or SIGTERM. After this call neither ends the process: it has half a minute to go then.
fn signalled() -> Result<impl Future<Output = ()>, Failure> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            biased;
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
    })
}

/// One order, and one trace. The spans of lockkeeper are below the span of this function.
#[tracing::instrument(skip(manager), err)]
async fn order(manager: &ConnectionManager, task: u32, number: u32) -> Result<(), Failure> {
    let guard = Mutex::new(manager, LOCK)?.acquire_timeout(LOCK_WAIT).await?;
    guard.run(tokio::time::sleep(WORK)).await?;
    // If the release is not confirmed now, it continues in the background.
    guard.release().await?;
    Ok(())
}

/// What sends the spans and the metrics, each from a thread of its own.
struct Telemetry {
    spans: SdkTracerProvider,
    metrics: SdkMeterProvider,
}

impl Telemetry {
    /// From here on everything is recorded. The exporters read the variables of OpenTelemetry
    /// (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_METRIC_EXPORT_INTERVAL`, …).
    fn install() -> Result<Self, Failure> {
        let name = env::var("OTEL_SERVICE_NAME").unwrap_or_else(|_| SERVICE.to_owned());
        let resource = Resource::builder().with_service_name(name).build();
        let exporter = SpanExporter::builder().with_http().build()?;
        let spans = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.clone())
            .build();
        let exporter = MetricExporter::builder().with_http().build()?;
        let metrics =
            SdkMeterProvider::builder().with_periodic_exporter(exporter).with_resource(resource).build();
        let telemetry = Self { spans, metrics };
        telemetry.trace()?;
        telemetry.measure()?;
        Ok(telemetry)
    }

    /// The spans go to the collector, and the events also to the log.
    fn trace(&self) -> Result<(), Failure> {
        // The spans of lockkeeper have the level DEBUG; the name covers those of lockkeeper_core as well. No
        // other crate's spans: those of the exporter's own client would make spans without end.
        let exported = Targets::new()
            .with_target("lockkeeper", LevelFilter::DEBUG)
            .with_target(module_path!(), LevelFilter::DEBUG);
        let to_collector = tracing_opentelemetry::layer().with_tracer(self.spans.tracer("lockkeeper"));
        let logged = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG));
        let to_log =
            tracing_subscriber::fmt::layer().with_ansi(io::stderr().is_terminal()).with_writer(io::stderr);
        tracing_subscriber::registry()
            .with(to_collector.with_filter(exported))
            .with(to_log.with_filter(logged))
            .try_init()?;
        Ok(())
    }

    /// lockkeeper measures by the facade `metrics`. The recorder makes instruments of OpenTelemetry of that.
    fn measure(&self) -> Result<(), Failure> {
        let meter = self.metrics.meter("lockkeeper");
        let mut recorder = OpenTelemetryRecorder::new(OpenTelemetryMetrics::new(meter));
        let in_seconds = lockkeeper::metrics::ALL.into_iter().filter(|name| name.ends_with("_seconds"));
        recorder.set_histogram_bounds_mut(in_seconds, &BUCKETS);
        metrics::set_global_recorder(recorder).map_err(io::Error::other)?;
        // Before the first measurement: an instrument has the unit and the help with which it was made.
        lockkeeper::metrics::describe();
        Ok(())
    }

    /// Sends what has not been sent. Each of the three steps waits at most five seconds for a collector that
    /// does not answer: the whole takes at most fifteen.
    fn flush(self) {
        // `shutdown` alone also sends the last spans. But it says nothing if they do not arrive.
        if let Err(error) = self.spans.force_flush().and_then(|()| self.spans.shutdown()) {
            tracing::warn!(%error, "the last spans did not reach the collector");
        }
        if let Err(error) = self.metrics.shutdown() {
            tracing::warn!(%error, "the last metrics did not reach the collector");
        }
    }
}
