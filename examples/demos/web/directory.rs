//! A service in several processes, and a client that balances over them: no call fails when a process is
//! killed, or drained and replaced.
//!
//! Each process of the service registers itself by a [`Discovery`]. The client is the first process. It
//! chooses an instance for each call, and tries a call that failed again on another instance. Meanwhile
//! processes are killed, and replaced as in a deployment: the new one starts, and the old one drains,
//! finishes its calls and ends.
//!
//! `cargo run --example directory`, or `-- --naive`, or `-- --json`, or `-- --connect host:port,…`

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, value_parser};
use hyper::body::Body;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use lockkeeper::Discovery;
use lockkeeper::discovery::{Balancer, FailurePolicy, Instance, InstanceState, Strategy};
use lockkeeper_demos::fixture::{Common, Example, Failure, Fixture, Verdict, Worker, play};
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Balances calls over the processes of a service, while some are killed and others are replaced.
#[derive(Debug, Parser)]
#[command(name = "directory")]
struct Directory {
    /// How many processes serve
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(2..=64))]
    processes: u32,

    /// How many callers the client has
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=64))]
    callers: u32,

    /// How many processes are killed (SIGKILL)
    #[arg(long, value_name = "N", default_value_t = 2)]
    kills: u32,

    /// How many processes are drained
    #[arg(long, value_name = "N", default_value_t = 2)]
    drains: u32,

    /// Read the instances once, and try each call once, to see what the view and the second try are good for
    #[arg(long)]
    naive: bool,

    /// Print nothing but the result, as an object in JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    common: Common,
}

const SERVICE: &str = "greeter";

/// How long a process works for a call.
const WORK: Duration = Duration::from_millis(2);

/// Between the calls of a caller.
const PAUSE: Duration = Duration::from_millis(5);

/// A process that drains ends when no call has come for this time, or after the longest.
const QUIET: Duration = Duration::from_millis(300);
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// How long a caller waits for an instance, and for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// So many calls of the client follow each kill and each drain.
const CALLS: u64 = 100;

/// The messages of a process to the first one.
#[derive(Debug, Serialize, Deserialize)]
enum News {
    /// It is registered with this id.
    Serves(String),
    /// It has drained, and ends.
    Drained { served: u64 },
}

/// The calls that a process has.
#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    begun: u64,
    ended: u64,
}

/// The result, and on the way to it what was done so far.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Outcome {
    calls: u64,
    failed: u64,
    #[serde(skip)]
    retries: u64,
    kills: u32,
    drains: u32,
}

fn main() -> ExitCode {
    play::<Directory>()
}

/// Serves every connection until the runtime is dropped.
async fn serve(listener: TcpListener, id: String, calls: Arc<watch::Sender<Calls>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (id, calls) = (id.clone(), Arc::clone(&calls));
        let answer = service_fn(move |_| {
            let (greeting, calls) = (format!("hello from {id}"), Arc::clone(&calls));
            calls.send_modify(|calls| calls.begun += 1);
            async move {
                sleep(WORK).await;
                calls.send_modify(|calls| calls.ended += 1);
                Ok::<_, Infallible>(Response::new(greeting))
            }
        });
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
        tokio::spawn(connection);
    }
}

/// One call of one instance.
async fn call(instance: &Instance) -> io::Result<String> {
    let address = (instance.address().unwrap_or_default(), instance.port().unwrap_or_default());
    let stream = TcpStream::connect(address).await?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut service, connection) = handshake.map_err(io::Error::other)?;
    tokio::spawn(connection);
    let request = Request::builder().uri("/").header("host", instance.name()).body(String::new());
    let answer = service.send_request(request.map_err(io::Error::other)?).await.map_err(io::Error::other)?;
    if answer.status() != StatusCode::OK {
        return Err(io::Error::other(answer.status().to_string()));
    }
    let (mut body, mut text) = (answer.into_body(), Vec::new());
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        text.extend(frame.map_err(io::Error::other)?.into_data().unwrap_or_default());
    }
    String::from_utf8(text).map_err(io::Error::other)
}

/// Calls an instance, and another one if that fails: a greeting may be asked for twice. Returns how often it
/// tried again, or `None` if no instance answers.
async fn call_any(balancer: &Balancer) -> Option<u64> {
    for retries in 0..10 {
        let instance = balancer.choose_timeout(PATIENCE).await.ok()?;
        match timeout(PATIENCE, call(&instance)).await {
            Ok(Ok(_)) => return Some(retries),
            Ok(Err(_)) | Err(_) => balancer.report_failure(&instance),
        }
    }
    None
}

impl Directory {
    fn say(&self, text: &str) {
        if !self.json {
            println!("{text}");
        }
    }

    /// Starts the callers, which end with the returned guard.
    fn call(&self, balancer: &Balancer, outcome: &Arc<watch::Sender<Outcome>>) -> tokio::task::JoinSet<()> {
        let (mut callers, known) = (tokio::task::JoinSet::new(), Arc::new(balancer.view().instances()));
        for caller in 0..self.callers as usize {
            let (balancer, outcome, known) = (balancer.clone(), Arc::clone(outcome), Arc::clone(&known));
            let naive = self.naive;
            callers.spawn(async move {
                // For ever: there are as many as processes.
                for next in known.iter().cycle().skip(caller) {
                    let answered = match naive {
                        true => call(next).await.ok().map(|_| 0),
                        false => call_any(&balancer).await,
                    };
                    outcome.send_modify(|outcome| {
                        outcome.calls += 1;
                        outcome.failed += u64::from(answered.is_none());
                        outcome.retries += answered.unwrap_or_default();
                    });
                    sleep(PAUSE).await;
                }
            });
        }
        callers
    }

    /// Waits until new processes serve, and returns their numbers.
    async fn started(&self, fixture: &mut Fixture<News>, count: u32) -> Result<Vec<u32>, Failure> {
        fixture.start(count).await?;
        let mut numbers = Vec::new();
        while numbers.len() < count as usize {
            match fixture.next().await? {
                Some((number, News::Serves(id))) => {
                    self.say(&format!("process {number} serves as {id}"));
                    numbers.push(number);
                }
                Some((number, News::Drained { served })) => self.drained(number, served),
                None => return Err(Failure::Other("a process ended too soon".to_owned())),
            }
        }
        Ok(numbers)
    }

    fn drained(&self, number: u32, served: u64) {
        self.say(&format!("process {number} has drained after {served} calls, and ends"));
    }

    /// Kills and drains in turn, each time with calls of the client behind.
    async fn disturb(
        &self,
        fixture: &mut Fixture<News>,
        mut serving: Vec<u32>,
        outcome: &Arc<watch::Sender<Outcome>>,
    ) -> Result<(), Failure> {
        let (mut kills, mut drains) = (self.kills, self.drains);
        while kills + drains > 0 {
            let oldest = serving.remove(0);
            if kills >= drains {
                kills -= 1;
                fixture.kill(oldest)?;
                self.say(&format!("process {oldest} is killed"));
                outcome.send_modify(|outcome| outcome.kills += 1);
                serving.extend(self.started(fixture, 1).await?);
            } else {
                drains -= 1;
                serving.extend(self.started(fixture, 1).await?);
                fixture.tell(oldest, &"drain").await;
                while let Some((number, news)) = fixture.next().await? {
                    let News::Drained { served } = news else { continue };
                    self.drained(number, served);
                    break;
                }
                outcome.send_modify(|outcome| outcome.drains += 1);
            }
            let goal = outcome.borrow().calls + CALLS;
            // The sender is ours.
            let _ = outcome.subscribe().wait_for(|outcome| outcome.calls >= goal).await;
        }
        Ok(())
    }
}

impl Example for Directory {
    type News = News;

    /// A killed process is in the view of the client for this time and a tick.
    const SESSION: Duration = Duration::from_secs(1);

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let id = format!("{SERVICE}-{}", worker.number());
        let instance = Instance::new(SERVICE, address.ip().to_string(), address.port()).with_id(&id);
        let calls = Arc::new(watch::Sender::new(Calls::default()));
        tokio::spawn(serve(listener, id.clone(), Arc::clone(&calls)));

        let discovery = Discovery::new(worker.manager(), worker.path("services")?)?;
        let registration = discovery.register(instance)?;
        registration.registered().await?;
        worker.tell(&News::Serves(id))?;

        let _drain: String = worker.hear().await?;
        registration.set_state(InstanceState::Draining).await?;
        // A client that has not learned of it yet may still call.
        let mut seen = calls.subscribe();
        let quiet = async {
            while timeout(QUIET, seen.changed()).await.is_ok() {}
            seen.wait_for(|calls| calls.begun == calls.ended).await.is_ok()
        };
        let _ = timeout(DRAIN_MAX, quiet).await;
        registration.release().await?;
        let served = calls.borrow().ended;
        worker.tell(&News::Drained { served })
    }

    async fn lead(&self, fixture: &mut Fixture<News>) -> Result<Verdict, Failure> {
        let discovery = Discovery::new(fixture.manager(), fixture.path("services")?)?;
        // One failure is enough: there are others to call.
        let policy = FailurePolicy::new(1, Duration::from_secs(30));
        let balancer = discovery.balancer_with(SERVICE, Strategy::RoundRobin, policy)?;
        let serving = self.started(fixture, self.processes).await?;
        balancer.view().sync().await?;
        if balancer.view().instances().len() != serving.len() {
            return Err(Failure::Other(format!(
                "the client sees {inspection}",
                inspection = discovery.inspect().await?
            )));
        }

        let outcome = Arc::new(watch::Sender::new(Outcome::default()));
        let callers = self.call(&balancer, &outcome);
        self.disturb(fixture, serving, &outcome).await?;
        drop(callers);
        let inspection = discovery.inspect().await?;
        self.say(&format!("{inspection}"));
        fixture.close().await;

        let outcome = *outcome.borrow();
        self.say(&format!("{} calls were tried again on another instance", outcome.retries));
        let holds = outcome.failed == 0 && outcome.calls > 0;
        Ok(Verdict::line(
            holds,
            if self.json { serde_json::to_string(&outcome)? } else { outcome.to_string() },
        ))
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { calls, failed, kills, drains, .. } = self;
        write!(formatter, "calls={calls} failed={failed} kills={kills} drains={drains}")
    }
}
