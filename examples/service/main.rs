//! A web service on lockkeeper: it sells the seats of trains, each seat once, however many processes of it
//! run.
//!
//! It shows what a service needs around a lock: a readiness probe that follows the session, metrics, an
//! endpoint that works under a lock and gives its fencing token to the store, and a shutdown in the right
//! order.
//!
//! ```text
//! cargo run --example service                             # prints its address; on an embedded server
//! curl -X POST http://127.0.0.1:PORT/trains/7/seats       # {"seat":1,"token":{"generation":0,"number":…}}
//! curl http://127.0.0.1:PORT/ready http://127.0.0.1:PORT/metrics
//! ```
//!
//! To run several processes, give all of them `--connect host:port,…` and the same `--store`.

mod routes;
mod store;

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use lockkeeper::ConnectionManager;
use lockkeeper_testserver::TestServer;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use self::routes::{Service, router};
use self::store::Store;

/// Sells seats over HTTP, each one once.
#[derive(Debug, Parser)]
#[command(name = "service")]
struct Options {
    /// The ensemble to use, as host:port,host:port/chroot [default: an embedded server, for this run]
    #[arg(long, value_name = "SERVERS")]
    connect: Option<String>,

    /// How long the ensemble keeps the session of a silent process, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    session_timeout: u64,

    /// The address to serve
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// The folder of the sales, common to all processes
    #[arg(long, value_name = "FOLDER", default_value = "target/service")]
    store: PathBuf,

    /// How long a sale takes, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 20)]
    work: u64,

    /// How long to serve after a signal, until every load balancer has seen that the process is not ready, in
    /// milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2_000)]
    drain: u64,

    /// How long running requests may take after that, and then the release of what is still held, in
    /// milliseconds
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    grace: u64,
}

type Failure = Box<dyn Error + Send + Sync>;

/// The upper ends of the histograms' buckets, in seconds: from a round trip to a session timeout.
const BUCKETS: [f64; 8] = [0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0];

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(0) => ExitCode::SUCCESS,
        Ok(cut_off) => {
            eprintln!("{cut_off} locks were still held");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("service: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until a signal, and shuts down. Returns the number of locks that were lost by that.
async fn run(options: Options) -> Result<u32, Failure> {
    let signals = signals()?;
    let metrics = record_metrics()?;
    let store = Store::open(&options.store)?;
    // Without an ensemble the example brings a server. Its drop ends it.
    let embedded = match options.connect {
        Some(_) => None,
        None => Some(TestServer::start().await?),
    };
    let servers = options.connect.clone().or_else(|| embedded.as_ref().map(TestServer::connect_string));
    let session_timeout = Duration::from_secs(options.session_timeout);
    let manager = ConnectionManager::builder(&servers.unwrap_or_default())
        .session_timeout(session_timeout)
        // The servers' `tickTime`: three seconds where it is not configured. They grant at least two ticks.
        .tick_time(Duration::from_secs(3).min(session_timeout / 2))
        .connect()
        .await?;

    let (drain, draining) = watch::channel(false);
    let work = Duration::from_millis(options.work);
    let service = Arc::new(Service::new(manager.clone(), store, metrics, work, draining));
    let listener = TcpListener::bind(options.listen).await?;
    println!("serving http://{}", listener.local_addr()?);

    let grace = Duration::from_millis(options.grace);
    serve_until(listener, service, drain, signals, Duration::from_millis(options.drain), grace).await?;
    // Last, when no request is left that may need a lock. A request that waits for one gets an error here.
    Ok(manager.shutdown_within(grace).await?)
}

/// The order of a shutdown: not ready, then no new connections, then no requests.
async fn serve_until(
    listener: TcpListener,
    service: Arc<Service>,
    drain: watch::Sender<bool>,
    signals: impl Future<Output = ()> + Send + 'static,
    drained_after: Duration,
    grace: Duration,
) -> Result<(), Failure> {
    let (closing, mut closed) = watch::channel(false);
    let shutdown = async move {
        signals.await;
        // 1. The probe says that this process gets no more requests. Those that come nevertheless are served.
        drain.send_replace(true);
        tokio::time::sleep(drained_after).await;
        closing.send_replace(true);
    };
    // 2. No connection is accepted any more, and running requests end.
    let serving = axum::serve(listener, router(service)).with_graceful_shutdown(shutdown);
    let overdue = async {
        // An error says that the sender is gone, which is at the same time.
        let _ = closed.wait_for(|is_closing| *is_closing).await;
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        biased;
        served = serving => served?,
        // 3. A request that takes too long loses its lock, and its future is dropped.
        () = overdue => eprintln!("service: requests were still running"),
    }
    Ok(())
}

/// Resolves at the first SIGTERM or SIGINT.
fn signals() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            biased;
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    })
}

/// Often enough that few samples gather.
const UPKEEP: Duration = Duration::from_secs(5);

/// Puts the samples of histograms into their buckets: without this every sample is kept until the next
/// scrape.
async fn keep_up(metrics: PrometheusHandle) {
    let mut timer = tokio::time::interval(UPKEEP);
    loop {
        timer.tick().await;
        metrics.run_upkeep();
    }
}

/// From here on everything is recorded.
fn record_metrics() -> Result<PrometheusHandle, Failure> {
    let seconds = Matcher::Suffix("_seconds".to_owned());
    let recorder = PrometheusBuilder::new().set_buckets_for_metric(seconds, &BUCKETS)?.build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(io::Error::other)?;
    lockkeeper::metrics::describe();
    tokio::spawn(keep_up(handle.clone()));
    Ok(handle)
}
