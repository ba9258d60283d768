//! Arguments and servers that cannot keep the promises: typed errors that say what to do.

use std::time::Duration;

use lockkeeper_redis::{
    ConnectError, ConnectionManager, Error, ErrorKind, Lock, Mutex, RateLimiter, ReentrantMutex, Semaphore,
};
use lockkeeper_redis_tests::{RedisServer, left_out};

use crate::fixture::{LONG, client, server};

#[tokio::test]
async fn malformed_urls_and_settings_are_refused_before_anything_is_sent() {
    for url in ["", "127.0.0.1", "http://127.0.0.1/", "redis://127.0.0.1:port/", "redis://127.0.0.1/x"] {
        let error = ConnectionManager::connect(url).await.unwrap_err();
        assert!(matches!(error, ConnectError::Config(_)), "{url}: {error}");
    }
    let secret = ConnectionManager::connect("redis://user:geheim@127.0.0.1/x").await.unwrap_err();
    assert!(!secret.to_string().contains("geheim"), "{secret}");
    let builder = format!("{:?}", ConnectionManager::builder("redis://user:geheim@127.0.0.1/"));
    assert!(!builder.contains("geheim"), "{builder}");
    // Nothing listens there, and nothing is asked.
    for lease in [Duration::ZERO, Duration::from_millis(99), Duration::MAX] {
        let error =
            ConnectionManager::builder("redis://127.0.0.1:1/").lease(lease).connect().await.unwrap_err();
        assert!(matches!(error, ConnectError::Config(_)), "{lease:?}: {error}");
    }
    let no_time = ConnectionManager::builder("redis://127.0.0.1:1/").operation_timeout(Duration::ZERO);
    assert!(matches!(no_time.connect().await.unwrap_err(), ConnectError::Config(_)));
    // Without any time nothing is tried, and the error is that no server answered.
    let no_time = ConnectionManager::builder("redis://127.0.0.1:1/").connect_deadline(Duration::ZERO);
    assert!(matches!(no_time.connect().await.unwrap_err(), ConnectError::Timeout { .. }));
}

#[tokio::test]
async fn the_longest_times_are_times_like_any_other() {
    if left_out() {
        return;
    }
    let server = server().await;
    let manager = ConnectionManager::builder(&server.url())
        .lease(Duration::from_secs(24 * 3_600))
        .operation_timeout(Duration::MAX)
        .connect_deadline(Duration::MAX)
        .connect()
        .await
        .unwrap();
    let mutex = Mutex::new(&manager, "a").unwrap();
    let guard = mutex.acquire_timeout(Duration::MAX).await.unwrap();
    assert!(guard.is_valid() && mutex.try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
    let semaphore = Semaphore::new(&manager, "s", 1_000_000_000).unwrap();
    semaphore.acquire_many_timeout(1_000_000_000, Duration::MAX).await.unwrap().release().await.unwrap();
    let year = Duration::from_secs(366 * 24 * 3_600);
    let limiter = RateLimiter::new(&manager, "r", 1_000, year).unwrap().with_grace(Duration::MAX);
    assert!(limiter.admit_many(1_000).await.unwrap().is_fresh());
    let error = limiter.admit_timeout(Duration::from_secs(24 * 3_600)).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    manager.shutdown_within(Duration::MAX).await.unwrap();
}

#[tokio::test]
async fn a_database_that_the_server_does_not_have_is_refused_at_once() {
    if left_out() {
        return;
    }
    let server = server().await;
    for number in ["99999", "-1"] {
        let error = ConnectionManager::connect(&format!("{}{number}", server.url())).await.unwrap_err();
        assert!(!matches!(error, ConnectError::Timeout { .. }), "{number}: {error}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_after_the_deadline() {
    let deadline = Duration::from_millis(200);
    let connect = ConnectionManager::builder("redis://127.0.0.1:1/").connect_deadline(deadline).connect();
    let error = connect.await.unwrap_err();
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error}");
    assert_eq!(Error::from(error).kind(), ErrorKind::Disconnected);
}

#[tokio::test]
async fn wrong_credentials_are_refused_at_once() {
    if left_out() {
        return;
    }
    let server = server().await;
    let mut raw = server.raw().await.unwrap();
    let _: String =
        redis::cmd("CONFIG").arg(&["SET", "requirepass", "geheim"]).query_async(&mut raw).await.unwrap();
    for password in ["", "x:falsch@", ":falsch@"] {
        let url = format!("redis://{password}127.0.0.1:{}/", server.port());
        let error = ConnectionManager::connect(&url).await.unwrap_err();
        assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
    }
    let url = format!("redis://:geheim@127.0.0.1:{}/", server.port());
    let manager = ConnectionManager::connect(&url).await.unwrap();
    Mutex::new(&manager, "a").unwrap().acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn names_and_numbers_that_cannot_work_are_refused_without_a_request() {
    if left_out() {
        return;
    }
    let mut server = server().await;
    let manager = client(&server, LONG).await;
    server.kill().await.unwrap();
    let long = "a".repeat(1_025);
    for name in ["", "a{b", "a}b", "{}a", "{a}", "a\0b", "a\nb", &long] {
        let errors = [
            Mutex::new(&manager, name).map(drop),
            ReentrantMutex::new(&manager, name).map(drop),
            Semaphore::new(&manager, name, 1).map(drop),
            RateLimiter::new(&manager, name, 1, LONG).map(drop),
        ];
        for error in errors.map(Result::unwrap_err) {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{name:?}");
            assert!(error.to_string().starts_with("name is "), "{error}");
        }
    }
    assert!(Semaphore::new(&manager, "s", 0).is_err() && Semaphore::new(&manager, "s", u32::MAX).is_err());
    for (starts, window) in [(0, LONG), (1, Duration::ZERO), (u32::MAX, LONG), (1, Duration::MAX)] {
        assert!(RateLimiter::new(&manager, "r", starts, window).is_err());
    }
    let semaphore = Semaphore::new(&manager, "s", 2).unwrap();
    assert_eq!(semaphore.acquire_many(0).await.unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(semaphore.acquire_many(3).await.unwrap_err().kind(), ErrorKind::Recipe);
    assert_eq!(semaphore.permits(0).acquire().await.unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(semaphore.permits(3).try_acquire().await.unwrap_err().kind(), ErrorKind::Recipe);
    let limiter = RateLimiter::new(&manager, "r", 2, LONG).unwrap();
    assert_eq!(limiter.admit_many(0).await.unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(limiter.admit_many(3).await.unwrap_err().kind(), ErrorKind::Recipe);
    let reentrant = ReentrantMutex::new(&manager, "b").unwrap();
    assert_eq!(reentrant.acquire_scoped().await.unwrap_err().kind(), ErrorKind::Misuse);
}

#[tokio::test]
async fn a_key_of_another_kind_and_a_user_without_rights_are_errors_that_name_the_cause() {
    if left_out() {
        return;
    }
    let server = server().await;
    let manager = client(&server, LONG).await;
    let mut raw = server.raw().await.unwrap();
    let _: i64 = redis::cmd("RPUSH").arg("list").arg("1").query_async(&mut raw).await.unwrap();
    let error = Mutex::new(&manager, "list").unwrap().acquire().await.unwrap_err();
    assert!(matches!(error, Error::ConflictingKind { .. }), "{error}");
    let error = Semaphore::new(&manager, "list", 2).unwrap().acquire().await.unwrap_err();
    assert!(matches!(error, Error::ConflictingKind { .. }), "{error}");
    let held = Mutex::new(&manager, "a").unwrap().acquire().await.unwrap();
    let error = Semaphore::new(&manager, "a", 2).unwrap().try_acquire().await.unwrap_err();
    assert!(matches!(error, Error::ConflictingKind { .. }), "{error}");
    held.release().await.unwrap();

    let user =
        ["SETUSER", "reader", "on", ">p", "~*", "&*", "+@connection", "+subscribe", "+get", "+evalsha"];
    let _: String = redis::cmd("ACL").arg(&user).query_async(&mut raw).await.unwrap();
    let url = format!("redis://reader:p@127.0.0.1:{}/", server.port());
    let reader = ConnectionManager::connect(&url).await.unwrap();
    let error = Mutex::new(&reader, "b").unwrap().acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
}

#[tokio::test]
async fn a_server_without_memory_refuses_and_grants_nothing() {
    if left_out() {
        return;
    }
    let server = RedisServer::start(&["--maxmemory", "1", "--maxmemory-policy", "noeviction"]).await.unwrap();
    let manager = client(&server, LONG).await;
    let error = Mutex::new(&manager, "a").unwrap().acquire().await.unwrap_err();
    assert!(matches!(&error, Error::Refused { cause, .. } if cause.contains("OOM")), "{error}");
}

#[tokio::test]
async fn a_semaphore_and_a_rate_limiter_of_one_name_do_not_touch_each_other() {
    if left_out() {
        return;
    }
    let server = server().await;
    let manager = client(&server, LONG).await;
    let (semaphore, limiter) =
        (Semaphore::new(&manager, "a", 1).unwrap(), RateLimiter::new(&manager, "a", 2, LONG).unwrap());
    let lease = semaphore.acquire().await.unwrap();
    let error = limiter.try_admit().await.unwrap_err();
    assert!(matches!(error, Error::ConflictingKind { .. }), "{error}");
    lease.release().await.unwrap();
    assert!(limiter.try_admit().await.unwrap().admitted().is_some());
    for error in [semaphore.acquire().await.map(drop), semaphore.available().await.map(drop)] {
        assert!(matches!(error.as_ref().unwrap_err(), Error::ConflictingKind { .. }), "{error:?}");
    }
    assert!(limiter.try_admit().await.unwrap().admitted().is_some());
    assert!(limiter.try_admit().await.unwrap().admitted().is_none());
}

#[tokio::test]
async fn an_acquire_that_was_refused_leaves_nothing_to_release() {
    if left_out() {
        return;
    }
    let server = server().await;
    let mut raw = server.raw().await.unwrap();
    let _: i64 = redis::cmd("RPUSH").arg("list").arg("1").query_async(&mut raw).await.unwrap();
    let manager = client(&server, LONG).await;
    let error = Mutex::new(&manager, "list").unwrap().acquire().await.unwrap_err();
    assert!(matches!(error, Error::ConflictingKind { .. }), "{error}");
    manager.shutdown().await.unwrap();
}
