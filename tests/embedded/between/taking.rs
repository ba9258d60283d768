//! What the head of a semaphore's queue asks the servers for, and what follows on a refusal.

use std::time::Duration;

use lockkeeper::error::{ConfigError, Refusal, SemaphoreError};
use lockkeeper::locks::SharedLimit;
use lockkeeper::{ConnectionManager, Error, Lease, Semaphore};
use lockkeeper_testserver::fault::{Passed, Subject, Transcript};
use lockkeeper_testserver::{ArmedFault, ErrorCode, Fault, Op, When};

use crate::limit::within;
use crate::server_fixture::{ServerFixture, children};

const PERMITS: &str = "/permits";
const QUEUE: &str = "/permits/locks";
const LEASES: &str = "/permits/leases";

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

    /// The actor's semaphore, after it has recorded its limit and has read the record, and knows that it is
    /// alone: the watch that shows this is requested at the third node, and counts from the fifth one on.
    async fn semaphore(&self, permits: u32) -> Semaphore {
        let semaphore = Semaphore::new(&self.actor, PERMITS, permits).unwrap();
        for _ in 0..6 {
            semaphore.acquire().await.unwrap().release().await.unwrap();
        }
        semaphore
    }

    fn theirs(&self, permits: u32) -> Semaphore {
        Semaphore::new(&self.server_fixture.rival, PERMITS, permits).unwrap()
    }

    fn transcript(&self) -> Transcript {
        self.server_fixture.server.transcript()
    }

    /// The requests of the actor.
    fn asked(&self, transcript: &Transcript) -> Vec<Op> {
        let of_actor = transcript.passed().into_iter().filter(|passed| passed.session == self.session);
        let op = |passed: Passed| match passed.subject {
            Subject::Request(op) if ![Op::Ping, Op::RemoveWatches].contains(&op) => Some(op),
            _ => None,
        };
        of_actor.filter_map(op).collect()
    }

    /// Another process has changed the recorded limit to one and back, so the next head has to read it.
    async fn record_again(&self, permits: u32) {
        for permits in [permits + 1, permits] {
            self.theirs(permits).acquire().await.unwrap().release().await.unwrap();
        }
    }

    fn refuse(&self, op: Op, path: &str, code: ErrorCode) -> ArmedFault {
        let at = When::op(op).path(path).session(self.session);
        self.server_fixture.server.fault(at, Fault::Refuse(code))
    }
}

async fn granted(semaphore: &Semaphore) -> Result<Lease, Error> {
    within("an end of the acquire", semaphore.acquire()).await.unwrap()
}

#[tokio::test]
async fn an_acquire_lists_the_permits_once_and_takes_one_by_one_transaction() {
    let fixture = Fixture::start().await;
    let semaphore = fixture.semaphore(2).await;
    let transcript = fixture.transcript();
    let lease = granted(&semaphore).await.unwrap();
    assert_eq!(fixture.asked(&transcript), [Op::Create2, Op::GetChildren2, Op::Multi]);
    lease.release().await.unwrap();
}

/// It needs no read: the earlier head of the process passes on how many permits are in use at most, with
/// those that were released since.
#[tokio::test]
async fn the_next_contender_of_a_process_takes_its_permit_by_one_transaction() {
    let fixture = Fixture::start().await;
    let semaphore = fixture.semaphore(16).await;
    let (mut first, mut second) = (semaphore.enqueue().await.unwrap(), semaphore.enqueue().await.unwrap());
    let leases = [first.wait().await.unwrap()];
    let transcript = fixture.transcript();
    let second = within("a permit", second.wait()).await.unwrap().unwrap();
    assert_eq!(fixture.asked(&transcript), [Op::Multi]);
    drop((leases, second));
}

#[tokio::test]
async fn a_contender_with_another_limit_is_refused_also_behind_one_of_its_process() {
    let fixture = Fixture::start().await;
    let semaphore = fixture.semaphore(2).await;
    let other = Semaphore::new(&fixture.actor, PERMITS, 3).unwrap();
    let (mut first, mut second) = (semaphore.enqueue().await.unwrap(), other.enqueue().await.unwrap());
    let lease = first.wait().await.unwrap();
    let error = within("a refusal", second.wait()).await.unwrap().unwrap_err();
    assert!(
        matches!(error.recipe(), Some(SemaphoreError::LimitsDisagree { mine: 3, recorded: 2, .. })),
        "{error:?}"
    );
    drop(lease);
}

#[tokio::test]
async fn a_contender_that_waits_for_permits_sends_no_request() {
    let fixture = Fixture::start().await;
    let semaphore = fixture.semaphore(1).await;
    let held = fixture.theirs(1).acquire().await.unwrap();
    let transcript = fixture.transcript();
    let watches = fixture.server_fixture.server.inspect(|machine| machine.watch_count(0));
    let waiting = tokio::spawn(async move { semaphore.acquire().await.unwrap() });
    let watch = fixture.server_fixture.server.wait_until(|machine| machine.watch_count(0) > watches);
    within("its watch", watch).await.unwrap();
    let before = fixture.asked(&transcript);
    for _ in 0..20 {
        fixture.server_fixture.round_trip_of_rival().await.unwrap();
    }
    assert_eq!(fixture.asked(&transcript), before);
    held.release().await.unwrap();
    within("a permit", waiting).await.unwrap().unwrap().release().await.unwrap();
}

/// The read has the manager's operation timeout, and the acquire has no limit of time.
#[tokio::test]
async fn the_read_of_a_recorded_limit_that_gets_no_answer_is_sent_again() {
    let fixture = Fixture::start().await;
    let semaphore = fixture.semaphore(1).await;
    fixture.record_again(1).await;
    let read = When::op(Op::GetData).path(LEASES).session(fixture.session);
    let read = fixture.server_fixture.server.fault(read, Fault::HoldReply);
    let acquiring = tokio::spawn(async move { semaphore.acquire().await });
    within("the read", read.hit()).await.unwrap();
    // It is sent behind a list of the permits.
    let again = When::op(Op::GetChildren2).path(LEASES).session(fixture.session);
    let again = fixture.server_fixture.server.fault(again, Fault::DelayReply(Duration::ZERO));
    within("the next list", again.hit()).await.unwrap();
    read.release();
    within("a permit", acquiring).await.unwrap().unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_recorded_limit_that_may_not_be_read_fails_the_acquire_and_leaves_no_node() {
    let fixture = Fixture::start().await;
    let semaphore = fixture.semaphore(1).await;
    fixture.record_again(1).await;
    let refused = fixture.refuse(Op::GetData, LEASES, ErrorCode::NoAuth);
    let error = granted(&semaphore).await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    assert_eq!(refused.hits(), 1);
    let left = fixture.server_fixture.server.wait_until(|machine| children(machine, QUEUE).is_empty());
    within("an empty queue", left).await.unwrap();
}

#[tokio::test]
async fn the_position_of_a_ticket_at_the_head_costs_no_request() {
    let fixture = Fixture::start().await;
    let semaphore = fixture.semaphore(1).await;
    let held = fixture.theirs(1).acquire().await.unwrap();
    let mut ticket = semaphore.enqueue().await.unwrap();
    assert!(ticket.wait_timeout(Duration::from_millis(10)).await.unwrap_err().is_timeout());
    let transcript = fixture.transcript();
    assert_eq!((ticket.position(), ticket.refresh().await.unwrap()), (Some(0), 0));
    assert_eq!(fixture.asked(&transcript), []);
    held.release().await.unwrap();
    within("a permit", ticket.wait()).await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_request_that_can_never_be_granted_is_refused_before_anything_is_sent() {
    let fixture = Fixture::start().await;
    let semaphore = fixture.semaphore(2).await;
    let transcript = fixture.transcript();
    let error = semaphore.acquire_many(0).await.unwrap_err();
    assert!(matches!(error, Error::Config(_)), "{error:?}");
    let error = semaphore.acquire_many(3).await.unwrap_err();
    assert!(
        matches!(error.recipe(), Some(SemaphoreError::TooManyPermits { asked: 3, limit: 2, .. })),
        "{error:?}"
    );
    assert_eq!(fixture.asked(&transcript), []);
}

#[tokio::test]
async fn a_shared_limit_of_another_manager_is_refused() {
    let fixture = Fixture::start().await;
    let limit = SharedLimit::new(&fixture.server_fixture.rival, "/limit").unwrap();
    let error = Semaphore::new_shared(&fixture.actor, PERMITS, &limit).unwrap_err();
    assert!(matches!(error, Error::Config(ConfigError::Setting { name: "limit", .. })), "{error:?}");
}

#[tokio::test]
async fn an_inspection_shows_no_limit_where_there_is_none_and_fails_where_it_may_not_be_read() {
    let fixture = Fixture::start().await;
    let limit = SharedLimit::new(&fixture.actor, "/limit").unwrap();
    let semaphore = Semaphore::new_shared(&fixture.actor, PERMITS, &limit).unwrap();
    assert_eq!(semaphore.inspect().await.unwrap().limit(), None);
    limit.set(2).await.unwrap();
    assert_eq!(semaphore.inspect().await.unwrap().limit(), Some(2));
    let _refused = fixture.refuse(Op::GetData, "/limit", ErrorCode::NoAuth);
    let error = semaphore.inspect().await.unwrap_err();
    assert!(matches!(error, Error::Refused { refusal: Refusal::NoAuth, .. }), "{error:?}");
}

/// The node in the queue may not exist any more, and the leases may not be listed.
#[tokio::test]
async fn an_acquire_whose_transaction_cannot_be_looked_for_is_of_unknown_outcome() {
    let fixture = Fixture::start().await;
    let semaphore = fixture.semaphore(1).await;
    let multi = When::op(Op::Multi).path("/permits/leases/*").session(fixture.session);
    let lost = fixture.server_fixture.server.fault(multi, Fault::DropConnectionAfter);
    let search = When::op(Op::GetChildren).path(LEASES).session(fixture.session).always();
    let _search = fixture.server_fixture.server.fault(search, Fault::Refuse(ErrorCode::NoAuth));
    let error = granted(&semaphore).await.unwrap_err();
    assert!(error.outcome_unknown() && !error.is_timeout(), "{error:?}");
    assert_eq!(lost.hits(), 1);
}
