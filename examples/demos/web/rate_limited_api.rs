//! Several processes call a service that refuses calls above a rate, and none of them is refused.
//!
//! The service is a real one, over HTTP on loopback: it accepts a number of calls in any window of time, from
//! all callers together, and answers the others with 429. It knows nothing of ZooKeeper. The callers share
//! its quota by a [`RateLimiter`]. With `--no-limiter` each calls as it likes.
//!
//! `cargo run --example rate_limited_api`, or `-- --no-limiter`, or `-- --connect host:port,…`

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, value_parser};
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use lockkeeper::RateLimiter;
use lockkeeper_demos::fixture::{Common, Example, Failure, Fixture, Verdict, Worker, patiently, play};
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

/// Calls a service that refuses calls above a rate from several processes; none is refused.
#[derive(Debug, Parser)]
#[command(name = "rate_limited_api")]
struct RateLimitedApi {
    /// How many processes call
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(2..=64))]
    processes: u32,

    /// How many calls the service takes in any half second
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u32).range(1..=100))]
    quota: u32,

    /// For how long, in seconds
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u64).range(1..=3_600))]
    seconds: u64,

    /// Call without the limiter, to see what it is good for
    #[arg(long)]
    no_limiter: bool,

    #[command(flatten)]
    common: Common,
}

/// The service's window.
const WINDOW: Duration = Duration::from_millis(500);

/// The difference between our window and the service's. The service counts when a call arrives, we count when
/// it starts: one that was long in flight arrives closer to the next ones. This is for how long it may be.
const ROOM: Duration = Duration::from_millis(250);

/// Between two calls of a process.
const REST: Duration = Duration::from_millis(5);

/// The answers of the service to a process.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Answers {
    taken: u64,
    refused: u64,
    /// The number of admissions that arrived too late to be used.
    stale: u64,
}

fn main() -> ExitCode {
    play::<RateLimitedApi>()
}

impl RateLimitedApi {
    /// Waits until one more call may start, and returns the number of admissions that arrived too late.
    async fn wait_for_leave(&self, limiter: &RateLimiter) -> Result<u64, Failure> {
        let mut stale = 0;
        loop {
            let admission = patiently(|| limiter.admit()).await?;
            // Right before the call: leave does not keep.
            if admission.is_fresh() {
                return Ok(stale);
            }
            stale += 1;
        }
    }
}

impl Example for RateLimitedApi {
    type News = Answers;

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        let limiter = RateLimiter::new(worker.manager(), worker.path("limit")?, self.quota, WINDOW + ROOM)?;
        let mut service = connect(worker.hear().await?).await?;
        let mut answers = Answers::default();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(self.seconds) {
            if !self.no_limiter {
                answers.stale += self.wait_for_leave(&limiter).await?;
            }
            match call(&mut service).await? {
                StatusCode::TOO_MANY_REQUESTS => answers.refused += 1,
                _ => answers.taken += 1,
            }
            sleep(REST).await;
        }
        worker.tell(&answers)
    }

    async fn lead(&self, fixture: &mut Fixture<Answers>) -> Result<Verdict, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let desk = Desk { quota: self.quota as usize, taken: VecDeque::new() };
        tokio::spawn(serve(listener, Arc::new(Mutex::new(desk))));
        fixture.start(self.processes).await?;
        fixture.tell_all(&address).await;
        let how = if self.no_limiter { "as they like" } else { "by leave of a rate limiter" };
        println!("{} processes call http://{address} for {} s, {how}", self.processes, self.seconds);

        let mut all = Answers::default();
        for (process, Answers { taken, refused, stale }) in fixture.rest().await? {
            println!("process {process}: {taken} calls were taken, {refused} refused");
            all.taken += taken;
            all.refused += refused;
            all.stale += stale;
        }
        let Answers { taken, refused, stale } = all;
        if stale > 0 {
            println!("{stale} admissions arrived too late to be used, and were requested again");
        }
        Ok(Verdict::of(
            refused == 0 && taken > u64::from(self.quota),
            format!(
                "{taken} calls taken and {refused} refused (429) by a service that takes {} in any \
                 {WINDOW:?}",
                self.quota
            ),
        ))
    }
}

/// The service's side: when it took the calls of the window that is ending now.
#[derive(Debug)]
struct Desk {
    quota: usize,
    taken: VecDeque<Instant>,
}

impl Desk {
    fn take(&mut self) -> StatusCode {
        let now = Instant::now();
        while self.taken.front().is_some_and(|taken| now - *taken >= WINDOW) {
            self.taken.pop_front();
        }
        if self.taken.len() >= self.quota {
            return StatusCode::TOO_MANY_REQUESTS;
        }
        self.taken.push_back(now);
        StatusCode::OK
    }
}

/// Serves every connection until the runtime is dropped.
async fn serve(listener: TcpListener, desk: Arc<Mutex<Desk>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let desk = Arc::clone(&desk);
        let answer = service_fn(move |_| {
            let desk = Arc::clone(&desk);
            async move {
                let mut response = Response::new(String::new());
                *response.status_mut() = desk.lock().await.take();
                Ok::<_, Infallible>(response)
            }
        });
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
        tokio::spawn(connection);
    }
}

async fn connect(address: SocketAddr) -> Result<SendRequest<String>, Failure> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = handshake.map_err(io::Error::other)?;
    tokio::spawn(connection);
    Ok(sender)
}

async fn call(service: &mut SendRequest<String>) -> Result<StatusCode, Failure> {
    service.ready().await.map_err(io::Error::other)?;
    let request = Request::builder().uri("/").header("host", "localhost").body(String::new());
    let request = request.map_err(io::Error::other)?;
    Ok(service.send_request(request).await.map_err(io::Error::other)?.status())
}
