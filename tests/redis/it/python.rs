//! redis-py's own lock on the same key.

use std::time::Duration;

use lockkeeper_redis::Mutex;
use lockkeeper_redis_tests::{left_out, python};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::fixture::{LONG, client, server, wait_for_queue};

/// Answers each line `try`, `take` and `release` by one line.
const PROGRAM: &str = r#"
import sys, redis
lock = redis.Redis(host="127.0.0.1", port=int(sys.argv[1])).lock("a", timeout=60, sleep=0.01)
for line in sys.stdin:
    verb = line.strip()
    if verb == "release":
        try:
            lock.release()
            print("released", flush=True)
        except redis.exceptions.LockError as error:
            print("not ours", flush=True)
    else:
        print(lock.acquire(blocking=verb == "take"), flush=True)
"#;

struct Py {
    _process: Child,
    input: ChildStdin,
    output: tokio::io::Lines<BufReader<ChildStdout>>,
}

impl Py {
    async fn start(port: u16) -> Self {
        let mut process = python(PROGRAM, &[&port.to_string()]).await.unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { _process: process, input, output: BufReader::new(output).lines() }
    }

    async fn send(&mut self, verb: &str) {
        self.input.write_all(format!("{verb}\n").as_bytes()).await.unwrap();
    }

    async fn answer(&mut self) -> String {
        self.output.next_line().await.unwrap().unwrap()
    }

    async fn ask(&mut self, verb: &str) -> String {
        self.send(verb).await;
        self.answer().await
    }
}

#[tokio::test]
async fn the_lock_of_redis_py_excludes_ours_and_is_excluded_by_it() {
    if left_out() {
        return;
    }
    let server = server().await;
    let mutex = Mutex::new(&client(&server, LONG).await, "a").unwrap();
    let mut py = Py::start(server.port()).await;

    assert_eq!(py.ask("try").await, "True");
    assert!(mutex.try_acquire().await.unwrap().is_none());
    assert!(mutex.acquire_timeout(Duration::from_millis(20)).await.unwrap_err().is_timeout());
    let waiting = tokio::spawn({
        let mutex = mutex.clone();
        async move { mutex.acquire().await.unwrap() }
    });
    wait_for_queue(&server, "a", 1).await;
    assert_eq!(py.ask("release").await, "released");
    // Nothing tells of that release: the first waiter looks.
    let guard = waiting.await.unwrap();

    assert_eq!(py.ask("try").await, "False");
    py.send("take").await;
    guard.release().await.unwrap();
    assert_eq!(py.answer().await, "True");
    assert!(mutex.try_acquire().await.unwrap().is_none());
    assert_eq!(py.ask("release").await, "released");
    assert!(mutex.try_acquire().await.unwrap().is_some());
}
