//! Java Curator's own `InterProcessReadWriteLock` and our read/write lock are one lock.

use std::time::Duration;

use futures::FutureExt;
use lockkeeper::{Owner, ReadGuard, RwLock, WriteGuard};
use lockkeeper_tests::{CuratorGrant, CuratorThread, Proxies, Timing, eventually};
use tokio::sync::mpsc;

use super::fixture::{Failure, InteropFixture, Outcome, SHORTLY};
use crate::support::connect_briefly;

const AT_ONCE: Duration = Duration::ZERO;

fn lock(fixture: &InteropFixture) -> RwLock {
    RwLock::new(&fixture.manager, &fixture.path).unwrap()
}

#[tokio::test]
async fn a_java_reader_shares_with_our_readers_and_a_java_writer_excludes_all() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/rw-java-holds").await? else {
        return Ok(());
    };
    let (lock, thread) = (lock(&fixture), fixture.java.thread("holder"));
    let grant = thread.read(&fixture.path).await?;
    let read = lock.try_read().await?.expect("readers share");
    assert!(lock.try_write().await?.is_none());
    read.release().await?;
    thread.end_read(&fixture.path).await?;

    let write = thread.write(&fixture.path).await?;
    assert!(write.czxid > grant.czxid);
    assert!(lock.try_read().await?.is_none());
    assert!(lock.try_write().await?.is_none());
    assert!(lock.write_timeout(SHORTLY).await.unwrap_err().is_timeout());
    assert_eq!(fixture.queue_of(1).await?, [write.node], "a failed try leaves no node");
    thread.end_write(&fixture.path).await?;
    let ours = lock.try_write().await?.expect("free");
    assert!(ours.fencing_token().as_u64() > write.czxid);
    ours.release().await?;
    Ok(())
}

#[tokio::test]
async fn our_reader_shares_with_java_readers_and_our_writer_excludes_all() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/rw-rust-holds").await? else {
        return Ok(());
    };
    let (path, thread) = (&fixture.path, fixture.java.thread("other"));
    let lock = lock(&fixture).for_owner(&Owner::new("order 4711"));
    let read = lock.read().await?;
    assert!(thread.read_timeout(path, AT_ONCE).await?.is_some(), "readers share");
    thread.end_read(path).await?;
    assert_eq!(thread.write_timeout(path, SHORTLY).await?, None);
    read.release().await?;

    let write = lock.write().await?;
    assert_eq!(thread.read_timeout(path, AT_ONCE).await?, None);
    assert_eq!(thread.write_timeout(path, SHORTLY).await?, None);
    // We read under our write; after its release Java reads, too.
    let read = lock.read().await?;
    assert_eq!(thread.read_timeout(path, AT_ONCE).await?, None);
    write.release().await?;
    assert!(thread.read_timeout(path, AT_ONCE).await?.is_some());
    assert_eq!(fixture.java.thread("writer").write_timeout(path, AT_ONCE).await?, None);
    thread.end_read(path).await?;
    read.release().await?;
    assert!(thread.write_timeout(path, AT_ONCE).await?.is_some());
    thread.end_write(path).await?;
    Ok(())
}

/// A hold of one side in either language.
enum Held {
    JavaRead(CuratorThread, CuratorGrant),
    JavaWrite(CuratorThread, CuratorGrant),
    Read(ReadGuard),
    Write(WriteGuard),
}

impl Held {
    async fn take(lock: &RwLock, thread: Option<CuratorThread>, reads: bool) -> Result<Self, Failure> {
        let path = lock.path().as_str();
        Ok(match (thread, reads) {
            (None, true) => Self::Read(lock.read().await?),
            (None, false) => Self::Write(lock.write().await?),
            (Some(thread), true) => {
                let grant = thread.read(path).await?;
                Self::JavaRead(thread, grant)
            }
            (Some(thread), false) => {
                let grant = thread.write(path).await?;
                Self::JavaWrite(thread, grant)
            }
        })
    }

    fn token(&self) -> u64 {
        match self {
            Self::JavaRead(_, grant) | Self::JavaWrite(_, grant) => grant.czxid,
            Self::Read(guard) => guard.fencing_token().as_u64(),
            Self::Write(guard) => guard.fencing_token().as_u64(),
        }
    }

    async fn give_back(self, path: &str) -> Outcome {
        match self {
            Self::JavaRead(thread, _) => thread.end_read(path).await?,
            Self::JavaWrite(thread, _) => thread.end_write(path).await?,
            Self::Read(guard) => guard.release().await?,
            Self::Write(guard) => guard.release().await?,
        }
        Ok(())
    }
}

#[tokio::test]
async fn readers_and_writers_of_both_share_one_queue() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/rw-queue").await? else {
        return Ok(());
    };
    let lock = lock(&fixture);
    let mut held = vec![Held::take(&lock, None, false).await?];
    let (sender, mut grants) = mpsc::unbounded_channel();
    // Each changes the side or the language: Java's writer behind our reader, ours behind Java's, and so on.
    let contenders = [
        ("a", true),
        ("", true),
        ("b", false),
        ("", true),
        ("", false),
        ("c", true),
        ("d", false),
        ("", false),
    ];
    for (position, (java, reads)) in contenders.into_iter().enumerate() {
        let thread = (!java.is_empty()).then(|| fixture.java.thread(java));
        let (lock, sender) = (lock.clone(), sender.clone());
        tokio::spawn(async move { sender.send((position, Held::take(&lock, thread, reads).await)).ok() });
        fixture.queue_of(position + 2).await?;
    }
    // The two first readers are granted together.
    for expected in [vec![0, 1], vec![2], vec![3], vec![4], vec![5], vec![6], vec![7]] {
        assert!(grants.is_empty(), "granted while the lock is held");
        let newest = held.iter().map(Held::token).max();
        for one in held.drain(..) {
            one.give_back(&fixture.path).await?;
        }
        let mut positions = Vec::new();
        for _ in &expected {
            let (position, next) = grants.recv().await.expect("the next grant");
            let next = next?;
            assert!(Some(next.token()) > newest);
            positions.push(position);
            held.push(next);
        }
        positions.sort_unstable();
        assert_eq!(positions, expected);
    }
    for one in held {
        one.give_back(&fixture.path).await?;
    }
    fixture.queue_of(0).await?;
    Ok(())
}

#[tokio::test]
async fn a_waiting_java_writer_is_not_granted_by_our_downgrade() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/rw-downgrade").await? else {
        return Ok(());
    };
    let (lock, path) = (lock(&fixture), fixture.path.clone());
    let write = lock.write().await?;
    let (writer, reader) = (fixture.java.thread("writer"), fixture.java.thread("reader"));
    let waiting = tokio::spawn({
        let (writer, path) = (writer.clone(), path.clone());
        async move { writer.write(&path).await }
    });
    fixture.queue_of(2).await?;

    let read = write.downgrade().await?;
    let queue = fixture.queue_of(2).await?;
    assert_eq!(queue[0], *read.path());
    // The Java writer has noticed the end of our writer, and watches the reader that replaced it.
    eventually("Java has listed again", Timing::event(), async || {
        let watched = fixture.ensemble.server(0).watches().await.ok()?;
        watched.contains_key(read.path().as_str()).then_some(())
    })
    .await?;
    assert_eq!(reader.read_timeout(&path, AT_ONCE).await?, None, "granted before a waiting writer");
    assert!(read.is_valid() && !waiting.is_finished());
    read.release().await?;
    assert_eq!(waiting.await??.node, queue[1]);
    writer.end_write(&path).await?;
    Ok(())
}

/// A defect of Curator before 5.5 (CURATOR-621): its downgraded reader gets a sequence number behind the
/// waiters, so the next writer is granted beside it. Our writer is granted no earlier than a writer of
/// Curator. Since 5.5 the reader has the writer's number, as ours has.
#[tokio::test]
async fn a_waiting_writer_is_granted_beside_a_reader_downgraded_by_curator_before_5_5_only() -> Outcome {
    for writer_is_java in [true, false] {
        let Some(fixture) =
            InteropFixture::at(&format!("/interop/rw-java-downgrades-{writer_is_java}")).await?
        else {
            return Ok(());
        };
        let (lock, path, thread) = (lock(&fixture), fixture.path.clone(), fixture.java.thread("holder"));
        let is_defective = fixture.java.version() < (5, 5, 0);
        thread.write(&path).await?;
        let java = writer_is_java.then(|| fixture.java.thread("writer"));
        let waiting = tokio::spawn({
            let (lock, java) = (lock.clone(), java.clone());
            async move { Held::take(&lock, java, false).await }
        });
        fixture.queue_of(2).await?;
        let grant = thread.read(&path).await?;
        let queue = fixture.queue_of(3).await?;
        let is_behind = queue[2] == grant.node;
        assert_eq!(is_behind, is_defective, "{queue:?}");
        assert!(!waiting.is_finished());
        thread.end_write(&path).await?;
        if is_defective {
            waiting.await??.give_back(&path).await?;
            // A later contender does wait for that reader.
            assert!(lock.try_write().await?.is_none());
            thread.end_read(&path).await?;
        } else {
            assert!(lock.try_write().await?.is_none());
            assert!(!waiting.is_finished(), "granted beside a reader");
            thread.end_read(&path).await?;
            waiting.await??.give_back(&path).await?;
        }
        lock.write().await?.release().await?;
    }
    Ok(())
}

#[tokio::test]
async fn our_writer_is_granted_when_the_session_of_a_killed_java_reader_ends() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/rw-java-dies").await? else {
        return Ok(());
    };
    let lock = lock(&fixture);
    let grant = fixture.java.thread("reader").read(&fixture.path).await?;
    let waiter = tokio::spawn(async move { lock.write().await });
    fixture.queue_of(2).await?;
    fixture.java.kill().await?;
    let guard = waiter.await??;
    let dump = fixture.ensemble.server(0).dump().await?;
    assert!(!dump.sessions.contains(&fixture.java.session()), "granted before the reader's session ended");
    assert!(guard.fencing_token().as_u64() > grant.czxid);
    guard.release().await?;
    Ok(())
}

#[tokio::test]
async fn our_severed_reader_is_lost_before_a_java_writer_is_granted() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/rw-rust-dies").await? else {
        return Ok(());
    };
    let proxies = Proxies::start(fixture.ensemble).await?;
    let severed = connect_briefly(&proxies.connect_string()).await;
    let read = RwLock::new(&severed, &fixture.path)?.write().await?.downgrade().await?;
    let writer = fixture.java.thread("writer");
    let waiter = tokio::spawn({
        let path = fixture.path.clone();
        async move { writer.write(&path).await }
    });
    fixture.queue_of(2).await?;

    let granted = async {
        let grant = waiter.await??;
        assert!(read.lost().now_or_never().is_some(), "granted before the loss");
        Ok::<_, Failure>(grant)
    };
    let session = proxies.sessions()[0].id;
    let expired = async { Ok(proxies.sever_until_expired(session).await?) };
    let (grant, ()) = tokio::try_join!(granted, expired)?;
    assert!(grant.czxid > read.fencing_token().as_u64() && !read.is_valid());
    Ok(())
}
