//! A round: servers, clients, faults, healing, and the verdict.

mod client;
mod finale;
mod fleet;
mod jobs;
mod options;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{TryFutureExt, try_join_all};
use lockkeeper_tests::{CreateMode, Ensemble, Timing};

pub(crate) use self::client::{Client, Launch};
use self::finale::{become_quiet, disagreements, number, orphans, registers, unserved};
pub use self::options::Options;
use crate::checker::{self, Violation};
use crate::fenced::Fenced;
use crate::history::{Account, History, Token};
use crate::nemesis::{Nemesis, Plan};
use crate::{Failure, clock, fixture, report};

/// How often what the proxies remember is thrown away.
const FORGET: Duration = Duration::from_secs(1);

/// The result of a round.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Every broken promise.
    pub violations: Vec<Violation>,
    /// Where the ensemble has broken its own word, on which all promises rest: it has lost what it had
    /// committed, or its servers differ. No client can bring that about; such a round proves nothing.
    pub lapses: Vec<String>,
    /// Where histories, pictures and summary are.
    pub folder: PathBuf,
    /// The number of grants by a hand-off within their process.
    pub handovers: usize,
    /// For people.
    pub summary: String,
}

/// Rounds until the time is up or a promise is broken; the last one's verdict. After an error of the ensemble
/// it continues, and keeps the round's folder.
///
/// # Errors
///
/// The failure that prevented the verdict of a round.
pub async fn soak(options: Options, program: PathBuf) -> Result<Verdict, Failure> {
    let begun = clock::now();
    let mut options = options;
    loop {
        println!("seed {} on {} server(s)", options.seed, options.servers);
        let verdict = round(&options, &program).await?;
        let elapsed = Duration::from_nanos(clock::now() - begun);
        let is_sound = verdict.lapses.is_empty();
        if is_sound && !verdict.violations.is_empty() || elapsed >= options.all {
            return Ok(verdict);
        }
        println!("{}", verdict.summary);
        if is_sound {
            // Hours of successful rounds would fill the disk.
            fs::remove_dir_all(&verdict.folder)?;
        }
        options.seed += 1;
    }
}

/// Judges what is in a round's folder, and writes pictures and summary anew.
///
/// # Errors
///
/// That the folder cannot be read or written.
pub fn judge_again(folder: &Path) -> Result<Verdict, Failure> {
    let history = History::read(folder)?;
    let violations = checker::judge(&history);
    let lapses = checker::lapses(&history);
    let handovers = history.holds().iter().filter(|hold| hold.token.handover > 0).count();
    let summary = report::write(&history, &violations, &lapses, folder)?;
    Ok(Verdict { violations, lapses, folder: folder.to_owned(), handovers, summary })
}

/// One round; `program` is this package's binary.
///
/// # Errors
///
/// The failure that prevented its verdict.
pub async fn round(options: &Options, program: &Path) -> Result<Verdict, Failure> {
    let name = format!("{}-servers-seed-{}", options.servers, options.seed);
    let folder = std::path::absolute(&options.folder)?.join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let account = strike(options, program, &folder)
        .map_err(|failure| Failure::from(format!("{failure} (histories: {})", folder.display())))
        .await?;
    account.write(&folder)?;
    judge_again(&folder)
}

/// Everything up to the verdict.
async fn strike(options: &Options, program: &Path, folder: &Path) -> Result<Account, Failure> {
    let ensemble = Arc::new(start(options).await?);
    let fenced = Fenced::start().await?;
    let launch = |number: u64| Launch {
        program: program.to_owned(),
        folder: folder.to_owned(),
        seed: options.seed.wrapping_mul(100).wrapping_add(number),
        fenced: fenced.address(),
        session: options.session,
        tick: options.tick,
    };
    let starting = (0..options.clients)
        .map(|number| Client::start(number, options.cheat && number == 0, &ensemble, launch(number as u64)));
    let clients: Arc<[Client]> = try_join_all(starting).await?.into();
    let forgetting = tokio::spawn(forget(Arc::clone(&clients)));

    let patience = Timing::scaled(options.patience);
    // With a cheat, not every client is granted all locks.
    let unserved_before = if options.cheat { Vec::new() } else { unserved(&clients, 0, patience).await };
    // And what it does is wrong without any fault.
    let plan = if unserved_before.is_empty() && !options.cheat {
        Plan::deal(options.seed, options.servers, options.session)
    } else {
        Plan::default()
    };
    let nemesis = Nemesis::new(Arc::clone(&ensemble), Arc::clone(&clients));
    let incidents = nemesis.carry_out(plan, options.round).await;
    let ended = nemesis.heal().await?;

    let window = u64::try_from(fixture::WINDOW.as_nanos())?;
    let mut account = Account {
        seed: options.seed,
        servers: options.servers,
        incidents,
        died: ended,
        limiters: vec![(fixture::STARTING.to_owned(), fixture::STARTS, window)],
        ..Account::default()
    };
    let healed = clock::now();
    account.healed = Some(healed);
    account.unserved = unserved_before;
    let agreed = granted(&mut account, healed, &ensemble, &clients, options).await?;
    let patience = if agreed { patience } else { options.session };
    account.nodes = fleet::settled(&ensemble, &clients, patience).await?;
    account.living = clients.iter().map(Client::process).collect();
    account.quiet = Some(clock::now());
    account.died.extend(become_quiet(&clients, patience).await?);
    account.jobs = jobs::drained(&ensemble, patience).await?;
    account.orphans = orphans(&ensemble, patience).await?;
    account.disagreements.extend(disagreements(&ensemble, patience).await?);
    account.registers = registers(&ensemble).await?;
    account.number = number(&ensemble).await?;
    account.entries = jobs::entries(&ensemble).await?;
    try_join_all(clients.iter().map(Client::stop)).await?;
    account.died.extend(clients.iter().flat_map(Client::died));
    account.stamps = fenced.entries();
    forgetting.abort();
    Ok(account)
}

/// Waits until each client is granted its locks after `healed`. If that takes long, the servers are compared.
/// Returns false if they differ: they stay so, and their round proves nothing, so nothing more is waited for.
async fn granted(
    account: &mut Account,
    healed: u64,
    ensemble: &Ensemble,
    clients: &[Client],
    options: &Options,
) -> Result<bool, Failure> {
    let patience = Timing::scaled(options.patience);
    let had_grants = account.unserved.is_empty();
    if had_grants {
        account.unserved = unserved(clients, healed, patience / 3).await;
    }
    if !account.unserved.is_empty() {
        // Compared now: the servers remove empty containers, and with them nodes that only some servers have.
        account.disagreements = disagreements(ensemble, 3 * options.session).await?;
        if had_grants && account.disagreements.is_empty() {
            account.unserved = unserved(clients, healed, 2 * patience / 3).await;
        }
    }
    Ok(account.disagreements.is_empty())
}

async fn start(options: &Options) -> Result<Ensemble, Failure> {
    let ensemble = Ensemble::builder()
        .servers(options.servers)
        .apart(options.servers > 1)
        .tick(options.tick)
        .heap_mebibytes(384)
        // Small, so that it can be reached; and empty folders go soon.
        .property("zookeeper.globalOutstandingLimit", "100")
        .property("znode.container.checkIntervalMs", "1000")
        .start()
        .await?;
    let mut raw = ensemble.raw().await?;
    raw.create("/chaos", b"", CreateMode::Persistent).await?;
    raw.create(fixture::REGISTERS, b"", CreateMode::Persistent).await?;
    raw.create(fixture::EFFECTS, b"", CreateMode::Persistent).await?;
    for soak_lock in fixture::SOAK_LOCKS {
        raw.create(
            &fixture::register_of(soak_lock),
            Token::default().to_string().as_bytes(),
            CreateMode::Persistent,
        )
        .await?;
    }
    raw.close().await?;
    Ok(ensemble)
}

/// Limits the memory of a long run: nobody waits for this.
async fn forget(clients: Arc<[Client]>) {
    loop {
        tokio::time::sleep(FORGET).await;
        clients.iter().for_each(|client| client.proxies.clear_log());
    }
}
