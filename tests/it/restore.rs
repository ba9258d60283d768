//! Fencing tokens after the data of a server was restored from a backup.

use std::fs;
use std::path::Path;

use lockkeeper::{ConnectionManager, Error, FencingToken, IdBlocks, Mutex, Semaphore};
use lockkeeper_tests::{Ensemble, Timing};

use crate::support::{brief_builder, builder};

/// A resource that refuses a token that is smaller than one that it has seen. It stores one integer.
#[derive(Default)]
struct Resource(u128);

impl Resource {
    fn takes(&mut self, token: FencingToken) -> bool {
        let is_new = token.as_u128() >= self.0;
        self.0 = self.0.max(token.as_u128());
        is_new
    }
}

async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Timing::settle(), work).await.unwrap_or_else(|_| panic!("no end of {what}"))
}

async fn token(manager: &ConnectionManager) -> FencingToken {
    let guard = Mutex::new(manager, "/lock").unwrap().acquire().await.unwrap();
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    token
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[tokio::test]
async fn after_a_restore_a_resource_takes_the_tokens_of_the_next_generation_and_no_others() {
    let ensemble = Ensemble::lend().await.unwrap();
    let (server, connect_string) = (ensemble.server(0), ensemble.connect_string());
    let home = server.log_file().parent().unwrap().to_owned();
    let (data, backup) = (home.join("data"), home.join("backup"));
    let mut resource = Resource::default();

    let manager = builder(&connect_string).connect().await.unwrap();
    assert!(resource.takes(token(&manager).await));
    manager.shutdown().await.unwrap();
    server.stop().await.unwrap();
    copy(&data, &backup);
    server.start().await.unwrap();

    let manager = builder(&connect_string).connect().await.unwrap();
    for _ in 0..3 {
        assert!(resource.takes(token(&manager).await));
    }
    let last = token(&manager).await;
    assert!(resource.takes(last));
    manager.shutdown().await.unwrap();
    server.stop().await.unwrap();
    fs::remove_dir_all(&data).unwrap();
    copy(&backup, &data);
    server.start().await.unwrap();

    // The ids of transactions start again: without a new generation the resource refuses the valid holder.
    let former = builder(&connect_string).connect().await.unwrap();
    let again = token(&former).await;
    assert!(again < last && !resource.takes(again), "{again} after {last}");

    let next = builder(&connect_string).token_generation(1).connect().await.unwrap();
    let guard = Mutex::new(&next, "/lock").unwrap().acquire().await.unwrap();
    assert_eq!(guard.fencing_token().generation(), 1);
    assert!(guard.fencing_token() > last && resource.takes(guard.fencing_token()));
    assert!(Mutex::new(&former, "/lock").unwrap().try_acquire().await.unwrap().is_none(), "two holders");
    let seen = Mutex::new(&next, "/lock").unwrap().inspect().await.unwrap();
    let shown = seen.holders().next().and_then(|of| of.fencing_token());
    assert_eq!(shown, Some(guard.fencing_token()));
    guard.release().await.unwrap();
    // A process that keeps the former generation, or was paused since before the restore.
    assert!(!resource.takes(token(&former).await) && !resource.takes(last));
    former.shutdown().await.unwrap();
    next.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_process_that_lives_while_the_servers_lose_their_data_gets_no_token_and_no_id_again() {
    let ensemble = Ensemble::lend().await.unwrap();
    let (server, connect_string) = (ensemble.server(0), ensemble.connect_string());
    let data = server.log_file().parent().unwrap().join("data");
    // The test waits for the end of its session.
    let manager = brief_builder(&connect_string).connect().await.unwrap();
    let ids = IdBlocks::new(&manager, "/ids", 4).unwrap();
    let mut given = Vec::new();
    for _ in 0..10 {
        given.push(ids.next().await.unwrap());
        token(&manager).await;
    }
    let last = token(&manager).await;
    server.stop().await.unwrap();
    // Nothing is left but the number of the server.
    fs::remove_dir_all(data.join("version-2")).unwrap();
    server.start().await.unwrap();

    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let refused = within("an acquire", mutex.acquire()).await.unwrap_err();
    let Error::ServersReset { seen, now, .. } = &refused else { panic!("{refused}") };
    assert!(now < seen && seen.get().cast_unsigned() >= last.as_u64(), "{refused}");
    let semaphore = Semaphore::new(&manager, "/semaphore", 2).unwrap();
    let refused = within("a permit", semaphore.acquire()).await.unwrap_err();
    assert!(matches!(refused, Error::ServersReset { .. }), "{refused}");
    let refused = loop {
        match within("an id", ids.next()).await {
            Ok(id) => given.push(id),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::ServersReset { .. }), "{refused}");
    // Its last block may have been on its way.
    assert!(given.iter().copied().eq(1..=12) || given.iter().copied().eq(1..=16), "{given:?}");

    let next = builder(&connect_string).token_generation(1).connect().await.unwrap();
    assert!(token(&next).await > last);
    manager.shutdown().await.unwrap();
    next.shutdown().await.unwrap();
}
