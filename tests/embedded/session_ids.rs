//! The numbers of a manager's sessions are those that the servers show.

use lockkeeper::manager::State;
use lockkeeper::{ConnectionManager, Mutex, NodeView};

use crate::server_fixture::servers;

#[tokio::test]
async fn a_manager_tells_its_session_from_that_of_its_views_and_of_other_managers() {
    let server = servers().start().await.unwrap();
    let one = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let other = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let (first, second) = (one.session_id().unwrap(), other.session_id().unwrap());
    assert_eq!(server.sessions(), [first, second]);
    assert_eq!(one.views_session_id(), None, "it has no view");

    let guard = Mutex::new(&one, "/lock").unwrap().acquire().await.unwrap();
    let view = NodeView::new(&one, "/config").unwrap();
    view.ready().await.unwrap();
    let of_views = one.views_session_id().unwrap();
    assert_eq!(server.sessions(), [first, second, of_views]);

    let mut transitions = one.transitions();
    assert!(server.expire(first));
    guard.lost().await;
    while !matches!(transitions.next().await.unwrap().state, State::Connected(_)) {}
    let next = one.session_id().unwrap();
    assert_ne!(next, first);
    assert_eq!((one.views_session_id(), other.session_id()), (Some(of_views), Some(second)));
    let mut open = [second, of_views, next];
    open.sort_unstable();
    assert_eq!(server.sessions(), open);

    one.shutdown().await.unwrap();
    assert_eq!((one.session_id(), one.views_session_id()), (None, None));
}
