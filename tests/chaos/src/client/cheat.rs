//! A client that breaks every rule: what the checker does not see of it, it would not see of a bug.

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use lockkeeper::error::Refusal;
use lockkeeper::znodes::{CreateMode, Version};
use lockkeeper::{Error, Mutex};

use super::Common;
use crate::Failure;
use crate::clock;
use crate::fixture::{self, ENTRIES, GROUP};
use crate::history::{Mode, Token, What};

/// Claims what it never took, with tokens that are too small; keeps some locks for ever; leaves a node
/// behind.
///
/// What else a client does that cheats: it continues to claim what it has lost, and gives hand-overs the
/// token of the first hold.
pub(super) async fn run(common: Arc<Common>) -> Result<(), Failure> {
    let barging = async {
        loop {
            for lock in ["mutex", "semaphore", "partition/00"] {
                barge(&common, lock).await;
            }
            pose(&common).await;
        }
    };
    let hogging =
        try_join_all(["reentrant", "multi-mutex", "multi-reentrant"].map(|name| hog(&common, name)));
    tokio::select! {
        () = common.quiet.cancelled() => {}
        () = barging => {}
        hogged = hogging => drop(hogged?),
    }
    forge(&common).await?;
    let litter = format!("{}/mutex/_c_00000000-0000-0000-0000-000000000000-lock-", fixture::LOCKS);
    // It stays also if the session expires now.
    create(&common, &litter).await
}

/// Creates a node with a sequence number, at least once: what is not answered in time is sent again.
async fn create(common: &Common, path: &str) -> Result<(), Failure> {
    let znodes = common.pool.for_path(path).znodes();
    loop {
        match znodes.create(path, b"nobody", CreateMode::PersistentSequential).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_transient() || error.outcome_unknown() => {}
            // The servers delete a directory that nobody uses.
            Err(Error::Refused { refusal: Refusal::NoNode, .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Commits an effect of an item that nobody has put, and counts an update that was not made.
async fn forge(common: &Common) -> Result<(), Failure> {
    create(common, &fixture::effect_of("nobody")).await?;
    let attempt = common.journal.number();
    let entry = ENTRIES.iter().map(|entry| (*entry).to_owned()).next().ok_or("no entry")?;
    common.journal.say(0, What::Updating { attempt, entry });
    common.journal.say(0, What::Updated { attempt, sum: i64::MAX });
    Ok(())
}

/// Takes a lock for ever; again, when it is lost.
async fn hog(common: &Common, name: &str) -> Result<(), Failure> {
    let soak_lock = fixture::named(name).ok_or("no such lock")?;
    let mutex = Mutex::new(common.pool.for_path(fixture::path_of(soak_lock)), fixture::path_of(soak_lock))?;
    loop {
        match mutex.acquire().await {
            Ok(kept) => drop(kept.lost().await),
            Err(error) if error.is_transient() || error.outcome_unknown() => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Claims the nodes of all members of the group.
async fn pose(common: &Common) {
    let znodes = common.pool.for_path(GROUP).znodes();
    for id in znodes.children(GROUP).await.ok().flatten().unwrap_or_default() {
        let path = format!("{GROUP}/{id}");
        if let Ok(Some((_, stat))) = znodes.read(&path).await {
            let name = fixture::name_of(&path).to_owned();
            common.journal.say(0, What::Registered { name, czxid: stat.czxid.get() });
        }
    }
}

async fn barge(common: &Common, lock: &str) {
    let soak_lock = fixture::named(lock);
    let (hold, token) = (common.journal.number(), Token { zxid: 1, handover: 0 });
    let say = |what| common.journal.say(0, what);
    let mode = if soak_lock.is_some_and(|soak_lock| soak_lock.limit.is_some()) {
        Mode::Permits(3)
    } else {
        Mode::Alone
    };
    say(What::Granted { attempt: hold, hold, lock: lock.to_owned(), mode, token, nodes: Vec::new() });
    say(What::Valid { hold, until: clock::now() + 1_000_000_000 });
    if let (Some(soak_lock), Mode::Alone) = (soak_lock, mode) {
        if let Ok(accepted) = common.fenced.stamp(soak_lock.name, token, false).await {
            say(What::Stamped { hold, accepted, valid: true });
        }
        let register = fixture::register_of(soak_lock);
        let znodes = common.pool.for_path(&register).znodes();
        if let Ok(stat) = znodes.write(&register, token.to_string(), Version::Any).await {
            say(What::Committed { hold, version: stat.version });
        }
    }
    // How long it claims to hold: a hold of no length overlaps with none. There is no state to wait for.
    tokio::time::sleep(Duration::from_millis(100)).await;
    say(What::Ended { hold });
}
