//! Several processes elect a leader, again and again, and each leader writes a heartbeat that only a leader
//! can write.
//!
//! The leader of an [`Election`] writes its fencing token into ZooKeeper by `leadership.txn()`, which the
//! servers commit only while it leads. Then it resigns, or is killed (`--kill`). The first process measures
//! how long it takes until the next one leads: after a resignation a round trip, after a kill the session
//! timeout and a tick.
//!
//! `cargo run --example leader`, or `-- --kill`, or `-- --json`, or `-- --connect host:port,…`

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, value_parser};
use lockkeeper::znodes::Version;
use lockkeeper::{BootInstant, Election, Error};
use lockkeeper_demos::fixture::{Common, Example, Failure, Fixture, Verdict, Worker, play};
use serde::{Deserialize, Serialize};

/// The node of the heartbeat.
const HEARTBEAT: &str = "heartbeat";

/// Elects one leader after the other among several processes, and measures the time without a leader.
#[derive(Debug, Parser)]
#[command(name = "leader")]
struct Leader {
    /// How many processes take part
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(2..=64))]
    processes: u32,

    /// How many leaders end their term before the result
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..=1_000))]
    terms: u32,

    /// Kill each leader (SIGKILL), instead of letting it resign; another process is started in its place
    #[arg(long)]
    kill: bool,

    /// Print nothing but the result, as an object in JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    common: Common,
}

/// The messages of a process to the first one.
#[derive(Debug, Serialize, Deserialize)]
enum News {
    /// It leads, has written its heartbeat, and waits for the line to resign.
    Leads { token: u64 },
    /// The servers refused its heartbeat: it had lost its leadership.
    Refused,
}

/// The result.
#[derive(Debug, Default, Serialize)]
struct Outcome {
    terms: u32,
    at_once_max: usize,
    kills: u32,
    failover_p50_ms: u64,
    failover_max_ms: u64,
}

fn main() -> ExitCode {
    play::<Leader>()
}

impl Leader {
    fn say(&self, text: &str) {
        if !self.json {
            println!("{text}");
        }
    }

    /// Waits for the next leader, and checks that its heartbeat is the newest.
    async fn next_leader(
        &self,
        fixture: &mut Fixture<News>,
        newest: &mut u64,
    ) -> Result<Option<u32>, Failure> {
        while let Some((process, news)) = fixture.next().await? {
            let News::Leads { token } = news else { continue };
            let written = String::from_utf8_lossy(&fixture.read(HEARTBEAT).await?).into_owned();
            if token <= *newest || written != token.to_string() {
                let text = format!(
                    "process {process} leads by {token} after {newest}, and the heartbeat is {written}"
                );
                return Err(Failure::Other(text));
            }
            *newest = token;
            return Ok(Some(process));
        }
        Ok(None)
    }
}

impl Example for Leader {
    type News = News;

    /// A killed leader is replaced after this time and a tick.
    const SESSION: Duration = Duration::from_secs(1);

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        let id = format!("process {}", worker.number());
        let election = Election::new(worker.manager(), worker.path("election")?, id)?;
        let heartbeat = &worker.path(HEARTBEAT)?;
        // Each term ends with the failure that ends the process, or continues with the next campaign.
        let ended = election.lead(async |leadership| {
            let token = leadership.fencing_token().as_u64();
            let beat = leadership.txn().set(heartbeat, token.to_string(), Version::Any).commit().await;
            let news = match beat {
                Ok(_) => News::Leads { token },
                Err(error) if error.is_lost() => News::Refused,
                Err(error) => return ControlFlow::Break(Error::from(error).into()),
            };
            if let Err(error) = worker.tell(&news) {
                return ControlFlow::Break(error);
            }
            match worker.hear::<bool>().await {
                Ok(_resign) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            }
        });
        Err(ended.await?)
    }

    async fn lead(&self, fixture: &mut Fixture<News>) -> Result<Verdict, Failure> {
        fixture.set_up(HEARTBEAT, b"").await?;
        fixture.start(self.processes).await?;
        let (mut leading, mut failovers) = (BTreeSet::new(), Vec::new());
        let (mut result, mut newest) = (Outcome::default(), 0);
        let mut ended: Option<BootInstant> = None;
        while let Some(process) = self.next_leader(fixture, &mut newest).await? {
            leading.insert(process);
            result.at_once_max = result.at_once_max.max(leading.len());
            if let Some(ended) = ended {
                let failover = BootInstant::now().since(ended);
                self.say(&format!("process {process} leads, {failover:.1?} after the end of the last term"));
                failovers.push(u64::try_from(failover.as_millis()).unwrap_or(u64::MAX));
            }
            if self.kill && ended.is_some() {
                // In the place of the killed one, which has been replaced as leader.
                fixture.start(1).await?;
            }
            if result.terms == self.terms {
                break;
            }
            result.terms += 1;
            leading.remove(&process);
            ended = Some(BootInstant::now());
            if self.kill {
                fixture.kill(process)?;
                result.kills += 1;
            } else {
                fixture.tell(process, &true).await;
            }
        }
        failovers.sort_unstable();
        result.failover_p50_ms = failovers.get(failovers.len() / 2).copied().unwrap_or_default();
        result.failover_max_ms = failovers.last().copied().unwrap_or_default();
        let holds = result.at_once_max == 1 && failovers.len() == self.terms as usize;
        Ok(Verdict::line(holds, if self.json { serde_json::to_string(&result)? } else { result.to_string() }))
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { terms, at_once_max, kills, failover_p50_ms, failover_max_ms } = self;
        write!(
            formatter,
            "terms={terms} at_once_max={at_once_max} kills={kills} failover_p50_ms={failover_p50_ms} \
             failover_max_ms={failover_max_ms}"
        )
    }
}
