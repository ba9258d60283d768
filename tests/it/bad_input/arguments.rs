//! Invalid arguments: a typed error that says what to change, and no request.

use std::time::Duration;

use lockkeeper::config::{Acl, ConnectionManagerBuilder};
use lockkeeper::error::{ConfigError, ConnectError};
use lockkeeper::locks::SharedLimit;
use lockkeeper::{
    ConnectionManager, DoubleBarrier, Error, IdBlocks, MultiLock, Mutex, Owner, RateLimiter, ReentrantMutex,
    RwLock, Semaphore,
};
use lockkeeper_tests::{OpCode, Proxies, Record};

use crate::support::{behind_proxy, builder};

/// Longer than the limit for paths.
fn too_long() -> String {
    format!("/{}", "x".repeat(5000))
}

/// Paths that a server refuses, and a word of the error's advice.
fn bad_paths() -> Vec<(String, &'static str)> {
    let mut paths: Vec<(String, &str)> = [
        ("", "is empty"),
        ("relative/path", "absolute"),
        (" /a", "absolute"),
        ("/a/", "last slash"),
        ("//", "last slash"),
        ("//a", "'//'"),
        ("/a//b", "'//'"),
        ("/a/./b", "'.'"),
        ("/..", "'..'"),
        ("/a/../b", "'..'"),
        ("/a\0b", "character"),
        ("/a\nb", "character"),
        ("/\u{7f}", "character"),
        ("/\u{e000}", "character"),
        ("/\u{ffff}", "character"),
    ]
    .map(|(path, word)| (path.to_owned(), word))
    .into();
    paths.push((too_long(), "longer than"));
    paths
}

type Constructor = fn(&ConnectionManager, &str) -> Option<Error>;

/// Each recipe with a path, and whether it accepts the root.
const CONSTRUCTORS: [(&str, Constructor, bool); 8] = [
    ("Mutex", |manager, path| Mutex::new(manager, path).err(), false),
    ("Mutex, semaphore layout", |manager, path| Mutex::in_semaphore_layout(manager, path).err(), false),
    ("ReentrantMutex", |manager, path| ReentrantMutex::new(manager, path).err(), false),
    ("RwLock", |manager, path| RwLock::new(manager, path).err(), false),
    ("Semaphore", |manager, path| Semaphore::new(manager, path, 1).err(), false),
    ("RateLimiter", |manager, path| RateLimiter::new(manager, path, 1, Duration::from_secs(1)).err(), false),
    (
        "Semaphore, shared limit",
        |manager, path| {
            let limit = SharedLimit::new(manager, "/limit").unwrap();
            Semaphore::new_shared(manager, path, &limit).err()
        },
        false,
    ),
    ("SharedLimit", |manager, path| SharedLimit::new(manager, path).err(), true),
];

/// The requests of callers, without the session's own.
fn nothing_was_sent(proxies: &Proxies, after: &str) {
    let log = proxies.log();
    let own = |parts: &[(OpCode, String)]| parts.iter().all(|(op, _)| *op == OpCode::Check);
    let asked: Vec<&Record> =
        log.requests().filter(|request| request.op != OpCode::Multi || !own(&request.parts)).collect();
    assert!(asked.is_empty(), "after {after}: {asked:?}");
}

#[tokio::test]
async fn bad_paths_are_refused_by_every_recipe_before_a_request_is_sent() {
    let (_ensemble, proxies, manager) = behind_proxy().await;
    for (name, construct, takes_root) in CONSTRUCTORS {
        for (path, word) in bad_paths() {
            let error = construct(&manager, &path).unwrap_or_else(|| panic!("{name} takes {path:?}"));
            let shown: String = path.chars().take(30).collect();
            assert!(matches!(error, Error::Config(ConfigError::Path(_))), "{name}, {shown:?}: {error}");
            assert!(error.to_string().contains(word), "{name}, {shown:?}: {error}");
            assert!(error.to_string().len() < 1000, "a path of any length does not fill the log");
        }
        let root = construct(&manager, "/");
        assert_eq!(root.is_none(), takes_root, "{name} at the root: {root:?}");
        if let Some(error) = root {
            assert!(
                matches!(error, Error::Config(_)) && error.to_string().contains("path of its own"),
                "{error}"
            );
        }
        nothing_was_sent(&proxies, name);
    }
    // The names that the library appends count as well.
    let nearly = format!("/{}", "x".repeat(4090));
    assert!(matches!(Semaphore::new(&manager, nearly.as_str(), 1).unwrap_err(), Error::Config(_)));
    assert!(matches!(RateLimiter::new(&manager, nearly, 1, Duration::MAX).unwrap_err(), Error::Config(_)));
    nothing_was_sent(&proxies, "long paths");
}

#[tokio::test]
async fn senseless_numbers_are_refused_before_a_request_is_sent() {
    let (_ensemble, proxies, manager) = behind_proxy().await;
    let second = Duration::from_secs(1);
    let semaphore = Semaphore::new(&manager, "/s", 2).unwrap();
    let limit = SharedLimit::new(&manager, "/limit").unwrap();
    let limiter = RateLimiter::new(&manager, "/r", 2, second).unwrap();
    let mut refused: Vec<(&str, Error, &str)> = vec![
        ("no permits", Semaphore::new(&manager, "/s", 0).unwrap_err(), "one or more"),
        ("uncountable permits", Semaphore::new(&manager, "/s", u32::MAX).unwrap_err(), "2147483647"),
        ("negative for Curator", Semaphore::new(&manager, "/s", 1 << 31).unwrap_err(), "2147483647"),
        ("a limit as large", limit.set(u32::MAX).await.unwrap_err(), "2147483647"),
        ("none of two", semaphore.acquire_many(0).await.unwrap_err(), "one or more"),
        ("three of two", semaphore.acquire_many(3).await.unwrap_err(), "2 in all"),
        ("all there could be", semaphore.try_acquire_many(u32::MAX).await.unwrap_err(), "2 in all"),
        ("three in time", semaphore.acquire_many_timeout(3, second).await.unwrap_err(), "2 in all"),
        ("no starts", RateLimiter::new(&manager, "/r", 0, second).unwrap_err(), "one or more"),
        ("no window", RateLimiter::new(&manager, "/r", 1, Duration::ZERO).unwrap_err(), "millisecond"),
        (
            "hardly a window",
            RateLimiter::new(&manager, "/r", 1, Duration::from_nanos(9)).unwrap_err(),
            "millisecond",
        ),
        ("no start of two", limiter.admit_many(0).await.unwrap_err(), "one or more"),
        ("three starts of two", limiter.admit_many(3).await.unwrap_err(), "2 in a window"),
        ("no members", DoubleBarrier::new(&manager, "/d", 0).unwrap_err(), "one or more"),
        ("no ids", IdBlocks::new(&manager, "/i", 0).unwrap_err(), "one or more"),
        ("nothing to lock", MultiLock::builder().build().unwrap_err(), ""),
        (
            "no owner",
            ReentrantMutex::new(&manager, "/e").unwrap().acquire_scoped().await.unwrap_err(),
            "owner",
        ),
        (
            "too many in a request",
            {
                let wide = Semaphore::new(&manager, "/wide", 1 << 30).unwrap();
                wide.acquire_many(1 << 30).await.unwrap_err()
            },
            "",
        ),
    ];
    refused.extend(refused_data(&manager, semaphore, limiter).await);
    for (name, error, word) in refused {
        assert!(matches!(error, Error::Config(_) | Error::Recipe(_)), "{name}: {error:?}");
        assert!(error.to_string().contains(word), "{name}: {error}");
        assert!(!error.is_transient() && !error.outcome_unknown(), "{name}");
    }
    let other = builder(&proxies.connect_string()).connect().await.unwrap();
    let strange = Semaphore::new_shared(&other, "/s", &limit).unwrap_err();
    assert!(strange.to_string().contains("manager of the semaphore"), "{strange}");
    nothing_was_sent(&proxies, "all of it");
}

/// The errors of acquires with data that fits into no request.
async fn refused_data(
    manager: &ConnectionManager,
    semaphore: Semaphore,
    limiter: RateLimiter,
) -> Vec<(&'static str, Error, &'static str)> {
    let huge = vec![b'x'; 2_000_000];
    let mutex = Mutex::new(manager, "/m").unwrap();
    let reentrant = ReentrantMutex::new(manager, "/e").unwrap().with_node_data(huge.clone());
    let lock = RwLock::new(manager, "/w").unwrap().with_node_data(huge.clone());
    vec![
        ("data of a mutex", mutex.with_node_data(huge.clone()).acquire().await.unwrap_err(), "at most"),
        ("data of a reentrant one", reentrant.acquire(&Owner::new("a")).await.unwrap_err(), "at most"),
        ("data of a reader", lock.read().await.unwrap_err(), "at most"),
        ("data of leases", semaphore.with_node_data(huge.clone()).acquire().await.unwrap_err(), "a megabyte"),
        ("data of starts", limiter.with_node_data(huge).admit().await.unwrap_err(), "at most"),
    ]
}

#[tokio::test]
async fn a_timeout_of_zero_is_a_try_and_an_endless_one_does_not_panic() {
    let (_ensemble, _proxies, manager) = behind_proxy().await;
    let (mutex, lock) = (Mutex::new(&manager, "/m").unwrap(), RwLock::new(&manager, "/w").unwrap());
    let semaphore = Semaphore::new(&manager, "/s", 1).unwrap();
    let reentrant = ReentrantMutex::new(&manager, "/e").unwrap();
    let (one, other) = (Owner::new("one"), Owner::new("other"));
    let limiter = RateLimiter::new(&manager, "/r", 1, Duration::MAX).unwrap();
    let all = MultiLock::builder().lock(&mutex).lock(&lock.writer()).build().unwrap();
    for time in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        // A free lock needs no wait, but a timeout shorter than an answer may be too short even for that.
        let is_enough = time != Duration::from_nanos(1);
        let had = [
            all.acquire_timeout(time).await.map(drop).map_err(Error::from),
            mutex.acquire_timeout(time).await.map(drop),
            lock.read_timeout(time).await.map(drop),
            lock.write_timeout(time).await.map(drop),
            semaphore.acquire_timeout(time).await.map(drop),
            reentrant.acquire_timeout(&one, time).await.map(drop),
        ];
        for (place, had) in had.into_iter().enumerate() {
            match had {
                Ok(()) => {}
                Err(error) => assert!(!is_enough && error.is_timeout(), "{place} for {time:?}: {error}"),
            }
        }
    }
    let _spent = limiter.admit_timeout(Duration::MAX).await.unwrap();
    let _held = (
        mutex.acquire().await.unwrap(),
        lock.for_owner(&one).write().await.unwrap(),
        semaphore.acquire().await.unwrap(),
        reentrant.acquire(&one).await.unwrap(),
    );
    for time in [Duration::ZERO, Duration::from_nanos(1), Duration::from_millis(1)] {
        let missed = [
            all.acquire_timeout(time).await.map(drop).map_err(Error::from),
            mutex.acquire_timeout(time).await.map(drop),
            lock.for_owner(&other).read_timeout(time).await.map(drop),
            lock.for_owner(&other).write_timeout(time).await.map(drop),
            semaphore.acquire_timeout(time).await.map(drop),
            reentrant.acquire_timeout(&other, time).await.map(drop),
            limiter.admit_timeout(time).await.map(drop),
        ];
        for (place, missed) in missed.into_iter().enumerate() {
            assert!(missed.as_ref().unwrap_err().is_timeout(), "{place} for {time:?}: {missed:?}");
        }
    }
}

type Setting = fn(ConnectionManagerBuilder) -> ConnectionManagerBuilder;

#[tokio::test]
async fn invalid_connection_settings_are_refused_before_a_request_is_sent() {
    // No server listens there: an attempt to connect would return another error, and only after a while.
    for text in [
        "",
        " ",
        ",",
        "/",
        "/app",
        "127.0.0.1:1,",
        ",127.0.0.1:1",
        "127.0.0.1:1,,127.0.0.1:2",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
        "127.0.0.1:port",
        "127.0.0.1:1:2",
        "::1",
        "[::1",
        "[::1]1",
        "[]",
        "host name:1",
        "host\0:1",
        "http://127.0.0.1:1",
        "tcp+tls://127.0.0.1:1",
        "127.0.0.1:1/app/",
        "127.0.0.1:1//",
        "127.0.0.1:1/../x",
        "127.0.0.1:1/a\0",
        "://",
        "tcp://",
    ] {
        // Only a build without TLS refuses it.
        if text.starts_with("tcp+tls") && cfg!(feature = "secured") {
            continue;
        }
        let error = ConnectionManager::connect(text).await.expect_err(text);
        assert!(matches!(error, ConnectError::Config(ConfigError::ConnectString(_))), "{text:?}: {error}");
        assert!(
            error.to_string().contains(';') || error.to_string().contains("bad chroot"),
            "{text:?}: {error}"
        );
    }
    let settings: [(&str, Setting); 10] = [
        ("session_timeout", |builder| builder.session_timeout(Duration::ZERO)),
        ("session_timeout", |builder| builder.session_timeout(Duration::MAX)),
        ("session_timeout", |builder| {
            builder.session_timeout(Duration::from_secs(1)).tick_time(Duration::from_secs(1))
        }),
        ("tick_time", |builder| builder.tick_time(Duration::ZERO)),
        ("tick_time", |builder| builder.tick_time(Duration::MAX)),
        ("operation_timeout", |builder| builder.operation_timeout(Duration::ZERO)),
        ("connect_deadline", |builder| builder.connect_deadline(Duration::ZERO)),
        ("node data", |builder| builder.node_data(vec![0; 2_000_000])),
        ("acl", |builder| builder.acl(Acl::creator_only())),
        ("acl", |builder| builder.acl(Acl::creator_only()).session_timeout(Duration::from_secs(9))),
    ];
    for (name, set) in settings {
        let error = set(builder("127.0.0.1:1")).connect().await.expect_err(name);
        assert!(matches!(error, ConnectError::Config(_)), "{name}: {error}");
        assert!(error.to_string().contains(name), "{name}: {error}");
    }
}
