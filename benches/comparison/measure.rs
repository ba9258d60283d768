//! The runs, alternating between the peers.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use crate::Outcome;
use crate::options::Options;
use crate::peers::{self, Peer};
use crate::plan::{self, MEMORY};
use crate::results::Results;
use crate::servers::{Kind, Servers};

/// Longer than any successful run, its stuck workers included.
const RUN_MAX: Duration = Duration::from_secs(180);

/// Where and when a run is.
#[derive(Clone, Copy)]
struct RunContext<'a> {
    servers: &'a Servers,
    round: u64,
}

/// Runs everything that is asked for, and keeps the results as they come.
pub(crate) async fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    if let Some(missing) = peers::missing(&options.peers) {
        return Err(format!("{missing} is needed; or leave it out with --peers").into());
    }
    for peer in &options.peers {
        peer.prepare().await?;
    }
    results.begin()?;
    let first = results.next_round();
    for &kind in &options.servers {
        let servers = kind.start(&options.peers).await?;
        get_warm(&servers).await?;
        for round in first..first + options.rounds as u64 {
            one_round(options, RunContext { servers: &servers, round }, results).await?;
        }
        if kind == Kind::Tmpfs && !options.quick {
            let context = RunContext { servers: &servers, round: first };
            for (name, words) in MEMORY.iter().filter(|(name, _)| options.wants(name)) {
                one_run(context, Peer::Lockkeeper, name, words, results).await?;
            }
        }
    }
    Ok(())
}

/// Lets the servers' Java see some load before anything is measured.
async fn get_warm(servers: &Servers) -> Outcome<()> {
    let mut command = Peer::Lockkeeper.command();
    command.arg(servers.connect_string(Peer::Lockkeeper)?).args(["bare", "w=10", "s=10", "t=3", "warm=0"]);
    line_of(&mut command).await.map(|_| ())
}

/// One run of each peer for each row, neighbours in time, and the bare writes that go with the row.
async fn one_round(options: &Options, context: RunContext<'_>, results: &mut Results) -> Outcome<()> {
    let mut measured = Vec::new();
    let kind = context.servers.kind;
    for row in plan::all().filter(|row| options.wants(row.name) && row.is_on(kind)) {
        if options.peers.contains(&Peer::Lockkeeper) && !measured.contains(&row.bare) {
            measured.push(row.bare);
            let words = plan::bare(row.bare.0, row.bare.1, options);
            one_run(context, Peer::Lockkeeper, &plan::bare_name(row.bare), &words, results).await?;
        }
        for peer in in_turn(&options.peers, context.round).into_iter().filter(|peer| row.is_for(*peer)) {
            one_run(context, peer, row.name, &row.words(peer, kind, options), results).await?;
        }
    }
    Ok(())
}

/// The peers as they run in this round: in every other round the last one begins, because each run leaves a
/// server that is warmer, and has more data.
fn in_turn(peers: &[Peer], round: u64) -> Vec<Peer> {
    let mut peers = peers.to_vec();
    if round % 2 == 1 {
        peers.reverse();
    }
    peers
}

async fn one_run(
    context: RunContext<'_>,
    peer: Peer,
    row: &str,
    words: &str,
    results: &mut Results,
) -> Outcome<()> {
    let mut command = peer.command();
    command
        .arg(context.servers.connect_string(peer)?)
        .args(words.split_whitespace())
        .env("LOCKKEEPER_BENCH_SERVER_PIDS", context.servers.pids());
    let mut line = match line_of(&mut command).await {
        Ok(line) => line,
        // One peer's failure is a result, and no reason to lose those of the others.
        Err(failure) => json!({ "peer": peer.name(), "failure": failure.to_string() }),
    };
    if let Some(fields) = line.as_object_mut() {
        fields.insert("servers".to_owned(), context.servers.kind.name().into());
        fields.insert("row".to_owned(), row.into());
        fields.insert("round".to_owned(), context.round.into());
    }
    let figure = |name: &str| line.get(name).map_or_else(|| "-".to_owned(), Value::to_string);
    println!(
        "{:5} {:2} {:30} {:10} {:>10} ops/s, acquire p99 {:>10} us, {:>8} us of CPU, {} requests {}",
        context.servers.kind.name(),
        context.round,
        row,
        figure("peer").trim_matches('"'),
        figure("ops_s"),
        figure("acq_p99_us"),
        figure("cli_cpu_us_op"),
        figure("reqs_op"),
        line.get("failure").and_then(Value::as_str).unwrap_or_default(),
    );
    results.add(line)
}

async fn line_of(command: &mut Command) -> Outcome<Value> {
    let output =
        timeout(RUN_MAX, command.kill_on_drop(true).output()).await.map_err(|_| "it took too long")??;
    let text = String::from_utf8_lossy(&output.stdout);
    // A run that broke exclusion has a line as well.
    serde_json::from_str(text.trim()).map_err(|_| {
        let errors = String::from_utf8_lossy(&output.stderr);
        errors.lines().last().unwrap_or("it said nothing").to_owned().into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_peer_begins_as_often_as_it_ends() {
        let [first, second, third, ..] = Peer::ALL;
        assert_eq!(in_turn(&[first, second, third], 0), [first, second, third]);
        assert_eq!(in_turn(&[first, second, third], 1), [third, second, first]);
        assert_eq!(in_turn(&[first, second, third], 2), [first, second, third]);
    }
}
