//! A program that holds a lock and ends in one of several ways, for the page that says what each way leaves.
//!
//! `ways-out SERVERS async|blocking WAY`. It says `held`, and what goes on says `goes on` until its standard
//! input ends.

use std::error::Error;
use std::io::stdin;
use std::process::exit;
use std::thread;
use std::time::Duration;

use lockkeeper::{ConnectionManager, Mutex, blocking};

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// Longer than a test.
const SESSION: Duration = Duration::from_secs(40);

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [servers, side, way] = arguments.as_slice() else {
        return Err("usage: ways-out SERVERS async|blocking WAY".into());
    };
    let builder = ConnectionManager::builder(servers).session_timeout(SESSION);
    if side == "blocking" {
        return of_threads(blocking::ConnectionManager::connect_with(builder)?, way);
    }
    tokio::runtime::Runtime::new()?.block_on(async { of_tasks(builder.connect().await?, way).await })
}

async fn of_tasks(manager: ConnectionManager, way: &str) -> Outcome {
    let guard = Mutex::new(&manager, "/lock")?.acquire().await?;
    println!("held");
    match way {
        "shutdown" => manager.shutdown().await?,
        "exit" => exit(0),
        "wait" => go_on(),
        #[expect(clippy::panic, reason = "it is the way out")]
        "panic" => {
            let panicked = tokio::spawn(async move {
                let _guard = guard;
                panic!("in a task");
            });
            let _ = panicked.await;
            go_on();
        }
        "forget" => {
            std::mem::forget(guard);
            go_on();
        }
        other => return Err(format!("no way out is called {other}").into()),
    }
    Ok(())
}

fn of_threads(manager: blocking::ConnectionManager, way: &str) -> Outcome {
    let guard = blocking::Mutex::new(&manager, "/lock")?.acquire()?;
    println!("held");
    match way {
        "shutdown" => manager.shutdown()?,
        "exit" => exit(0),
        "wait" => go_on(),
        #[expect(clippy::panic, reason = "it is the way out")]
        "panic" => {
            let panicked = thread::spawn(move || {
                let _guard = guard;
                panic!("in a thread");
            });
            let _ = panicked.join();
            go_on();
        }
        other => return Err(format!("no way out is called {other}").into()),
    }
    Ok(())
}

/// Until no test needs the process any more.
fn go_on() {
    println!("goes on");
    let _ = stdin().lines().next();
}
