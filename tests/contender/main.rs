//! A process that contends for a mutex and records when its guard said that it was valid.
//!
//! `contender CONNECT LOCK REGISTER SESSION_MS TICK_MS SESSIONS`: acquires the lock again and again until its
//! standard input ends. One line for each event, with nanoseconds of the machine's boot clock, which all
//! processes share:
//!
//! * `granted TOKEN AT`, `valid TOKEN AT` (at AT the guard still said that it was valid), `over TOKEN AT`
//! * `written TOKEN VERSION`: a fenced write was committed as this version of the register
//!
//! The contender acquires through a pool of SESSIONS sessions. With a further argument `once` it acquires the
//! lock once, and works under it until the hold is lost: `polled AT` for each poll of the work, `checked AT
//! true|false` for each check of the guard, and `ended RESULTS` for the release.
//!
//! The test reads the lines and judges them; this program judges nothing.
//!
//! `contender peer CONNECT SESSION_MS`: obeys requests on its standard input, see [`peer`].
//!
//! `contender java CONNECT SESSION_MS`: starts a Java peer, prints its process id, and waits until it is
//! killed.
//!
//! `contender server running|paused`: starts a ZooKeeper server, prints its process id and its folder, and
//! waits until it is killed.

mod peer;
mod queues;
mod values;

use std::error::Error;
use std::io::Write;
use std::task::Poll;
use std::time::Duration;

use lockkeeper::znodes::TxnResult;
use lockkeeper::{ConnectionManager, Mutex, MutexGuard, ZnodePath};
use lockkeeper_tests::{CuratorPeer, Ensemble};
use tokio::io::AsyncReadExt;

/// The time between two checks of the guard, and between two polls of the work.
const PAUSE: Duration = Duration::from_millis(50);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [verb, state] = arguments.as_slice()
        && verb == "server"
    {
        return start_server(state == "paused").await;
    }
    if let [verb, connect, session] = arguments.as_slice() {
        let session = Duration::from_millis(session.parse()?);
        return match verb.as_str() {
            "peer" => peer::serve(connect, session).await,
            "java" => start_java(connect, session).await,
            _ => Err(format!("unknown verb {verb}").into()),
        };
    }
    let [connect, lock, register, session, tick, sessions, once @ ..] = arguments.as_slice() else {
        return Err("usage: contender CONNECT LOCK REGISTER SESSION_MS TICK_MS SESSIONS [once]".into());
    };
    let pool = ConnectionManager::builder(connect)
        .session_timeout(Duration::from_millis(session.parse()?))
        .tick_time(Duration::from_millis(tick.parse()?))
        .connect_deadline(Duration::from_secs(60))
        .connect_pool(sessions.parse()?)
        .await?;
    let mutex = Mutex::new(pool.for_path(lock), lock)?;
    let register: ZnodePath = register.parse()?;
    let mut input = tokio::io::stdin();
    let mut byte = [0];
    tokio::select! {
        _ = input.read(&mut byte) => {}
        result = work_once(&mutex), if !once.is_empty() => result?,
        result = contend(&mutex, &register), if once.is_empty() => result?,
    }
    pool.shutdown().await?;
    // A blocked read of standard input would keep the runtime from ending.
    std::process::exit(0);
}

/// Waits with a ZooKeeper server as its child until this process is killed.
async fn start_server(is_paused: bool) -> Result<(), Box<dyn Error>> {
    let ensemble = Ensemble::start(1).await?;
    let server = ensemble.server(0);
    if is_paused {
        server.pause().await?;
    }
    let pid = server.pid().ok_or("the server has ended")?;
    let log = server.log_file();
    let folder = log.ancestors().nth(2).ok_or("no folder")?;
    say(&format!("{pid} {}", folder.display()))?;
    std::future::pending().await
}

/// Waits with a Java peer as its child until this process is killed.
async fn start_java(connect: &str, session: Duration) -> Result<(), Box<dyn Error>> {
    let java = CuratorPeer::start(connect, session).await?;
    say(&java.pid().await.ok_or("the Java process has ended")?.to_string())?;
    std::future::pending().await
}

async fn contend(mutex: &Mutex, register: &ZnodePath) -> Result<(), Box<dyn Error>> {
    loop {
        let guard = match mutex.acquire().await {
            Ok(guard) => guard,
            Err(error) => {
                say(&format!("failed {error}"))?;
                continue;
            }
        };
        let token = guard.fencing_token().as_u64();
        say(&format!("granted {token} {}", now()))?;
        hold(&guard, token, register).await?;
        say(&format!("over {token} {}", now()))?;
        if let Err(error) = guard.release().await {
            say(&format!("unreleased {error}"))?;
        }
    }
}

async fn hold(guard: &MutexGuard, token: u64, register: &ZnodePath) -> Result<(), Box<dyn Error>> {
    for step in 0..8 {
        // The clock is read before the guard: a guard that is valid afterwards was valid at that instant.
        let at = now();
        if !guard.is_valid() {
            return Ok(());
        }
        say(&format!("valid {token} {at}"))?;
        if step == 4 {
            let written =
                guard.txn().set(register.clone(), token.to_string().into_bytes(), -1).commit().await;
            if let Ok(Some(TxnResult::Written { version, .. })) =
                written.map(|results| results.first().cloned())
            {
                say(&format!("written {token} {version}"))?;
            }
        } else {
            // The passing of time is the subject: the hold samples its guard while the test kills or stops
            // the process.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    Ok(())
}

/// Works, and checks the guard, until the hold is lost. Each prints its instant by a clock that it reads
/// first.
async fn work_once(mutex: &Mutex) -> Result<(), Box<dyn Error>> {
    let guard = mutex.acquire().await?;
    say(&format!("granted {} {}", guard.fencing_token().as_u64(), now()))?;
    let mut pause = tokio::time::interval(PAUSE);
    let work = std::future::poll_fn(|context| {
        // Every poll counts, whatever its wakeup.
        let said = say(&format!("polled {}", now()));
        while pause.poll_tick(context).is_ready() {}
        said.map_or_else(|error| Poll::Ready(Err::<(), _>(error)), |()| Poll::Pending)
    });
    let checks = async {
        loop {
            let at = now();
            let is_valid = guard.is_valid();
            say(&format!("checked {at} {is_valid}"))?;
            if !is_valid {
                return std::io::Result::Ok(());
            }
            // The passing of time is the subject: the clock alone makes a guard invalid, with no event to
            // wait for.
            tokio::time::sleep(PAUSE).await;
        }
    };
    let (worked, checked) = tokio::join!(guard.run(work), checks);
    checked?;
    say(&format!("ended {:?} {:?}", worked.map(|_| ()), guard.release().await))?;
    Ok(())
}

fn now() -> u128 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u128::try_from(time.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u128::try_from(time.tv_nsec).unwrap_or_default()
}

/// Writes a line and flushes it: lines printed before a kill count.
fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
