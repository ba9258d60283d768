//! What a member of a double barrier asks the servers for.

use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, Inside};
use lockkeeper_testserver::Op;
use lockkeeper_testserver::fault::{Passed, Subject, Transcript};

use super::{BARRIER, member, members};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

struct Fixture {
    server_fixture: ServerFixture,
    actor: ConnectionManager,
    session: i64,
}

impl Fixture {
    async fn start() -> Self {
        let server_fixture = ServerFixture::start().await.unwrap();
        let (actor, session) = server_fixture.quiet_actor().await;
        Self { server_fixture, actor, session }
    }

    /// The actor enters a barrier of one member.
    async fn alone(&self) -> Inside {
        within("the member", member(&self.actor, 1, "a").enter()).await.unwrap().unwrap()
    }

    fn transcript(&self) -> Transcript {
        self.server_fixture.server.transcript()
    }

    /// The requests of the actor that name this node.
    fn asked(&self, transcript: &Transcript, node: &str) -> Vec<Op> {
        let is_of_actor =
            |passed: &Passed| passed.session == self.session && passed.paths.iter().any(|path| path == node);
        let op = |passed: Passed| match passed.subject {
            Subject::Request(op) => Some(op),
            Subject::Event(_) => None,
        };
        transcript.passed().into_iter().filter(is_of_actor).filter_map(op).collect()
    }

    /// The node of the only member that the actor's session owns, or does not own.
    fn node(&self, is_of_actor: bool) -> String {
        self.server_fixture.server.inspect(|machine| {
            let path = |name| format!("{BARRIER}/{name}");
            let owner = |path: &str| machine.tree().node(path).unwrap().stat().ephemeral_owner;
            let is_chosen = |path: &String| (owner(path) == self.session) == is_of_actor;
            members(machine).into_iter().map(path).find(is_chosen).unwrap()
        })
    }
}

#[tokio::test]
async fn nobody_asks_whether_the_node_that_opens_a_barrier_is_a_member() {
    let fixture = Fixture::start().await;
    // It is older than its last write, as every member of the round is.
    let ready = format!("{BARRIER}/ready");
    let znodes = fixture.server_fixture.rival.znodes();
    znodes.create(ready.as_str(), "", CreateMode::Persistent).await.unwrap();
    let transcript = fixture.transcript();
    let inside = fixture.alone().await;
    within("the end", inside.leave()).await.unwrap().unwrap();
    let asked = fixture.asked(&transcript, &ready);
    assert!(asked.contains(&Op::GetData) && !asked.contains(&Op::Exists), "{asked:?}");
}

#[tokio::test]
async fn a_member_that_leaves_watches_another_one_after_its_own_node_is_deleted_and_not_before() {
    let fixture = Fixture::start().await;
    let (a, b) = (member(&fixture.actor, 2, "a"), member(&fixture.server_fixture.rival, 2, "b"));
    let both = async { tokio::try_join!(a.enter(), b.enter()) };
    let (in_a, in_b) = within("both", both).await.unwrap().unwrap();
    let other = fixture.node(false);
    let transcript = fixture.transcript();
    let leaving = tokio::spawn(in_a.leave());
    let asked = async {
        while fixture.asked(&transcript, &other).len() < 3 {
            fixture.server_fixture.round_trip_of_rival().await.unwrap();
        }
    };
    within("the watch", asked).await.unwrap();
    // The transaction checks that the other one exists.
    assert_eq!(fixture.asked(&transcript, &other), [Op::Exists, Op::Multi, Op::GetData]);
    within("the other one leaves", in_b.leave()).await.unwrap().unwrap();
    within("the end", leaving).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn the_node_of_a_member_that_has_left_is_not_looked_for() {
    let fixture = Fixture::start().await;
    let inside = fixture.alone().await;
    let own = fixture.node(true);
    let transcript = fixture.transcript();
    within("the end", inside.leave()).await.unwrap().unwrap();
    // Behind whatever the member has left to do.
    fixture.actor.znodes().read(BARRIER).await.unwrap();
    assert_eq!(fixture.asked(&transcript, &own), [Op::Multi]);
}
