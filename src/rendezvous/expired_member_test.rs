//! A member whose lease runs out. No task runs between the end of the lease and the question.

use std::time::Duration;

use lockkeeper_testserver::TestServer;

use super::place::Rendezvous;
use crate::error::LossReason;
use crate::manager::ConnectionManager;
use crate::time::deadline::Deadline;

#[tokio::test]
async fn a_member_is_lost_when_its_lease_runs_out() {
    let server = TestServer::start().await.unwrap();
    let builder = ConnectionManager::builder(&server.connect_string());
    // So long that no confirmation of the lease comes in between.
    let manager = builder.session_timeout(Duration::from_secs(30)).connect().await.unwrap();
    let place = Rendezvous::new(&manager, "/barrier").unwrap();
    let admitted = place.enter(1, Deadline::never()).await.unwrap();
    assert!(admitted.hold().is_valid());
    let _ = admitted.hold().session().run_lease_out();
    assert_eq!(admitted.hold().check().unwrap_err().reason, LossReason::LeaseRanOut);
}
