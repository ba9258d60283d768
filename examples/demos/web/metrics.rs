//! Processes that contend for a lock, and serve Prometheus what it costs them.
//!
//! Each process installs a recorder, and the feature `metrics` of lockkeeper does the rest: waits, holds,
//! losses, sessions. A small HTTP service renders it at `/metrics`. The first process scrapes them all, shows
//! one, and compares what it read with what the processes have counted themselves.
//!
//! `cargo run --example metrics`, or `-- --seconds 600` and `curl` on an address it prints, or `-- --connect
//! host:port,…`

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, value_parser};
use hyper::body::Body;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use lockkeeper::metrics::{WAIT_SECONDS, describe};
use lockkeeper::{BootInstant, Mutex};
use lockkeeper_demos::fixture::{Common, Example, Failure, Fixture, Verdict, Worker, patiently, play};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};

/// Serves what waiting for a lock and holding it costs, as Prometheus reads it.
#[derive(Debug, Parser)]
#[command(name = "metrics")]
struct Metrics {
    /// How many processes contend
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=64))]
    processes: u32,

    /// For how long
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 2,
        value_parser = value_parser!(u64).range(1..=86_400)
    )]
    seconds: u64,

    #[command(flatten)]
    common: Common,
}

/// The upper ends of the histograms' buckets, in seconds: from a round trip to a session timeout.
const BUCKETS: [f64; 8] = [0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0];

/// The pause between two upkeeps of the recorder.
const UPKEEP: Duration = Duration::from_secs(5);

/// How long the lock is held each time.
const WORK: Duration = Duration::from_millis(5);

/// The messages of a process to the leading one.
#[derive(Debug, Serialize, Deserialize)]
enum News {
    /// Its metrics are served there.
    Serves(SocketAddr),
    /// It has held the lock this number of times, and serves until its input ends.
    Had(u64),
}

fn main() -> ExitCode {
    play::<Metrics>()
}

/// From here on everything is recorded.
fn install() -> Result<PrometheusHandle, Failure> {
    let seconds = Matcher::Suffix("_seconds".to_owned());
    let builder = PrometheusBuilder::new().set_buckets_for_metric(seconds, &BUCKETS);
    let recorder = builder.map_err(io::Error::other)?.build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(io::Error::other)?;
    describe();
    Ok(handle)
}

/// Puts the samples of histograms into their buckets, until the runtime is dropped: without this every sample
/// is kept until the next scrape.
async fn keep_up(recorded: PrometheusHandle) {
    let mut timer = tokio::time::interval(UPKEEP);
    loop {
        timer.tick().await;
        recorded.run_upkeep();
    }
}

/// Serves every connection until the runtime is dropped.
async fn serve(listener: TcpListener, recorded: PrometheusHandle) {
    while let Ok((stream, _)) = listener.accept().await {
        let recorded = recorded.clone();
        let answer = service_fn(move |_| {
            let text = recorded.render();
            async move { Ok::<_, Infallible>(Response::new(text)) }
        });
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
        tokio::spawn(connection);
    }
}

/// The metrics, as Prometheus would read them.
async fn scrape(address: SocketAddr) -> Result<String, Failure> {
    let stream = TcpStream::connect(address).await?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut service, connection) = handshake.map_err(io::Error::other)?;
    tokio::spawn(connection);
    let request = Request::builder().uri("/metrics").header("host", "localhost").body(String::new());
    let answer = service.send_request(request.map_err(io::Error::other)?).await.map_err(io::Error::other)?;
    let (mut body, mut text) = (answer.into_body(), Vec::new());
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        text.extend(frame.map_err(io::Error::other)?.into_data().unwrap_or_default());
    }
    String::from_utf8(text).map_err(|error| io::Error::other(error).into())
}

/// How many waits were granted, of all recipes.
fn granted(scraped: &str) -> u64 {
    let of_waits = scraped.lines().filter(|line| line.starts_with(&format!("{WAIT_SECONDS}_count")));
    let granted = of_waits.filter(|line| line.contains("outcome=\"granted\""));
    granted.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

impl Example for Metrics {
    type News = News;

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        let recorded = install()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        worker.tell(&News::Serves(listener.local_addr()?))?;
        tokio::spawn(keep_up(recorded.clone()));
        tokio::spawn(serve(listener, recorded));

        let mutex = Mutex::new(worker.manager(), worker.path("contended")?)?;
        let (begun, mut had) = (BootInstant::now(), 0);
        while BootInstant::now().since(begun) < Duration::from_secs(self.seconds) {
            let guard = patiently(|| mutex.acquire()).await?;
            had += 1;
            tokio::time::sleep(WORK).await;
            // lockkeeper continues to delete the node.
            let _ = guard.release().await;
        }
        worker.tell(&News::Had(had))?;
        worker.hear::<String>().await.map(drop)
    }

    async fn lead(&self, fixture: &mut Fixture<News>) -> Result<Verdict, Failure> {
        fixture.start(self.processes).await?;
        let (mut addresses, mut done, mut had) = (Vec::new(), 0, 0);
        while done < self.processes {
            match fixture.next().await? {
                Some((process, News::Serves(address))) => {
                    println!("process {process} serves http://{address}/metrics");
                    addresses.push(address);
                }
                Some((_, News::Had(times))) => (done, had) = (done + 1, had + times),
                None => return Err(Failure::Other("a process ended too soon".to_owned())),
            }
        }
        let (mut read, mut shown) = (0, String::new());
        for address in &addresses {
            shown = scrape(*address).await?;
            read += granted(&shown);
        }
        println!("\nthe last one, scraped:\n\n{shown}");
        fixture.tell_all(&"end").await;
        fixture.rest().await?;
        let numbers = format!("{} services scraped; {read} grants read of {had} counted", addresses.len());
        Ok(Verdict::of(read == had && had > 0, numbers))
    }
}
