//! Several processes share 64 shards. Some are killed, others are added, and a table shows how the shards
//! move.
//!
//! Each process is a member of a [`Partition`]. It writes its number into the row of each shard that it
//! gets, by `item.txn()`, and empties the row before it gives the shard up. A process that finds a number
//! in the row of its new shard has found two owners, unless that other process was killed or has lost its
//! session. The first process counts how many shards moved, and how many had to: those of a killed process,
//! and the share of an added one.
//!
//! `cargo run --example shards`, or `-- --changes 6`, or `-- --json`, or `-- --connect host:port,…`

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, value_parser};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use lockkeeper::partition::{AssignedItem, ReleaseReason};
use lockkeeper::znodes::Version;
use lockkeeper::{BootInstant, Error, Partition};
use lockkeeper_demos::fixture::{Common, Example, Failure, Fixture, Verdict, Worker, play};
use serde::{Deserialize, Serialize};

/// The directory of the rows.
const ROWS: &str = "rows";
/// The partition.
const SHARDS: &str = "partition";

/// Shares shards among several processes, some of which are killed, and counts what moves.
#[derive(Debug, Parser)]
#[command(name = "shards")]
struct Shards {
    /// How many processes share the shards
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(2..=32))]
    processes: u32,

    /// How many shards there are
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u32).range(1..=1_000))]
    shards: u32,

    /// How many changes there are: a process is killed (kill -9), then one is added, and so on
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(0..=100))]
    changes: u32,

    /// Print nothing but the result, as an object in JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    common: Common,
}

/// The messages of a process to the first one.
#[derive(Debug, Serialize, Deserialize)]
enum News {
    /// It has a shard, and found this number in its row.
    Got { shard: String, before: Option<u32> },
    /// It is about to give up a shard.
    Gives { shard: String },
    /// It has lost a shard.
    Lost { shard: String },
}

/// What the first process has heard.
#[derive(Debug, Default)]
struct Heard {
    owners: BTreeMap<String, u32>,
    killed: BTreeSet<u32>,
    /// The shards that a process has lost with its session, and may still have in its rows.
    lost: BTreeSet<(String, u32)>,
    moves: usize,
    two_owners: usize,
}

/// The result.
#[derive(Debug, Serialize)]
struct Outcome {
    shards: u32,
    two_owners: usize,
    moves: usize,
    moves_min: usize,
    kills: u32,
    adds: u32,
    longest_ms: u64,
}

fn main() -> ExitCode {
    play::<Shards>()
}

fn name(shard: u32) -> String {
    format!("{shard:03}")
}

impl Heard {
    fn take(&mut self, process: u32, news: News) {
        match news {
            News::Got { shard, before } => {
                if let Some(before) = before.filter(|before| *before != process) {
                    let is_over =
                        self.killed.contains(&before) || self.lost.contains(&(shard.clone(), before));
                    self.two_owners += usize::from(!is_over);
                }
                self.moves += 1;
                self.owners.insert(shard, process);
            }
            News::Gives { shard } => self.forget(&shard, process),
            News::Lost { shard } => {
                self.forget(&shard, process);
                self.lost.insert((shard, process));
            }
        }
    }

    /// The news of two processes may overtake each other.
    fn forget(&mut self, shard: &str, process: u32) {
        if self.owners.get(shard) == Some(&process) {
            self.owners.remove(shard);
        }
    }

    fn share(&self, process: u32) -> usize {
        self.owners.values().filter(|owner| **owner == process).count()
    }
}

impl Shards {
    fn say(&self, text: &str) {
        if !self.json {
            println!("{text}");
        }
    }

    /// One line: how many shards each process has.
    fn show(&self, heard: &Heard, processes: &BTreeSet<u32>, what: &str) {
        let share = |process: &u32| format!("{process:>3} {:<24}", "▪".repeat(heard.share(*process).min(24)));
        let line: Vec<String> = processes.iter().map(share).collect();
        self.say(&format!("{what:<22}{}", line.join("")));
    }

    /// Hears the processes until each shard is where it belongs.
    async fn settle(
        &self,
        fixture: &mut Fixture<News>,
        heard: &mut Heard,
        processes: &BTreeSet<u32>,
        what: &str,
    ) -> Result<Duration, Failure> {
        let begun = BootInstant::now();
        let ids: Vec<String> = processes.iter().map(u32::to_string).collect();
        let belongs = |shard: u32| {
            let owner = Partition::owner_among(&name(shard), ids.iter().map(String::as_str));
            owner.and_then(|owner| owner.parse().ok())
        };
        let mut shown = 0;
        while (0..self.shards).any(|shard| heard.owners.get(&name(shard)).copied() != belongs(shard)) {
            let Some((process, news)) = fixture.next().await? else {
                return Err(Failure::Other("all processes have ended".to_owned()));
            };
            heard.take(process, news);
            if heard.moves / 8 > shown {
                shown = heard.moves / 8;
                self.show(heard, processes, "");
            }
        }
        self.show(heard, processes, what);
        Ok(BootInstant::now().since(begun))
    }
}

/// Works on a shard until it moves.
async fn serve(worker: &Worker, item: AssignedItem) -> Result<(), Failure> {
    let shard = item.item().to_owned();
    let row = worker.path(&format!("{ROWS}/{shard}"))?;
    let number = worker.number().to_string();
    let write =
        async |text: &str| item.txn().set(&row, text, Version::Any).commit().await.map_err(Error::from);
    let begin = async {
        let znodes = worker.znodes();
        let read = znodes.read(&row).await?;
        let before = read.and_then(|(data, _)| String::from_utf8_lossy(&data).parse().ok());
        write(&number).await?;
        worker.tell(&News::Got { shard: shard.clone(), before })?;
        Ok::<_, Failure>(())
    };
    let begun = begin.await;
    let is_lost = match begun {
        Ok(()) => item.release_requested().await == ReleaseReason::Lost || write("").await.is_err(),
        Err(_) if !item.is_valid() => true,
        Err(error) => return Err(error),
    };
    worker.tell(&if is_lost { News::Lost { shard } } else { News::Gives { shard } })?;
    Ok(())
}

impl Example for Shards {
    type News = News;

    /// The shards of a killed process move after this time and a tick.
    const SESSION: Duration = Duration::from_secs(1);

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        let partition = Partition::new(worker.manager(), worker.path(SHARDS)?)?;
        let mut member = partition.join(&worker.number().to_string())?;
        let mut serving = FuturesUnordered::new();
        loop {
            tokio::select! {
                item = member.next() => match item {
                    Some(item) => serving.push(serve(worker, item)),
                    None => return Ok(()),
                },
                Some(served) = serving.next() => served?,
            }
        }
    }

    async fn lead(&self, fixture: &mut Fixture<News>) -> Result<Verdict, Failure> {
        fixture.set_up(ROWS, b"").await?;
        for shard in 0..self.shards {
            fixture.set_up(&format!("{ROWS}/{}", name(shard)), b"").await?;
        }
        let partition = Partition::new(fixture.manager(), fixture.path(SHARDS)?)?;
        partition.add((0..self.shards).map(name)).await?;
        fixture.start(self.processes).await?;
        let mut processes: BTreeSet<u32> = (1..=self.processes).collect();
        let mut heard = Heard::default();
        self.settle(fixture, &mut heard, &processes, "at the beginning").await?;

        heard.moves = 0;
        let (mut moves_min, mut kills, mut adds) = (0, 0, 0);
        let mut longest = Duration::ZERO;
        for change in 0..self.changes {
            let lasted = if change % 2 == 0 {
                let Some(victim) = processes.pop_first() else { break };
                moves_min += heard.share(victim);
                heard.killed.insert(victim);
                heard.owners.retain(|_, owner| *owner != victim);
                kills += 1;
                fixture.kill(victim)?;
                self.settle(fixture, &mut heard, &processes, &format!("process {victim} is killed")).await?
            } else {
                let added = self.processes + adds + 1;
                adds += 1;
                processes.insert(added);
                fixture.start(1).await?;
                let lasted = self
                    .settle(fixture, &mut heard, &processes, &format!("process {added} is added"))
                    .await?;
                moves_min += heard.share(added);
                lasted
            };
            longest = longest.max(lasted);
        }
        let result = Outcome {
            shards: self.shards,
            two_owners: heard.two_owners,
            moves: heard.moves,
            moves_min,
            kills,
            adds,
            longest_ms: u64::try_from(longest.as_millis()).unwrap_or(u64::MAX),
        };
        // A session that is lost for another reason than a kill moves more.
        let holds = result.two_owners == 0 && (result.moves == moves_min || !heard.lost.is_empty());
        let line = if self.json { serde_json::to_string(&result)? } else { result.to_string() };
        Ok(Verdict::line(holds, line))
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { shards, two_owners, moves, moves_min, .. } = self;
        write!(formatter, "shards={shards} two_owners={two_owners} moves={moves} moves_min={moves_min}")
    }
}
