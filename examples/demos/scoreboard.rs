//! Many processes count the goals of several teams, some processes are killed, and a board shows the sums
//! live.
//!
//! A [`Counter`] adds on the server: each addition counts once, whatever becomes of its answer. A
//! [`ChildrenView`] shows all sums as they change, without polling. With `--naive` a process reads the number
//! and writes the next one: what another process wrote between the two is lost.
//!
//! An addition without an answer may count. So with `--kill`, as many lost additions as there are unknown
//! ones could hide behind these: the last line would show `lost=0`. Without unknown additions every lost one
//! is seen.
//!
//! `cargo run --example scoreboard`, or `-- --naive`, or `-- --json`, or `-- --connect host:port,…`

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, value_parser};
use lockkeeper::error::Refusal;
use lockkeeper::znodes::{CreateMode, Version};
use lockkeeper::{ChildrenView, Counter, Error};
use lockkeeper_demos::fixture::{Common, Example, Failure, Fixture, Verdict, Worker, patiently, play};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// Counts in several processes at once, some of which are killed; nothing is lost, and nothing counts twice.
#[derive(Debug, Parser)]
#[command(name = "scoreboard")]
struct Scoreboard {
    /// How many processes count
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(2..=64))]
    processes: u32,

    /// How many numbers they count
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=100))]
    teams: u32,

    /// How many processes are killed (kill -9) in the middle of an addition; another one replaces each
    #[arg(long, value_name = "N", default_value_t = 0, default_missing_value = "2", num_args = 0..=1)]
    kill: u32,

    /// For how long, in seconds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u64).range(1..=3_600))]
    seconds: u64,

    /// Read the number and write the next one, to see what that loses
    #[arg(long)]
    naive: bool,

    /// End with a line of JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    common: Common,
}

/// The nodes of the numbers.
const SCORES: &str = "scores";

/// An addition of one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum News {
    /// It is about to be sent.
    Started,
    /// It has ended.
    Added,
    /// It may count.
    Unknown,
}

/// What the processes have said.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    added: i64,
    /// Without a word about their end: they may count.
    unknown: i64,
}

fn main() -> ExitCode {
    play::<Scoreboard>()
}

fn team(number: u32) -> String {
    format!("{SCORES}/team-{number}")
}

impl Scoreboard {
    /// Reads the number, and writes the next one.
    async fn add_naively(worker: &Worker, team: &str) -> Result<(), Failure> {
        let (znodes, path) = (worker.znodes(), worker.path(team)?);
        let Some((data, _)) = znodes.read(&path).await? else {
            return match znodes.create(&path, 1_i64.to_be_bytes(), CreateMode::Persistent).await {
                Err(Error::Refused { refusal: Refusal::NodeExists, .. }) | Ok(_) => Ok(()),
                Err(error) => Err(error.into()),
            };
        };
        let next = data.try_into().map_or(1, i64::from_be_bytes) + 1;
        znodes.write(&path, next.to_be_bytes(), Version::Any).await?;
        Ok(())
    }

    /// Writes the sums of a view to the terminal.
    fn show(sums: &BTreeMap<String, i64>) {
        let line: Vec<String> = sums.iter().map(|(team, sum)| format!("{team} {sum:>6}")).collect();
        println!("{}", line.join("   "));
    }

    /// The sums as the view has them now.
    fn sums(board: &ChildrenView<i64>) -> BTreeMap<String, i64> {
        let snapshot = board.snapshot();
        let sums =
            snapshot.children("").map(|(name, node)| (name.to_owned(), node.value().map_or(0, |sum| *sum)));
        sums.collect()
    }

    /// Hears the processes until the time is over, kills some of them, and shows the sums now and then.
    async fn hear(&self, fixture: &mut Fixture<News>, board: &ChildrenView<i64>) -> Result<Heard, Failure> {
        let (all, begun) = (Duration::from_secs(self.seconds), Instant::now());
        let (mut heard, mut open) = (Heard::default(), BTreeMap::<u32, i64>::new());
        let (mut killed, mut shown) = (0, 0);
        while let Some((process, news)) = fixture.next().await? {
            match news {
                News::Started => _ = open.insert(process, 1),
                News::Added => {
                    open.insert(process, 0);
                    heard.added += 1;
                }
                News::Unknown => {
                    open.insert(process, 0);
                    heard.unknown += 1;
                }
            }
            let is_due = begun.elapsed() >= all * (killed + 1) / (self.kill + 1);
            if killed < self.kill && is_due && matches!(news, News::Started) {
                fixture.kill(process)?;
                killed += 1;
                println!("process {process} is killed in the middle of an addition");
                fixture.start(1).await?;
            }
            let seconds_shown = begun.elapsed().as_secs();
            if seconds_shown > shown {
                shown = seconds_shown;
                Self::show(&Self::sums(board));
            }
        }
        heard.unknown += open.values().sum::<i64>();
        Ok(heard)
    }
}

impl Example for Scoreboard {
    type News = News;

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        let begun = Instant::now();
        let teams =
            (0..self.teams).map(|number| Ok(Counter::new(worker.manager(), worker.path(&team(number))?)?));
        let counters = teams.collect::<Result<Vec<Counter>, Failure>>()?;
        while begun.elapsed() < Duration::from_secs(self.seconds) {
            let number = rand::random_range(0..self.teams);
            worker.tell(&News::Started)?;
            let added = match counters.get(number as usize) {
                Some(counter) if !self.naive => add(counter).await?,
                _ => {
                    let team = team(number);
                    patiently(|| Self::add_naively(worker, &team)).await?;
                    News::Added
                }
            };
            worker.tell(&added)?;
        }
        Ok(())
    }

    async fn lead(&self, fixture: &mut Fixture<News>) -> Result<Verdict, Failure> {
        fixture.set_up(SCORES, b"").await?;
        let decode = |_: &str, data: &[u8]| data.try_into().map(i64::from_be_bytes);
        let board = ChildrenView::new_decoded(
            fixture.manager(),
            fixture.path(SCORES)?,
            lockkeeper::view::ViewBounds::default(),
            decode,
        )?;
        board.ready().await?;
        fixture.start(self.processes).await?;
        let how = if self.naive { "by reading and writing" } else { "by counters" };
        println!("{} processes count {} teams, {how}", self.processes, self.teams);

        let heard = self.hear(fixture, &board).await?;
        fixture.close().await;
        patiently(|| board.sync()).await?;
        let sums = Self::sums(&board);
        Self::show(&sums);

        let (adds, sum) = (heard.added, sums.values().sum::<i64>());
        let lost = (adds - sum).max(0);
        let doubled = (sum - adds - heard.unknown).max(0);
        let holds = lost == 0 && doubled == 0 && adds > 0;
        let unknown = heard.unknown;
        if self.json {
            let numbers = serde_json::json!({
                "adds": adds, "sum": sum, "unknown": unknown, "lost": lost, "doubled": doubled,
                "proved": holds,
            });
            return Ok(Verdict::line(holds, numbers.to_string()));
        }
        if unknown > 0 {
            println!("{unknown} additions may count as well: their processes were killed, or got no answer;");
            println!("if they count, up to {unknown} lost ones are not seen");
        }
        Ok(Verdict::of(holds, format!("adds={adds} sum={sum} lost={lost} doubled={doubled}")))
    }
}

/// Adds one. Repeated only if it does not count.
async fn add(counter: &Counter) -> Result<News, Failure> {
    match patiently(|| counter.increment()).await {
        Ok(_) => Ok(News::Added),
        Err(error) if error.outcome_unknown() => Ok(News::Unknown),
        Err(error) => Err(error.into()),
    }
}
