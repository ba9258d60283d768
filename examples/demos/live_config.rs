//! Many processes follow one configuration while it changes, and no process ever runs a bad version of it.
//!
//! The configuration is one node, which each process follows by a [`NodeView`]. The decoder parses and checks
//! every version. A process runs the last version that was good: after a bad one, the node has an error in
//! place of its value, and the process continues with what it has.
//!
//! `cargo run --example live_config`, or `-- --naive`, or `-- --connect host:port,…`

use std::process::ExitCode;

use clap::{Parser, value_parser};
use lockkeeper::NodeView;
use lockkeeper_demos::fixture::{Common, Example, Failure, Fixture, Verdict, Worker, patiently, play};
use serde::{Deserialize, Serialize};

/// Many processes follow one configuration while it changes, and no process ever runs a bad version of it.
#[derive(Debug, Parser)]
#[command(name = "live_config")]
struct LiveConfig {
    /// How many processes follow the configuration
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=64))]
    processes: u32,

    /// Take every version as it is, and defaults where it cannot be parsed, to see what the checks are good
    /// for
    #[arg(long)]
    naive: bool,

    #[command(flatten)]
    common: Common,
}

/// What the processes are configured with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Config {
    workers: u32,
    region: String,
}

/// The versions that are written one after another, and whether each is good.
const VERSIONS: [(&str, bool); 7] = [
    (r#"{"workers": 4, "region": "north"}"#, true),
    (r#"{"workers": 0, "region": "north"}"#, false),
    (r#"{"workers": 8, "region": "north"}"#, true),
    (r#"{"workers": 8, "region""#, false),
    (r#"{"workers": 100000, "region": "north"}"#, false),
    (r#"{"workers": 8, "region": "south"}"#, true),
    (r#"{"workers": 6, "region": "south"}"#, true),
];

const WORKERS_MAX: u32 = 64;

/// What a process does with a version of the node.
#[derive(Debug, Serialize, Deserialize)]
enum Seen {
    Runs { version: i32, config: Config },
    KeepsOut { version: i32, why: String, still_runs: Option<Config> },
}

impl Seen {
    fn version(&self) -> i32 {
        match self {
            Self::Runs { version, .. } | Self::KeepsOut { version, .. } => *version,
        }
    }
}

/// Parses and checks a version.
fn checked(data: &[u8]) -> Result<Config, String> {
    let config: Config = serde_json::from_slice(data).map_err(|error| error.to_string())?;
    match config.workers {
        1..=WORKERS_MAX => Ok(config),
        workers => Err(format!("{workers} workers; give 1 to {WORKERS_MAX}")),
    }
}

fn main() -> ExitCode {
    play::<LiveConfig>()
}

impl LiveConfig {
    fn view(&self, worker: &Worker) -> Result<NodeView<Config>, Failure> {
        let naive = self.naive;
        let decode = move |data: &[u8]| {
            if naive { Ok(serde_json::from_slice(data).unwrap_or_default()) } else { checked(data) }
        };
        Ok(NodeView::new_decoded(worker.manager(), worker.path("config")?, decode)?)
    }
}

impl Example for LiveConfig {
    type News = Seen;

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        let view = self.view(worker)?;
        let mut changes = view.changes();
        let mut running = None;
        // The view may have the first version before `changes` begins.
        let mut found = changes.snapshot().root().cloned();
        loop {
            let node = match found.take() {
                Some(node) => node,
                None => match changes.next().await {
                    Some(difference) => {
                        let mut nodes = difference.changes().iter().filter_map(|change| change.node());
                        let Some(node) = nodes.next().cloned() else { continue };
                        node
                    }
                    None => break,
                },
            };
            let version = node.stat().version;
            let seen = match node.value() {
                Ok(config) => {
                    running = Some(config.clone());
                    Seen::Runs { version, config: config.clone() }
                }
                Err(error) => Seen::KeepsOut { version, why: error.to_string(), still_runs: running.clone() },
            };
            worker.tell(&seen)?;
            if usize::try_from(version) == Ok(VERSIONS.len() - 1) {
                break;
            }
        }
        Ok(())
    }

    async fn lead(&self, fixture: &mut Fixture<Seen>) -> Result<Verdict, Failure> {
        let [(first, _), ..] = VERSIONS;
        fixture.set_up("config", first.as_bytes()).await?;
        fixture.start(self.processes).await?;
        let (mut ran, mut kept_out, mut bad) = (0, 0, 0);
        for (number, (text, is_good)) in (0..).zip(VERSIONS) {
            if number > 0 {
                let path = fixture.path("config")?;
                let znodes = fixture.znodes();
                // Only over the version before: never twice.
                patiently(|| znodes.write(&path, text, number - 1)).await?;
            }
            println!("version {number} is {text}");
            let mut waiting = self.processes;
            while waiting > 0 {
                let Some((process, seen)) = fixture.next().await? else { break };
                waiting -= u32::from(seen.version() == number);
                match seen {
                    Seen::Runs { config: Config { workers, region }, .. } => {
                        println!("  process {process} runs {workers} workers in the {region}");
                        ran += 1;
                        bad += u32::from(!is_good);
                    }
                    Seen::KeepsOut { why, still_runs, .. } => {
                        println!(
                            "  process {process} keeps it out, and continues with {still_runs:?}: {why}"
                        );
                        kept_out += 1;
                    }
                }
            }
        }
        fixture.rest().await?;
        let good = VERSIONS.iter().filter(|(_, is_good)| *is_good).count();
        let numbers = format!(
            "{ran} versions run by {} processes, {kept_out} kept out, {bad} bad ones run",
            self.processes
        );
        Ok(Verdict::of(bad == 0 && ran as usize == good * self.processes as usize, numbers))
    }
}
