//! The results of `inspect()`.

use std::time::Duration;

use lockkeeper::config::{Acl, Permissions};
use lockkeeper::error::Refusal;
use lockkeeper::inspect::{AgeClock, Role};
use lockkeeper::locks::SharedLimit;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{
    Error, Inspection, MultiLock, Mutex, Owner, RateLimiter, ReentrantMutex, RwLock, Semaphore,
};
use lockkeeper_tests::{CreateMode, Ensemble};

use crate::support::{builder, children, connect};

fn roles(seen: &Inspection) -> Vec<Role> {
    seen.contenders().iter().map(lockkeeper::inspect::ContenderInfo::role).collect()
}

#[tokio::test]
async fn every_contender_is_shown_in_the_order_of_the_queue_whichever_client_created_it() {
    let ensemble = Ensemble::shared().await.unwrap();
    let (one, other) = (connect(&ensemble.connect_string()).await, connect(&ensemble.connect_string()).await);
    let path = "/inspect/mutex";
    let mutex = ReentrantMutex::new(&one, path).unwrap();
    let guard = mutex.acquire(&Owner::new("order 4711")).await.unwrap();
    let mut raw = ensemble.raw().await.unwrap();
    let java = format!("{path}/_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-lock-");
    raw.create(&java, b"10.1.2.3", CreateMode::EphemeralSequential).await.unwrap();
    let kazoo = format!("{path}/6f9619ff8b864d11b42d00cf4fc964ff__lock__");
    raw.create(&kazoo, &[0xff, 0x1b, b'!'], CreateMode::EphemeralSequential).await.unwrap();
    raw.create(&format!("{path}/readme"), b"", CreateMode::Ephemeral).await.unwrap();
    let last =
        Mutex::new(&other, path).unwrap().with_node_data("host=b pid=7 nightly").enqueue().await.unwrap();

    let onlooker = connect(&ensemble.connect_string()).await;
    let before = children(ensemble, path).await;
    let seen = Mutex::new(&onlooker, path).unwrap().inspect().await.unwrap();
    assert_eq!(children(ensemble, path).await, before, "an inspection changed nodes");
    assert_eq!(roles(&seen), [Role::Holder, Role::Waiter, Role::Waiter, Role::Waiter, Role::Foreign]);
    let positions: Vec<Option<u32>> = seen.contenders().iter().map(|of| of.position()).collect();
    assert_eq!(positions, [Some(0), Some(1), Some(2), Some(3), None]);
    assert_eq!(last.position(), Some(3));

    let all = seen.contenders();
    assert_eq!(all[0].path(), guard.path());
    assert_eq!(all[0].fencing_token(), Some(guard.fencing_token()));
    assert_eq!(all[0].identity().owner(), Some("order 4711"));
    assert_eq!(all[0].identity().pid(), Some(std::process::id()));
    assert_eq!((all[1].session(), all[1].identity().note()), (raw.session(), Some("10.1.2.3")));
    assert_eq!(all[2].identity().to_string(), "\\xff\\u{1b}!");
    assert_eq!(all[3].identity().note(), Some("nightly"));
    assert!(all.iter().all(|of| of.data().is_some()));

    let shown = seen.to_string();
    assert!(shown.starts_with(&format!("mutex {path}: held by 1, 3 waiting\n")), "{shown}");
    for part in ["order 4711", "10.1.2.3", "\\xff\\u{1b}!", &format!("{:#x}", raw.session()), all[0].name()] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    // The columns are aligned.
    let starts: Vec<Option<usize>> = shown
        .lines()
        .skip(1)
        .map(|line| {
            let node = line.split_whitespace().last().unwrap();
            line.char_indices().map(|(at, _)| at).find(|at| line[*at..].starts_with(node))
        })
        .collect();
    assert!(starts.windows(2).all(|two| two[0].is_some() && two[0] == two[1]), "{shown}");
}

#[tokio::test]
async fn ages_are_by_the_servers_clock_once_it_is_known() {
    let ensemble = Ensemble::shared().await.unwrap();
    let (one, other) = (connect(&ensemble.connect_string()).await, connect(&ensemble.connect_string()).await);
    let guard = Mutex::new(&one, "/inspect/age").unwrap().acquire().await.unwrap();
    let mutex = Mutex::new(&other, "/inspect/age").unwrap();
    let seen = mutex.inspect().await.unwrap();
    assert_eq!(seen.contenders()[0].age_clock(), AgeClock::Local);
    assert!(seen.to_string().contains('~'), "{seen}");

    let ticket = mutex.enqueue().await.unwrap();
    let seen = mutex.inspect().await.unwrap();
    let (holder, waiter) = (&seen.contenders()[0], &seen.contenders()[1]);
    assert_eq!(holder.age_clock(), AgeClock::Server);
    assert!(!seen.to_string().contains('~'), "{seen}");
    // Both ages are by one clock: their difference is that of the creation times.
    let apart = waiter.since().duration_since(holder.since()).unwrap();
    assert_eq!(holder.age() - waiter.age(), apart);
    drop((ticket, guard));
}

#[tokio::test]
async fn a_queue_longer_than_a_batch_is_shown_whole() {
    let ensemble = Ensemble::shared().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = Mutex::new(&manager, "/inspect/long").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let tickets = futures::future::join_all((0..299).map(|_| mutex.enqueue())).await;
    let seen = mutex.inspect().await.unwrap();
    assert_eq!(seen.holders().count(), 1);
    let positions: Vec<u32> = seen.waiters().filter_map(|of| of.position()).collect();
    assert_eq!(positions, (1..300).collect::<Vec<u32>>());
    let (short, whole) = (seen.to_string(), format!("{seen:#}"));
    assert_eq!(whole.lines().count(), 302);
    assert!(short.lines().count() < 40 && short.ends_with("… and 270 more"), "{short}");
    drop((tickets, guard));
}

#[tokio::test]
async fn readers_and_writers_are_distinguished() {
    let ensemble = Ensemble::shared().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let lock = RwLock::new(&manager, "/inspect/rw").unwrap();
    let reads = [lock.read().await.unwrap(), lock.read().await.unwrap()];
    let _writer = lock.enqueue_write().await.unwrap();
    let _reader = lock.enqueue_read().await.unwrap();
    let seen = lock.inspect().await.unwrap();
    assert_eq!(roles(&seen), [Role::Holder, Role::Holder, Role::Waiter, Role::Waiter]);
    assert_eq!(seen.contenders()[2].position(), Some(2));
    assert_eq!(seen.contenders()[3].position(), Some(1), "a reader waits for writers alone");
    assert_eq!(seen.contenders()[0].fencing_token(), None);
    assert_eq!(lock.reader().inspect().await.unwrap().len(), 1);
    let shown = seen.to_string();
    for part in ["reads ", "waits to write ", "waits to read "] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    drop(reads);
}

#[tokio::test]
async fn permits_in_use_and_free_permits_are_counted_and_the_queue_is_shown() {
    let ensemble = Ensemble::shared().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let semaphore = Semaphore::new(&manager, "/inspect/semaphore", 4).unwrap();
    let empty = semaphore.inspect().await.unwrap();
    assert_eq!((empty.limit(), empty.free(), empty.contenders().len()), (Some(4), Some(4), 0));
    let lease = semaphore.acquire_many(3).await.unwrap();
    let _first = semaphore.enqueue_many(2).await.unwrap();
    let _second = semaphore.enqueue().await.unwrap();
    // The semaphore has another limit: the inspection shows the one in force.
    let seen = Semaphore::new(&manager, "/inspect/semaphore", 9).unwrap().inspect().await.unwrap();
    assert_eq!((seen.limit(), seen.free()), (Some(4), Some(1)));
    assert_eq!(seen.holders().count(), 3);
    let waiting: Vec<Option<u32>> = seen.waiters().map(|of| of.position()).collect();
    assert_eq!(waiting, [Some(0), Some(1)]);
    let head = "semaphore /inspect/semaphore: 3 of 4 permits out, 1 free, 2 waiting";
    assert_eq!(seen.to_string().lines().next(), Some(head));
    drop(lease);

    let limit = SharedLimit::new(&manager, "/inspect/limit").unwrap();
    let shared = Semaphore::new_shared(&manager, "/inspect/shared", &limit).unwrap();
    assert_eq!(shared.inspect().await.unwrap().limit(), None);
    limit.set(2).await.unwrap();
    assert_eq!(shared.inspect().await.unwrap().free(), Some(2));
}

#[tokio::test]
async fn a_mutex_in_semaphore_layout_shows_its_holder_and_its_queue() {
    let ensemble = Ensemble::shared().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = Mutex::in_semaphore_layout(&manager, "/inspect/by-semaphore").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let _ticket = mutex.enqueue().await.unwrap();
    let seen = mutex.inspect().await.unwrap();
    assert_eq!(roles(&seen), [Role::Holder, Role::Waiter]);
    assert_eq!(seen.contenders()[0].path(), guard.path());
    assert_eq!(seen.limit(), None);
}

#[tokio::test]
async fn starts_within_the_window_are_shown_and_earlier_ones_are_not() {
    let ensemble = Ensemble::shared().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let calls = RateLimiter::new(&manager, "/inspect/starts", 3, Duration::from_secs(3600)).unwrap();
    drop(calls.admit_many(2).await.unwrap());
    let seen = calls.inspect().await.unwrap();
    assert_eq!((seen.limit(), seen.free()), (Some(3), Some(1)));
    let window = seen.window().unwrap();
    assert_eq!((window.limit(), window.used(), window.next_free()), (3, 2, Duration::ZERO));
    assert!(seen.to_string().contains("2 of 3 starts in the window, 1 free"), "{seen}");

    let short = RateLimiter::new(&manager, "/inspect/over", 1, Duration::from_millis(1)).unwrap();
    let short = short.with_grace(Duration::from_millis(1));
    drop(short.admit().await.unwrap());
    // The client learns the servers' clock from writes.
    while short.inspect().await.unwrap().free() == Some(0) {
        drop(calls.try_admit().await);
    }
}

#[tokio::test]
async fn members_of_a_multi_lock_are_shown_one_by_one_also_through_the_trait() {
    let ensemble = Ensemble::shared().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let (a, b) =
        (Mutex::new(&manager, "/inspect/m/a").unwrap(), Semaphore::new(&manager, "/inspect/m/b", 2).unwrap());
    let both = MultiLock::builder().lock(&b.permits(1)).lock(&a).build().unwrap();
    let guard = both.acquire().await.unwrap();
    let lock: &dyn ZooKeeperLock = &both;
    let seen = lock.inspect().await.unwrap();
    let paths: Vec<&str> = seen.iter().map(|of| of.path().as_str()).collect();
    assert_eq!(paths, ["/inspect/m/a", "/inspect/m/b"]);
    assert!(seen.iter().all(|of| of.holders().count() == 1));
    guard.release().await.unwrap();
}

/// Since ZooKeeper 3.8.4 and 3.9.2 a client that may not read a node is not even told that it exists.
#[tokio::test]
async fn the_permission_to_read_is_enough_and_an_unreadable_node_is_shown_or_named_by_the_error() {
    let ensemble = Ensemble::shared().await.unwrap();
    let (servers, path) = (ensemble.connect_string(), "/inspect-rights/lock");
    let version = ensemble.server(0).version().await.unwrap();
    let shows_existence = version < (3, 8, 4) || ((3, 9, 0)..(3, 9, 2)).contains(&version);
    let readable = Acl::new(Permissions::ALL, "auth", "").and(Permissions::READ, "world", "anyone");
    let owner = builder(&servers).digest_auth("ops", "secret").acl(readable).connect().await.unwrap();
    let guard = Mutex::new(&owner, path).unwrap().acquire().await.unwrap();
    let hidden =
        builder(&servers).digest_auth("ops", "secret").acl(Acl::creator_only()).connect().await.unwrap();
    let stranger = connect(&servers).await;
    let mutex = Mutex::new(&stranger, path).unwrap();
    let error = mutex.try_acquire().await.unwrap_err();
    assert!(matches!(error, Error::Refused { refusal: Refusal::NoAuth, .. }), "{error}");
    let seen = mutex.inspect().await.unwrap();
    assert_eq!(seen.contenders()[0].path(), guard.path());
    assert_eq!(roles(&seen), [Role::Holder]);

    let _waiting = Mutex::new(&hidden, path).unwrap().enqueue().await.unwrap();
    if !shows_existence {
        let error = mutex.inspect().await.unwrap_err();
        assert!(matches!(error, Error::Refused { refusal: Refusal::NoAuth, .. }), "{error}");
        assert!(error.to_string().contains("/inspect-rights/lock/_c_"), "{error}");
        return;
    }
    let seen = mutex.inspect().await.unwrap();
    assert_eq!(roles(&seen), [Role::Holder, Role::Waiter]);
    assert_eq!(seen.contenders()[1].data(), None);
    assert!(seen.to_string().contains("(may not be read)"), "{seen}");
}
