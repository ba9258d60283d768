//! Rate limiters, one for each key.

use std::time::Duration;

use lockkeeper::blocking::KeyedRateLimiter;

use crate::support::{connect, server};

const WINDOW: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(5);

#[test]
fn keys_do_not_wait_for_each_other_and_what_they_leave_is_swept() {
    let server = server();
    let manager = connect(&server);
    let calls = KeyedRateLimiter::new(&manager, "/calls", 1, WINDOW).unwrap().grace(GRACE);
    assert_eq!(calls.path().as_str(), "/calls");
    assert!(calls.of("").is_err());
    for key in ["anna", "bert"] {
        let of_key = calls.of(key).unwrap();
        assert_eq!(of_key.admit().unwrap().starts(), 1, "{key}");
        assert!(calls.of(key).unwrap().try_admit().unwrap().retry_after().is_some(), "{key}");
        assert!(of_key.admit_timeout(Duration::ZERO).unwrap_err().is_timeout(), "{key}");
    }
    assert_eq!(calls.sweep().unwrap(), 0);
    server.advance_clock(WINDOW + GRACE * 2);
    assert!(calls.of("anna").unwrap().admit_fresh().unwrap().is_fresh());
    // The admission has deleted the start of its own key.
    assert_eq!(calls.sweep().unwrap(), 1);
    assert!(calls.of("bert").unwrap().try_admit().unwrap().admitted().is_some());
}
