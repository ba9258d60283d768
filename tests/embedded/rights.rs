//! The rights that docs/operations.md lists for stored values, schedules and registrations are enough, and a
//! call is refused without each of those that it needs.

use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper::config::{Acl, Permissions};
use lockkeeper::error::{Refusal, TxnError};
use lockkeeper::znodes::{CreateMode, CreateOptions};
use lockkeeper::{ConnectionManager, Counter, Error, IdBlocks, Registration, Schedule, SharedValue};
use lockkeeper_tests::Timing;

use crate::limit::within;
use crate::server_fixture::{ServerFixture, builder};

/// `shop:secret`, as the server writes it into an access list.
const SHOP: &str = "shop:dzbWUe+BoZHFZvyDrDT/LzC6kmA=";

const READ: Permissions = Permissions::READ;
const WRITE: Permissions = Permissions::WRITE;
const CREATE: Permissions = Permissions::CREATE;

/// A call of one client, and the nodes that it finds, each with the rights that the call needs there.
struct Case {
    name: &'static str,
    nodes: &'static [(&'static str, &'static [Permissions])],
    /// The rights on the nodes that the client creates itself.
    own: &'static [Permissions],
    call: for<'a> fn(&'a ConnectionManager) -> BoxFuture<'a, Result<(), Error>>,
}

const CASES: [Case; 6] = [
    Case {
        name: "the first change of a counter",
        nodes: &[("/above", &[CREATE])],
        own: &[WRITE],
        call: |manager| Box::pin(async move { Counter::new(manager, "/above/it")?.add(1).await.map(drop) }),
    },
    Case {
        name: "a counter",
        nodes: &[("/it", &[READ, WRITE, CREATE])],
        own: &[WRITE],
        call: |manager| Box::pin(async move { Counter::new(manager, "/it")?.add(1).await.map(drop) }),
    },
    Case {
        name: "a shared value",
        nodes: &[("/it", &[READ, WRITE, CREATE])],
        own: &[WRITE],
        call: |manager| {
            Box::pin(
                async move { SharedValue::new(manager, "/it", Vec::new())?.set(vec![7]).await.map(drop) },
            )
        },
    },
    Case {
        name: "ids from blocks",
        nodes: &[("/it", &[READ, WRITE, CREATE])],
        own: &[WRITE],
        call: |manager| Box::pin(async move { IdBlocks::new(manager, "/it", 10)?.next().await.map(drop) }),
    },
    Case {
        name: "the first call of a schedule",
        nodes: &[("/it", &[CREATE])],
        own: &[READ, WRITE, CREATE],
        call: |manager| Box::pin(due(manager)),
    },
    Case {
        name: "a schedule",
        nodes: &[("/it", &[]), ("/it/locks", &[READ, CREATE]), ("/it/slots", &[READ, CREATE])],
        own: &[READ, WRITE],
        call: |manager| Box::pin(due(manager)),
    },
];

/// It goes on without a right, and waits until it has it.
const REGISTRATION: Case = Case {
    name: "a registration",
    nodes: &[("/it", &[CREATE])],
    own: &[READ, WRITE],
    call: |manager| {
        Box::pin(async move {
            let registration = Registration::register(manager, "/it/here", "a")?;
            registration.registered().await?;
            registration.set_data("b").await
        })
    },
};

async fn due(manager: &ConnectionManager) -> Result<(), Error> {
    Schedule::new(manager, "/it", Duration::from_secs(3_600))?.try_due().await.map(drop)
}

fn all_but(rights: &[Permissions], left_out: Option<usize>) -> Permissions {
    let kept = rights.iter().enumerate().filter(|(number, _)| Some(*number) != left_out);
    kept.fold(Permissions::ADMIN, |all, (_, right)| all.and(*right))
}

/// The outcome of the case, without one right of one node if `left_out` names one. The last one is the
/// right on the nodes that the client creates.
async fn outcome(case: &Case, left_out: Option<(usize, usize)>) -> Result<(), Error> {
    let fixture = ServerFixture::start().await.unwrap();
    let servers = fixture.server.connect_string();
    let owner = builder(&servers).digest_auth("owner", "secret").connect().await.unwrap();
    let of = |node: usize| left_out.filter(|(of, _)| *of == node).map(|(_, right)| right);
    for (number, (path, rights)) in case.nodes.iter().enumerate() {
        let rights = all_but(rights, of(number));
        let acl = Acl::new(Permissions::ALL, "auth", "").and(rights, "digest", SHOP);
        let options = CreateOptions::new(CreateMode::Persistent).acl(acl);
        owner.znodes().create_with(*path, Vec::new(), options).await.unwrap();
    }
    let own = Acl::new(all_but(case.own, of(case.nodes.len())), "digest", SHOP);
    let client = builder(&servers).session_timeout(Duration::from_secs(20)).digest_auth("shop", "secret");
    let client = client.acl(own).operation_timeout(Timing::event()).connect().await.unwrap();
    within(case.name, (case.call)(&client)).await.unwrap()
}

#[tokio::test]
async fn the_listed_rights_are_enough() {
    for case in CASES.iter().chain([&REGISTRATION]) {
        outcome(case, None).await.unwrap_or_else(|error| panic!("{}: {error}", case.name));
    }
}

#[tokio::test]
async fn each_listed_right_is_needed() {
    for case in &CASES {
        let found = case.nodes.iter().map(|(_, rights)| *rights).chain([case.own]);
        let places = found.enumerate().flat_map(|(node, rights)| (0..rights.len()).map(move |r| (node, r)));
        for place in places {
            let outcome = outcome(case, Some(place)).await;
            let is_refused = match &outcome {
                Err(Error::Refused { refusal, .. }) => *refusal == Refusal::NoAuth,
                Err(Error::NotCommitted(error)) => {
                    matches!(**error, TxnError::Refused { refusal: Refusal::NoAuth, .. })
                }
                _ => false,
            };
            assert!(is_refused, "{} without {place:?}: {outcome:?}", case.name);
        }
    }
}
