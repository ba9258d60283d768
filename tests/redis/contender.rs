//! A process whose tasks take a lock, again and again, and tell a witness.
//!
//! `redis_contender URL NAME WITNESS ROUNDS LEASE_MS LIMIT TASKS`. With a limit of one the lock is a mutex,
//! otherwise a semaphore, of which the tasks take one permit, two, three and so on.

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use lockkeeper_redis::{ConnectionManager, Lock, Mutex, Semaphore};
use lockkeeper_redis_tests::Failure;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, name, witness, rounds, lease, limit, tasks] = arguments.as_slice() else {
        return Err("usage: redis_contender URL NAME WITNESS ROUNDS LEASE_MS LIMIT TASKS".into());
    };
    // A release that gets no answer for as long as a lease is no failure on a busy machine.
    let manager = ConnectionManager::builder(url).operation_timeout(Duration::from_secs(60));
    let manager = manager.lease(Duration::from_millis(lease.parse()?)).connect().await?;
    let (rounds, limit): (u32, u32) = (rounds.parse()?, limit.parse()?);
    let contenders = (0..tasks.parse()?).map(|task| {
        let permits = 1 + task % limit;
        let lock: Result<Arc<dyn Lock>, _> = match limit {
            1 => Mutex::new(&manager, name).map(|mutex| Arc::new(mutex) as _),
            _ => Semaphore::new(&manager, name, limit).map(|some| Arc::new(some.permits(permits)) as _),
        };
        async move { contend(&*lock?, witness, rounds, permits).await }
    });
    try_join_all(contenders).await?;
    manager.shutdown().await?;
    Ok(())
}

async fn contend(lock: &dyn Lock, witness: &str, rounds: u32, permits: u32) -> Result<(), Failure> {
    let mut done = 0;
    while done < rounds {
        // A new connection: a task that lost the lock before its marks were sent has given up the old one.
        let (read, mut write) = TcpStream::connect(witness).await?.into_split();
        let mut answers = BufReader::new(read).lines();
        while done < rounds {
            let guard = lock.acquire().await?;
            let token = guard.fencing_token().as_u64();
            let marks = guard.run(async {
                for verb in ["enter", "leave"] {
                    write.write_all(format!("{verb} {token} {permits}\n").as_bytes()).await?;
                    answers.next_line().await?.ok_or("the witness is gone")?;
                }
                Ok::<_, Failure>(())
            });
            // On a busy machine a process may not run for longer than its lease.
            let Ok(seen) = marks.await else { break };
            seen?;
            match guard.release().await {
                Err(error) if !error.is_lost() => return Err(error.into()),
                _ => done += 1,
            }
        }
    }
    Ok(())
}
