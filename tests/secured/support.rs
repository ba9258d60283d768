use std::error::Error;
use std::time::Duration;

use lockkeeper::config::ConnectionManagerBuilder;
use lockkeeper::{ConnectionManager, Mutex};

pub(crate) type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// A builder for servers with the harness's short ticks.
pub(crate) fn builder(connect_string: &str) -> ConnectionManagerBuilder {
    ConnectionManager::builder(connect_string)
        .session_timeout(Duration::from_secs(4))
        .tick_time(Duration::from_millis(500))
        .connect_deadline(Duration::from_secs(30))
}

/// Two managers of the same settings take one mutex from each other, and leave nothing.
pub(crate) async fn a_mutex_passes_between(one: &ConnectionManager, other: &ConnectionManager) -> Outcome {
    let (first, second) = (Mutex::new(one, "/secured/lock")?, Mutex::new(other, "/secured/lock")?);
    let guard = first.acquire().await?;
    assert!(second.try_acquire().await?.is_none());
    guard.release().await?;
    let next = second.acquire().await?;
    assert!(next.is_valid());
    next.release().await?;
    let left = one.znodes().children("/secured/lock").await?;
    assert_eq!(left.unwrap_or_default(), [] as [String; 0]);
    Ok(())
}
