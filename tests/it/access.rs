//! Access lists: every node that the library creates carries them, and they keep foreign clients out.

use std::collections::BTreeMap;
use std::time::Duration;

use lockkeeper::config::{Acl, ConnectionManagerBuilder, Permissions};
use lockkeeper::error::Refusal;
use lockkeeper::locks::{MultiLockBuilder, SharedLimit};
use lockkeeper::{
    ConnectionManager, Error, MultiLock, Mutex, Owner, RateLimiter, ReentrantMutex, RwLock, Semaphore,
};
use lockkeeper_tests::{CreateMode, Ensemble, RawClient, Timing};
use tokio::task::JoinSet;

use crate::support::builder;

/// `shop:secret`, as the server writes it into an access list.
const SHOP: &str = "shop:dzbWUe+BoZHFZvyDrDT/LzC6kmA=";
const NO_AUTH: i32 = -102;
const NOT_EMPTY: i32 = -111;
/// No test waits so long.
const LONG: Duration = Duration::from_secs(600);

/// All nodes are below a chroot, which the library creates as well.
fn shop(ensemble: &Ensemble) -> ConnectionManagerBuilder {
    builder(&format!("{}/guarded/app", ensemble.connect_string()))
        .digest_auth("shop", "secret")
        .acl(Acl::creator_only())
}

/// All nodes below `/guarded` with their access lists, read by a client that may read them.
async fn access_lists(raw: &mut RawClient) -> BTreeMap<String, Vec<(i32, String, String)>> {
    let (mut found, mut open) = (BTreeMap::new(), vec!["/guarded".to_owned()]);
    while let Some(path) = open.pop() {
        let children = raw.children(&path).await.unwrap();
        open.extend(children.into_iter().map(|child| format!("{path}/{child}")));
        found.insert(path.clone(), raw.access_list(&path).await.unwrap());
    }
    found
}

/// Keeps the guards and waits that it is given until it is dropped.
#[derive(Default)]
struct HeldGrants(JoinSet<()>);

impl HeldGrants {
    fn keep<T: Send + 'static>(&mut self, taken: T) {
        self.wait(std::future::ready(Ok(taken)));
    }

    fn wait<T: Send + 'static>(&mut self, wait: impl Future<Output = Result<T, Error>> + Send + 'static) {
        self.0.spawn(async move {
            let _taken = wait.await.unwrap();
            std::future::pending().await
        });
    }
}

/// Acquires every recipe, and starts a waiter for every recipe that has waiters.
async fn everything_taken(manager: &ConnectionManager) -> Result<HeldGrants, Error> {
    let mut kept = HeldGrants::default();
    for mutex in [Mutex::new(manager, "/mutex")?, Mutex::in_semaphore_layout(manager, "/one")?] {
        kept.keep(mutex.acquire().await?);
        kept.wait(async move { mutex.acquire().await });
    }
    let reentrant = ReentrantMutex::new(manager, "/reentrant")?;
    kept.keep(reentrant.acquire(&Owner::new("a")).await?);

    let lock = RwLock::new(manager, "/rw")?;
    let (mine, theirs) = (lock.for_owner(&Owner::new("a")), lock.for_owner(&Owner::new("b")));
    kept.keep((mine.write().await?, mine.read().await?));
    kept.wait(async move { theirs.read().await });

    let limit = SharedLimit::new(manager, "/limits/shared")?;
    limit.set(2).await?;
    let fixed = Semaphore::new(manager, "/semaphore", 2)?;
    for semaphore in [fixed, Semaphore::new_shared(manager, "/shared", &limit)?] {
        kept.keep(semaphore.acquire_many(2).await?);
        kept.wait(async move { semaphore.acquire().await });
    }
    let limiter = RateLimiter::new(manager, "/rate", 1, LONG)?;
    let _spent = limiter.admit().await?;
    kept.wait(async move { limiter.admit().await });

    kept.keep(several(manager, "/all").build()?.acquire().await?);
    kept.keep(several(manager, "/once").atomic().build()?.acquire().await?);
    manager.znodes().create("/register", b"", lockkeeper::znodes::CreateMode::Persistent).await?;
    Ok(kept)
}

fn several(manager: &ConnectionManager, below: &str) -> MultiLockBuilder {
    let members = ["a", "b"].map(|name| Mutex::new(manager, format!("{below}/{name}")).unwrap());
    members.iter().fold(MultiLock::builder(), |builder, member| builder.lock(member))
}

/// How often each kind of node occurs after [`everything_taken`], without sequence numbers and UUIDs.
fn kinds(paths: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for path in paths {
        let (above, name) = path.rsplit_once('/').unwrap();
        let kind = match name.strip_prefix("_c_") {
            Some(contender) => format!("{above}/{}", &contender[37..contender.len() - 10]),
            None => path.clone(),
        };
        *kinds.entry(kind.trim_start_matches("/guarded/app").to_owned()).or_default() += 1;
    }
    kinds
}

/// The nodes after [`everything_taken`].
fn expected() -> BTreeMap<String, usize> {
    let nodes = "/guarded /mutex /one /one/locks /one/leases /reentrant /rw /semaphore /semaphore/locks \
        /semaphore/leases /limits /limits/shared /shared /shared/locks /shared/leases /rate \
        /all /all/a /all/b /once /once/a /once/b /register";
    let mut expected: BTreeMap<String, usize> =
        nodes.split_whitespace().map(|path| (path.to_owned(), 1)).collect();
    expected.insert(String::new(), 1);
    for (contenders, count) in [
        ("/mutex/lock-", 2),
        ("/one/locks/lock-", 1),
        ("/one/leases/lease-", 1),
        ("/reentrant/lock-", 1),
        ("/rw/__WRIT__", 1),
        ("/rw/__READ__", 2),
        ("/semaphore/locks/lock-", 1),
        ("/semaphore/leases/lease-", 2),
        ("/shared/locks/lock-", 1),
        ("/shared/leases/lease-", 2),
        ("/rate/limit-", 1),
        ("/all/a/lock-", 1),
        ("/all/b/lock-", 1),
        ("/once/a/lock-", 1),
        ("/once/b/lock-", 1),
    ] {
        expected.insert(contenders.to_owned(), count);
    }
    expected
}

/// Waits until every waiter has a node in its queue.
async fn settled(raw: &mut RawClient) -> BTreeMap<String, Vec<(i32, String, String)>> {
    let begun = tokio::time::Instant::now();
    loop {
        let lists = access_lists(raw).await;
        let kinds = kinds(lists.keys().cloned());
        if kinds == expected() {
            return lists;
        }
        assert!(begun.elapsed() < Timing::settle(), "{kinds:#?}");
    }
}

#[tokio::test]
async fn every_created_node_carries_the_access_list_and_foreign_clients_can_do_nothing() {
    let ensemble = Ensemble::lend().await.unwrap();
    let owner = shop(&ensemble).connect().await.unwrap();
    let kept = everything_taken(&owner).await.unwrap();
    let mut raw = ensemble.raw().await.unwrap();
    raw.authenticate("digest", "shop:secret").await.unwrap();
    let lists = settled(&mut raw).await;
    for (path, list) in &lists {
        assert_eq!(*list, [(31, "digest".to_owned(), SHOP.to_owned())], "{path}");
    }

    // By another identity and by none; by a recipe and by raw requests.
    for identity in [None, Some("bank:vault")] {
        let stranger = builder(&format!("{}/guarded/app", ensemble.connect_string()));
        let stranger = match identity.and_then(|identity| identity.split_once(':')) {
            Some((user, password)) => stranger.digest_auth(user, password),
            None => stranger,
        };
        let stranger = stranger.connect().await.unwrap();
        for (name, error) in tries(&stranger).await {
            let Error::Refused { refusal: Refusal::NoAuth, .. } = &error else { panic!("{name}: {error}") };
            assert!(error.to_string().contains("check the ACL and the authentication"), "{name}: {error}");
        }
        let mut raw = ensemble.raw().await.unwrap();
        if let Some(identity) = identity {
            raw.authenticate("digest", identity).await.unwrap();
        }
        for path in lists.keys() {
            let child = format!("{path}/x");
            let refusals = [
                raw.children(path).await.map(drop),
                raw.data(path).await.map(drop),
                raw.set_data(path, b"x").await.map(drop),
                raw.create(&child, b"x", CreateMode::Persistent).await.map(drop),
            ];
            for refused in refusals {
                assert_eq!(refused.unwrap_err().code(), Some(NO_AUTH), "{path}");
            }
            let code = raw.delete(path).await.unwrap_err().code();
            // Every client may change the root, but its children prevent its removal.
            assert!(
                code == Some(NO_AUTH) || (path == "/guarded" && code == Some(NOT_EMPTY)),
                "{path}: {code:?}"
            );
        }
    }
    assert_eq!(kinds(access_lists(&mut raw).await.into_keys()), expected(), "nothing was changed");
    drop(kept);
    owner.shutdown().await.unwrap();
}

/// The error of each recipe for a foreign client.
async fn tries(manager: &ConnectionManager) -> Vec<(&'static str, Error)> {
    let owner = Owner::new("stranger");
    let mutex = Mutex::new(manager, "/mutex").unwrap();
    let one = Mutex::in_semaphore_layout(manager, "/one").unwrap();
    let reentrant = ReentrantMutex::new(manager, "/reentrant").unwrap();
    let rw = RwLock::new(manager, "/rw").unwrap();
    let semaphore = Semaphore::new(manager, "/semaphore", 2).unwrap();
    let limit = SharedLimit::new(manager, "/limits/shared").unwrap();
    let shared = Semaphore::new_shared(manager, "/shared", &limit).unwrap();
    let limiter = RateLimiter::new(manager, "/rate", 1, LONG).unwrap();
    let (ordered, atomic) =
        (several(manager, "/all").build().unwrap(), several(manager, "/once").atomic().build().unwrap());
    let fresh = Mutex::new(manager, "/made/by/a/stranger").unwrap();
    vec![
        ("mutex", mutex.acquire().await.unwrap_err()),
        ("mutex, try", mutex.try_acquire().await.unwrap_err()),
        ("mutex, in time", mutex.acquire_timeout(LONG).await.unwrap_err()),
        ("mutex in semaphore layout", one.acquire().await.unwrap_err()),
        ("reentrant", reentrant.acquire(&owner).await.unwrap_err()),
        ("read", rw.read().await.unwrap_err()),
        ("write", rw.write().await.unwrap_err()),
        ("permits", semaphore.acquire_many(2).await.unwrap_err()),
        ("inspect", semaphore.inspect().await.unwrap_err()),
        ("available", semaphore.available().await.unwrap_err()),
        ("permits, shared limit", shared.acquire().await.unwrap_err()),
        ("limit, get", limit.get().await.unwrap_err()),
        ("limit, set", limit.set(9).await.unwrap_err()),
        ("rate", limiter.admit().await.unwrap_err()),
        ("several", ordered.acquire().await.unwrap_err().into()),
        ("several at once", atomic.acquire().await.unwrap_err().into()),
        ("a new path", fresh.acquire().await.unwrap_err()),
    ]
}

#[tokio::test]
async fn by_default_nodes_are_open_as_curators_are() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = builder(&format!("{}/guarded/app", ensemble.connect_string())).connect().await.unwrap();
    let _kept = everything_taken(&manager).await.unwrap();
    let lists = settled(&mut ensemble.raw().await.unwrap()).await;
    for (path, list) in lists {
        assert_eq!(list, [(31, "world".to_owned(), "anyone".to_owned())], "{path}");
    }
}

#[tokio::test]
async fn a_client_that_may_only_read_sees_the_holder_and_cannot_contend() {
    let ensemble = Ensemble::lend().await.unwrap();
    let acl = Acl::new(Permissions::ALL, "digest", SHOP).and(Permissions::READ, "world", "anyone");
    let owner = shop(&ensemble).acl(acl).connect().await.unwrap();
    let semaphore = Semaphore::new(&owner, "/semaphore", 2).unwrap().with_node_data("till 7");
    let lease = semaphore.acquire().await.unwrap();

    let onlooker = builder(&format!("{}/guarded/app", ensemble.connect_string())).connect().await.unwrap();
    let seen = Semaphore::new(&onlooker, "/semaphore", 2).unwrap();
    let inspection = seen.inspect().await.unwrap();
    let holders: Vec<Option<&[u8]>> = inspection.holders().map(|lease| lease.data()).collect();
    assert_eq!(holders, [Some(&b"till 7"[..])]);
    let error = seen.acquire().await.unwrap_err();
    assert!(matches!(error, Error::Refused { refusal: Refusal::NoAuth, .. }), "{error}");
    assert!(lease.is_valid());
    lease.release().await.unwrap();
}

/// Since ZooKeeper 3.8.4 and 3.9.2 `exists` needs the permission to read.
#[tokio::test]
async fn a_lock_is_made_below_a_directory_that_may_not_be_read() {
    let ensemble = Ensemble::shared().await.unwrap();
    let servers = ensemble.connect_string();
    let create_only = Acl::new(Permissions::ALL, "auth", "").and(Permissions::CREATE, "world", "anyone");
    let owner = builder(&servers).digest_auth("shop", "secret").acl(create_only).connect().await.unwrap();
    let _made = Mutex::new(&owner, "/create-only/of-owner").unwrap().acquire().await.unwrap();

    let stranger = builder(&servers).connect().await.unwrap();
    let guard = Mutex::new(&stranger, "/create-only/of-stranger/lock").unwrap().acquire().await.unwrap();
    assert!(guard.path().starts_with("/create-only/of-stranger/lock/"), "{}", guard.path());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn another_password_is_another_identity() {
    let ensemble = Ensemble::lend().await.unwrap();
    let owner = shop(&ensemble).connect().await.unwrap();
    let mutex = Mutex::new(&owner, "/mutex").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let same = shop(&ensemble).connect().await.unwrap();
    assert!(Mutex::new(&same, "/mutex").unwrap().try_acquire().await.unwrap().is_none());
    let wrong = shop(&ensemble).digest_auth("shop", "guess");
    // The client has both identities: both may use its nodes, and it may use the nodes that either of them
    // may use.
    assert!(
        Mutex::new(&wrong.connect().await.unwrap(), "/mutex").unwrap().try_acquire().await.unwrap().is_none()
    );
    let wrong = builder(&format!("{}/guarded/app", ensemble.connect_string())).digest_auth("shop", "guess");
    let error =
        Mutex::new(&wrong.connect().await.unwrap(), "/mutex").unwrap().try_acquire().await.unwrap_err();
    assert!(matches!(error, Error::Refused { refusal: Refusal::NoAuth, .. }), "{error}");
    guard.release().await.unwrap();
}
