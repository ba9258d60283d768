//! The loads.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockkeeper::{ConnectionManager, Mutex};
use serde_json::{Value, json};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinSet;

use crate::arguments::Arguments;
use crate::stopwatch::{Times, now};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Where every run has its own paths, so that one does not stand in another's lines.
fn root() -> String {
    format!("/lockkeeper-bench/{}", std::process::id())
}

pub(crate) async fn run(arguments: &Arguments) -> Result<Value, Box<dyn Error>> {
    let sessions =
        usize::try_from(arguments.number("s", if arguments.scenario() == "many" { 1 } else { 2 }))?;
    let mut managers = Vec::new();
    for _ in 0..sessions {
        managers.push(ConnectionManager::connect(arguments.servers()).await?);
    }
    let report = match arguments.scenario() {
        "uncontended" => uncontended(&managers, arguments).await,
        "handoff" => handoff(&managers, arguments).await,
        "many" => many(&managers, arguments).await,
        _ => herd(&managers, arguments).await,
    };
    for manager in &managers {
        manager.shutdown().await?;
    }
    report.map_err(|error| error as Box<dyn Error>)
}

async fn uncontended(managers: &[ConnectionManager], arguments: &Arguments) -> Outcome<Value> {
    let Some(manager) = managers.first() else {
        return Err("no session".into());
    };
    let mutex = Mutex::new(manager, format!("{}/uncontended", root()))?;
    let (mut acquire, mut release) = (Times::new(), Times::new());
    let warm = arguments.number("warmn", 100);
    let mut begun = now();
    for cycle in 0..warm + arguments.number("n", 1_000) {
        if cycle == warm {
            begun = now();
        }
        let start = now();
        let guard = mutex.acquire().await?;
        let held = now();
        guard.release().await?;
        if cycle >= warm {
            acquire.add(held - start);
            release.add(held.elapsed());
        }
    }
    let cycles = acquire.count();
    Ok(
        json!({ "cycles_per_second": per_second(cycles, begun), "acquire": acquire.report(), "release": release.report() }),
    )
}

async fn handoff(managers: &[ConnectionManager], arguments: &Arguments) -> Outcome<Value> {
    let path = format!("{}/handoff", root());
    let end = now() + Duration::from_secs(arguments.number("t", 5));
    // When the last holder called release: the next one's wait is measured from there.
    let released = Arc::new(AsyncMutex::new(None::<Instant>));
    let begun = now();
    let times = tasks(managers, arguments.number("w", 10), |manager, _| {
        let (path, released) = (path.clone(), Arc::clone(&released));
        async move {
            let mutex = Mutex::new(&manager, path)?;
            let mut times = Times::new();
            while now() < end {
                let guard = mutex.acquire().await?;
                if let Some(at) = released.lock().await.take() {
                    times.add(at.elapsed());
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
                *released.lock().await = Some(now());
                guard.release().await?;
            }
            Ok(times)
        }
    })
    .await?;
    Ok(json!({ "grants_per_second": per_second(times.count(), begun), "handoff": times.report() }))
}

async fn many(managers: &[ConnectionManager], arguments: &Arguments) -> Outcome<Value> {
    let end = now() + Duration::from_secs(arguments.number("t", 5));
    let paths = arguments.number("k", 100);
    let begun = now();
    let times = tasks(managers, arguments.number("w", 100), |manager, number| async move {
        let mutex = Mutex::new(&manager, format!("{}/many/{}", root(), number % paths))?;
        let mut times = Times::new();
        while now() < end {
            let start = now();
            mutex.acquire().await?.release().await?;
            times.add(start.elapsed());
        }
        Ok(times)
    })
    .await?;
    Ok(json!({ "cycles_per_second": per_second(times.count(), begun), "cycle": times.report() }))
}

async fn herd(managers: &[ConnectionManager], arguments: &Arguments) -> Outcome<Value> {
    let path = format!("{}/herd", root());
    let Some(first) = managers.first() else {
        return Err("no session".into());
    };
    let waiters = arguments.number("w", 200);
    let held = Mutex::new(first, path.as_str())?.acquire_owned().await?;
    let serving = tasks(managers, waiters, |manager, _| {
        let path = path.clone();
        async move {
            let mutex = Mutex::new(&manager, path)?;
            let start = now();
            let guard = mutex.acquire().await?;
            let mut times = Times::new();
            times.add(start.elapsed());
            guard.release().await?;
            Ok(times)
        }
    });
    let opening = async {
        let (znodes, directory) = (first.znodes(), path.as_str().try_into()?);
        while znodes.children(&directory).await?.map_or(0, |line| line.len() as u64) <= waiters {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let begun = now();
        held.release().await?;
        Outcome::Ok(begun)
    };
    let (served, begun) = tokio::join!(serving, opening);
    let (served, begun) = (served?, begun?);
    Ok(
        json!({ "served": served.count(), "wait": served.report(), "served_per_second": per_second(served.count(), begun) }),
    )
}

/// Runs `count` tasks, each on one of the sessions, and puts their times together.
async fn tasks<F>(
    managers: &[ConnectionManager],
    count: u64,
    task: impl Fn(ConnectionManager, u64) -> F,
) -> Outcome<Times>
where
    F: Future<Output = Outcome<Times>> + Send + 'static,
{
    let mut running = JoinSet::new();
    for (number, manager) in (0..count).zip(managers.iter().cycle()) {
        running.spawn(task(manager.clone(), number));
    }
    let mut all = Times::new();
    while let Some(times) = running.join_next().await {
        all.merge(&times??);
    }
    Ok(all)
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
fn per_second(count: u64, begun: Instant) -> f64 {
    (count as f64 / begun.elapsed().as_secs_f64() * 10.0).round() / 10.0
}
