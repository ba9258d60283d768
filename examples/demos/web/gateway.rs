//! Three processes serve HTTP with a limit for each customer, and no customer gets more than its limit.
//!
//! The processes are a gateway: callers choose one of them for each call. A [`RateLimitLayer`] limits each
//! customer over all processes, and answers 429 with `Retry-After` above the limit. One process is killed in
//! the run; its callers go on with the others.
//!
//! Each process tells the leading one of each call that it admits, with the time of the boot clock, which all
//! processes of a machine share. From this record the leading process counts the calls above the limit of a
//! window (`over`). With `--naive` each process limits by itself, in memory.
//!
//! `cargo run --example gateway`, or `-- --naive`, or `-- --connect host:port,…`

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use axum::{Extension, Router};
use clap::{Parser, value_parser};
use comfy_table::{CellAlignment, Table, presets};
use hyper::Request;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use lockkeeper::{Admission, BootInstant, ConnectionManager, KeyedRateLimiter};
use lockkeeper_demos::fixture::{Common, Example, Failure, Fixture, Verdict, Worker, play};
use lockkeeper_tower::RateLimitLayer;
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Limits each customer over three processes that serve HTTP, one of which is killed.
#[derive(Debug, Parser)]
#[command(name = "gateway")]
struct Gateway {
    /// How many processes serve
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(2..=64))]
    processes: u32,

    /// How many calls of a customer are admitted in any second
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u32).range(1..=1_000))]
    limit: u32,

    /// Let each process limit by itself, in memory, to see what the layer is good for
    #[arg(long)]
    naive: bool,

    #[command(flatten)]
    common: Common,
}

const CUSTOMERS: [&str; 4] = ["anna", "bert", "cleo", "dana"];
const WINDOW: Duration = Duration::from_secs(1);

/// A call begins within this time after its admission was asked for, or is not served.
const GRACE: Duration = Duration::from_millis(200);

/// Between two calls of a customer.
const REST: Duration = Duration::from_millis(5);

/// So many times the limit is admitted for each customer before the kill, and again after it.
const WINDOWS: usize = 3;

/// The messages of a process to the leading one.
#[derive(Debug, Serialize, Deserialize)]
enum News {
    /// It serves at this address.
    Serves(SocketAddr),
    /// It admits a call of this customer, at this time of the boot clock in microseconds.
    Admits { customer: String, at: u64 },
}

fn main() -> ExitCode {
    play::<Gateway>()
}

/// The calls of each customer in the window that is ending now.
type InMemory = BTreeMap<String, VecDeque<BootInstant>>;

/// What the handler of a process knows.
#[derive(Clone)]
struct Handler {
    manager: ConnectionManager,
    /// The record, and how the handler learns that its call is in it.
    record: mpsc::UnboundedSender<(News, oneshot::Sender<()>)>,
    /// With `--naive`: the admitted calls of each customer.
    in_memory: Option<Arc<Mutex<InMemory>>>,
    limit: usize,
}

/// Serves a call, and has it recorded first.
async fn serve(
    State(handler): State<Handler>,
    admission: Option<Extension<Arc<Admission>>>,
    headers: HeaderMap,
) -> StatusCode {
    let Some(customer) = customer(&headers) else { return StatusCode::UNAUTHORIZED };
    let now = handler.manager.now();
    let is_admitted = match (&handler.in_memory, admission) {
        (Some(in_memory), _) => {
            admit_in_memory(in_memory.lock().await.entry(customer.clone()).or_default(), handler.limit, now)
        }
        // After a pause since the admission the call may not begin any more.
        (None, Some(Extension(admission))) => now < admission.fresh_until(),
        (None, None) => false,
    };
    if !is_admitted {
        return StatusCode::TOO_MANY_REQUESTS;
    }
    let since_boot = now.since(BootInstant::at(Duration::ZERO));
    let at = u64::try_from(since_boot.as_micros()).unwrap_or_default();
    let (recorded, is_recorded) = oneshot::channel();
    let is_sent = handler.record.send((News::Admits { customer, at }, recorded)).is_ok();
    if is_sent && is_recorded.await.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

fn customer(headers: &HeaderMap) -> Option<String> {
    headers.get("x-customer").and_then(|name| name.to_str().ok()).map(str::to_owned)
}

/// A window in the memory of one process.
fn admit_in_memory(admitted: &mut VecDeque<BootInstant>, limit: usize, now: BootInstant) -> bool {
    while admitted.front().is_some_and(|first| now.since(*first) >= WINDOW) {
        admitted.pop_front();
    }
    if admitted.len() >= limit {
        return false;
    }
    admitted.push_back(now);
    true
}

/// What a customer got.
#[derive(Debug, Default)]
struct Served {
    calls: u64,
    admitted: u64,
    refused: u64,
    unavailable: u64,
    /// Calls without an answer: their process was killed.
    unanswered: u64,
}

/// The calls of a customer to one process after the other, until they are to stop.
async fn call_all(customer: &str, addresses: &[SocketAddr], stop: watch::Receiver<bool>) -> Served {
    let mut served = Served::default();
    let mut connections: Vec<Option<SendRequest<String>>> = addresses.iter().map(|_| None).collect();
    while !*stop.borrow() {
        for (address, connection) in addresses.iter().zip(&mut connections) {
            match call(*address, connection, customer).await {
                Ok(status) => {
                    served.calls += 1;
                    match status {
                        StatusCode::OK => served.admitted += 1,
                        StatusCode::TOO_MANY_REQUESTS => served.refused += 1,
                        _ => served.unavailable += 1,
                    }
                }
                Err(_) => {
                    *connection = None;
                    served.unanswered += 1;
                }
            }
            sleep(REST).await;
        }
    }
    served
}

async fn call(
    address: SocketAddr,
    connection: &mut Option<SendRequest<String>>,
    customer: &str,
) -> io::Result<StatusCode> {
    let sender = match connection {
        Some(sender) => sender,
        None => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
            let (sender, serving) = handshake.map_err(io::Error::other)?;
            tokio::spawn(serving);
            connection.insert(sender)
        }
    };
    sender.ready().await.map_err(io::Error::other)?;
    let request = Request::builder().uri("/").header("host", "gateway").header("x-customer", customer);
    let request = request.body(String::new()).map_err(io::Error::other)?;
    Ok(sender.send_request(request).await.map_err(io::Error::other)?.status())
}

/// The times at which the calls of each customer were admitted, by the record of all processes.
type Record = BTreeMap<String, Vec<u64>>;

/// The number of calls with a whole limit of calls of less than a window before them.
fn over(times: &[u64], limit: usize) -> usize {
    let mut times = times.to_vec();
    times.sort_unstable();
    let window = WINDOW.as_micros();
    times
        .iter()
        .zip(times.iter().skip(limit))
        .filter(|(one, other)| u128::from(*other - *one) < window)
        .count()
}

impl Gateway {
    fn limit(&self) -> usize {
        self.limit as usize
    }

    /// Reads the record until each customer has been admitted this many times since it was `before`.
    async fn each_admitted(
        &self,
        fixture: &mut Fixture<News>,
        record: &mut Record,
        times: usize,
    ) -> Result<(), Failure> {
        let before: BTreeMap<&str, usize> =
            CUSTOMERS.iter().map(|customer| (*customer, record.get(*customer).map_or(0, Vec::len))).collect();
        let is_behind = |record: &Record| {
            before.iter().any(|(customer, before)| record.get(*customer).map_or(0, Vec::len) < before + times)
        };
        while is_behind(record) {
            let Some((_, news)) = fixture.next().await? else { break };
            keep(record, news);
        }
        Ok(())
    }
}

fn keep(record: &mut Record, news: News) {
    if let News::Admits { customer, at } = news {
        record.entry(customer).or_default().push(at);
    }
}

impl Example for Gateway {
    type News = News;

    /// The turn of a killed process ends with its session.
    const SESSION: Duration = Duration::from_secs(1);

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        let (record, mut recorded) = mpsc::unbounded_channel();
        let in_memory = self.naive.then(Arc::default);
        let handler = Handler { manager: worker.manager().clone(), record, in_memory, limit: self.limit() };
        let mut router = Router::new().route("/", get(serve)).with_state(handler);
        if !self.naive {
            let path = worker.path("limits")?;
            let limiters = KeyedRateLimiter::new(worker.manager(), path, self.limit, WINDOW)?;
            let limits = RateLimitLayer::keyed(limiters.with_grace(GRACE), |request| {
                Some(customer(&request.headers).unwrap_or_else(|| "unknown".to_owned()))
            });
            router = router.layer(limits);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        worker.tell(&News::Serves(listener.local_addr()?))?;
        let recording = async {
            while let Some((news, is_recorded)) = recorded.recv().await {
                worker.tell(&news)?;
                // A caller that has gone away does not wait for it.
                let _ = is_recorded.send(());
            }
            Ok(())
        };
        tokio::select! {
            biased;
            served = axum::serve(listener, router) => Ok(served?),
            recorded = recording => recorded,
            _stop = worker.hear::<bool>() => Ok(()),
        }
    }

    async fn lead(&self, fixture: &mut Fixture<News>) -> Result<Verdict, Failure> {
        fixture.start(self.processes).await?;
        let (mut addresses, mut record) = (Vec::new(), Record::new());
        while addresses.len() < self.processes as usize {
            let Some((_, News::Serves(address))) = fixture.next().await? else { break };
            addresses.push(address);
        }
        let how = if self.naive { "each process limits by itself" } else { "over all processes together" };
        println!(
            "{} processes, {} calls of a customer in any {WINDOW:?}, {how}",
            addresses.len(),
            self.limit
        );

        let (stop, stopped) = watch::channel(false);
        let mut callers = JoinSet::new();
        for customer in CUSTOMERS {
            let (addresses, stopped) = (addresses.clone(), stopped.clone());
            callers.spawn(async move { (customer, call_all(customer, &addresses, stopped).await) });
        }
        let enough = self.limit() * WINDOWS;
        self.each_admitted(fixture, &mut record, enough).await?;
        println!("process 1 is killed");
        fixture.kill(1)?;
        self.each_admitted(fixture, &mut record, enough).await?;
        stop.send_replace(true);
        let mut all: BTreeMap<&str, Served> = BTreeMap::new();
        while let Some(called) = callers.join_next().await {
            let (customer, served) = called.map_err(io::Error::other)?;
            all.insert(customer, served);
        }
        fixture.tell_all(&true).await;
        for (_, news) in fixture.rest().await? {
            keep(&mut record, news);
        }
        Ok(self.verdict(&all, &record))
    }
}

impl Gateway {
    /// The table of what each customer got, and the sums.
    fn verdict(&self, all: &BTreeMap<&str, Served>, record: &Record) -> Verdict {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_header(["customer", "calls", "admitted", "refused (429)", "503", "no answer", "over"]);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let (mut calls, mut admitted, mut over_all) = (0, 0, 0);
        for (customer, served) in all {
            let times = record.get(*customer).map_or(&[][..], Vec::as_slice);
            let over = over(times, self.limit());
            let numbers =
                [served.calls, served.admitted, served.refused, served.unavailable, served.unanswered];
            let numbers = numbers.map(|number| number.to_string());
            table.add_row([(*customer).to_owned()].into_iter().chain(numbers).chain([over.to_string()]));
            calls += served.calls;
            admitted += times.len();
            over_all += over;
        }
        println!("{table}");
        let is_kept = over_all == 0 && admitted > 0;
        Verdict::line(is_kept, format!("calls={calls} admitted={admitted} over={over_all}"))
    }
}
