//! This library behind the line protocol of the drivers of other languages in `tests/peers/`.
//!
//! ```text
//! acquire THREAD PATH -1              a Mutex; answers "TOKEN NODE"
//! release THREAD PATH                 answers nothing, as do all verbs that give something back
//! read THREAD PATH -1                 an RwLock, for reading; given back by unread
//! write THREAD PATH -1                an RwLock, for writing; given back by unwrite
//! enter THREAD PATH -1                a Mutex in semaphore layout; given back by leave
//! latch THREAD PATH -1                an Election; given back by unlatch
//! select THREAD PATH -1               an Election in selector layout; given back by unselect
//! permits THREAD PATH LIMIT COUNT -1  a Semaphore; given back by return
//! trycount THREAD PATH                adds one to a SharedCount, once: answers what it was, and
//!                                     true or false
//! tryvalue THREAD PATH TEXT           the same of a SharedValue: appends the text
//! addlong THREAD PATH NUMBER TIMES    a Counter: answers the last sum
//! offer THREAD PATH KIND LOCKS DETAIL VALUE,...
//!                                     puts items into a WorkQueue with the nodes of another client
//! workoff THREAD PATH KIND LOCKS RECEIPTS
//!                                     takes items from now on: each is a node in RECEIPTS
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{ConnectionManager, Election, MultiLockGuard, Mutex, RwLock, Semaphore};
use parking_lot::Mutex as Shared;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::values::Values;
use crate::{queues, say};

type Failure = Box<dyn Error + Send + Sync>;
type Held = Arc<Shared<HashMap<(String, String), MultiLockGuard>>>;

pub(crate) async fn serve(connect: &str, session: Duration) -> Result<(), Box<dyn Error>> {
    let manager = ConnectionManager::builder(connect)
        .session_timeout(session)
        .tick_time(Duration::from_millis(500))
        .connect_deadline(Duration::from_secs(60))
        .connect()
        .await?;
    say("ready 0")?;
    let (held, values) = (Held::default(), Arc::new(Values::new(&manager)));
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let (manager, held, values) = (manager.clone(), Arc::clone(&held), Arc::clone(&values));
        tokio::spawn(async move {
            let (tag, request) = line.split_once(' ').unwrap_or((&line, ""));
            let said = match obey(&manager, &held, &values, request).await {
                Ok(answer) => say(&format!("{tag} ok {answer}")),
                Err(error) => say(&format!("{tag} failed {error}")),
            };
            if said.is_err() {
                std::process::exit(1);
            }
        });
    }
    // The process that started this one has ended: this one ends as in a crash.
    std::process::exit(1);
}

async fn obey(
    manager: &ConnectionManager,
    held: &Held,
    values: &Values,
    request: &str,
) -> Result<String, Failure> {
    let words: Vec<&str> = request.split(' ').collect();
    let [verb, thread, path, rest @ ..] = words.as_slice() else { return Err("too few words".into()) };
    let lock: Box<dyn ZooKeeperLock> = match *verb {
        "acquire" => Box::new(Mutex::new(manager, *path)?),
        "enter" => Box::new(Mutex::in_semaphore_layout(manager, *path)?),
        "latch" => Box::new(Election::new(manager, *path, *thread)?),
        "select" => Box::new(Election::in_selector_layout(manager, *path, *thread)?),
        "read" => Box::new(RwLock::new(manager, *path)?.reader()),
        "write" => Box::new(RwLock::new(manager, *path)?.writer()),
        "permits" => {
            let [limit, count, ..] = rest else { return Err("how many?".into()) };
            Box::new(Semaphore::new(manager, *path, limit.parse()?)?.permits(count.parse()?))
        }
        "trycount" => return values.try_count(path).await,
        "tryvalue" => return values.try_value(path, rest.first().ok_or("which text?")?).await,
        "addlong" => {
            let [number, times, ..] = rest else { return Err("how much?".into()) };
            return values.add(path, number.parse()?, times.parse()?).await;
        }
        "offer" => return queues::offer(manager, path, rest).await,
        "workoff" => return queues::work_off(manager, path, rest).await,
        _ => {
            let guard = held.lock().remove(&((*thread).to_owned(), (*path).to_owned()));
            guard.ok_or("not held")?.release().await.map_err(|errors| errors.to_string())?;
            return Ok(String::new());
        }
    };
    let guard = lock.acquire().await?;
    let (_, token) = guard.fencing_tokens().next().ok_or("no token")?;
    let answer = format!("{} {path}", token.as_u64());
    held.lock().insert(((*thread).to_owned(), (*path).to_owned()), guard);
    Ok(answer)
}
