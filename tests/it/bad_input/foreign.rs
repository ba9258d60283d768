//! Foreign nodes in ZooKeeper: children and data of other clients, and parents that cannot have children.

use std::time::Duration;

use lockkeeper::error::{RateLimiterError, Refusal, SemaphoreError};
use lockkeeper::locks::SharedLimit;
use lockkeeper::{Error, MultiLock, Mutex, Owner, RateLimiter, ReentrantMutex, RwLock, Semaphore};
use lockkeeper_tests::{CreateMode, Ensemble, RawClient};

use crate::support::{LONG, builder, connect};

async fn make(raw: &mut RawClient, path: &str, data: &[u8], mode: CreateMode) {
    let mut above = String::new();
    for part in path.split('/').skip(1) {
        above = format!("{above}/{part}");
        let (data, mode) = if above == path { (data, mode) } else { (&b""[..], CreateMode::Persistent) };
        match raw.create(&above, data, mode).await {
            Err(error) if error.code() == Some(-110) => {}
            made => drop(made.unwrap()),
        }
    }
}

#[tokio::test]
async fn children_without_a_sequence_number_are_no_contenders_whatever_their_names() {
    let ensemble = Ensemble::shared().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mut raw = ensemble.raw().await.unwrap();
    let names =
        ["x", "lock-", "_c_", "_c_-lock-", "lock-123", "…", "-", "__lock__", "lease-x", "lock-0000000000x"];
    for directory in ["/odd/m", "/odd/s/locks", "/odd/e", "/odd/w", "/odd/r"] {
        for name in names {
            make(&mut raw, &format!("{directory}/{name}"), b"\xff\0", CreateMode::Persistent).await;
        }
    }
    // As a limiter makes it.
    raw.set_data("/odd/r", b"no starts\n").await.unwrap();
    let mutex = Mutex::new(&manager, "/odd/m").unwrap();
    let lock = RwLock::new(&manager, "/odd/w").unwrap();
    let semaphore = Semaphore::new(&manager, "/odd/s", 2).unwrap();
    mutex.acquire().await.unwrap().release().await.unwrap();
    ReentrantMutex::new(&manager, "/odd/e")
        .unwrap()
        .acquire(&Owner::new("a"))
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    lock.write().await.unwrap().downgrade().await.unwrap().release().await.unwrap();
    semaphore.acquire_many(2).await.unwrap().release().await.unwrap();
    let limiter = RateLimiter::new(&manager, "/odd/r", 1, Duration::from_secs(60)).unwrap();
    let _spent = limiter.admit().await.unwrap();
    let all =
        MultiLock::builder().lock(&mutex).lock(&lock.reader()).lock(&semaphore.permits(1)).build().unwrap();
    all.acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn foreign_data_is_ignored_or_shown() {
    let ensemble = Ensemble::shared().await.unwrap();
    let manager = builder(&ensemble.connect_string()).session_timeout(LONG).connect().await.unwrap();
    let mut raw = ensemble.raw().await.unwrap();
    for (number, data) in
        [&b"\xff\xfe\0"[..], b"", b"12345", b"{}", &[0xff; 4], &[0; 100_000]].into_iter().enumerate()
    {
        let at = |name: &str| format!("/data/{number}/{name}");
        // A limit has four bytes, and is not below zero.
        make(&mut raw, &at("limit"), data, CreateMode::Persistent).await;
        let limit = SharedLimit::new(&manager, at("limit")).unwrap();
        let error = limit.get().await.unwrap_err();
        assert!(
            matches!(error.recipe(), Some(SemaphoreError::NoLimit { .. }))
                && error.to_string().contains("SharedLimit::set"),
            "{error}"
        );
        let shared = Semaphore::new_shared(&manager, at("shared"), &limit).unwrap();
        assert!(matches!(shared.acquire().await.unwrap_err().recipe(), Some(SemaphoreError::NoLimit { .. })));
        limit.set(1).await.unwrap();
        shared.acquire().await.unwrap().release().await.unwrap();
        // The library does not read the data of a directory.
        make(&mut raw, &at("m"), data, CreateMode::Persistent).await;
        make(&mut raw, &at("s/leases"), data, CreateMode::Persistent).await;
        Mutex::new(&manager, at("m")).unwrap().acquire().await.unwrap().release().await.unwrap();
        Semaphore::new(&manager, at("s"), 3).unwrap().acquire_many(3).await.unwrap().release().await.unwrap();
        // A limiter does not replace data that is no window.
        make(&mut raw, &at("r"), data, CreateMode::Persistent).await;
        let limiter = RateLimiter::new(&manager, at("r"), 1, Duration::from_secs(60)).unwrap();
        let error = limiter.try_admit().await.unwrap_err();
        assert!(matches!(error.recipe(), Some(RateLimiterError::ForeignNode { .. })), "{error}");
        // The error shows the predecessor's data even if the bytes are no text.
        let held = at("h/_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-lock-");
        make(&mut raw, &held, data, CreateMode::EphemeralSequential).await;
        let error = Mutex::new(&manager, at("h"))
            .unwrap()
            .acquire_timeout(Duration::from_millis(50))
            .await
            .unwrap_err();
        assert!(error.is_timeout() && error.to_string().len() < 1000, "{error}");
    }
}

#[tokio::test]
async fn a_lock_below_an_ephemeral_node_fails_with_an_error_that_says_so() {
    let ensemble = Ensemble::shared().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mut raw = ensemble.raw().await.unwrap();
    raw.create("/fleeting", b"", CreateMode::Ephemeral).await.unwrap();
    let refused: Vec<Error> = vec![
        Mutex::new(&manager, "/fleeting/m").unwrap().acquire().await.unwrap_err(),
        Mutex::new(&manager, "/fleeting").unwrap().try_acquire().await.unwrap_err(),
        Mutex::in_semaphore_layout(&manager, "/fleeting/o").unwrap().acquire().await.unwrap_err(),
        ReentrantMutex::new(&manager, "/fleeting/e").unwrap().acquire(&Owner::new("a")).await.unwrap_err(),
        RwLock::new(&manager, "/fleeting/w").unwrap().read().await.unwrap_err(),
        Semaphore::new(&manager, "/fleeting/s", 1).unwrap().acquire().await.unwrap_err(),
        SharedLimit::new(&manager, "/fleeting/l").unwrap().set(1).await.unwrap_err(),
        RateLimiter::new(&manager, "/fleeting/r", 1, Duration::from_secs(1))
            .unwrap()
            .admit()
            .await
            .unwrap_err(),
        {
            let members = ["/fleeting/a", "/fleeting/b"].map(|path| Mutex::new(&manager, path).unwrap());
            let all = members.iter().fold(MultiLock::builder(), |builder, member| builder.lock(member));
            all.build().unwrap().acquire().await.unwrap_err().into()
        },
    ];
    for (place, error) in refused.into_iter().enumerate() {
        let Error::Refused { refusal, .. } = &error else { panic!("{place}: {error}") };
        assert_eq!(*refusal, Refusal::EphemeralParent, "{place}: {error}");
        assert!(error.to_string().contains("ephemeral nodes have no children"), "{error}");
    }
}
