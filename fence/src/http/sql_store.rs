use lockkeeper_lock::FencingToken;
use sqlx::{Database, Pool};

use super::store::FenceStore;
use crate::error::FenceError;
use crate::sql::{Fence, FenceConnection, not_checked};

/// The newest tokens in the table `lockkeeper_fence`, checked in a transaction of its own.
///
/// It refuses a late request before it is served, over all processes and restarts. It cannot refuse a request
/// that becomes late while it is served: the service makes the same check in the transaction of its writes,
/// with the token in the extensions of the request.
#[derive(Debug)]
pub struct SqlStore<D: Database> {
    pool: Pool<D>,
}

impl<D: Database> SqlStore<D> {
    /// A store in the database of this pool, which has the table.
    #[must_use]
    pub fn new(pool: Pool<D>) -> Self {
        Self { pool }
    }
}

impl<D: Database> FenceStore for SqlStore<D>
where
    D::Connection: FenceConnection,
{
    type Admission = ();

    async fn admit(&self, resource: &str, token: FencingToken) -> Result<(), FenceError> {
        let mut tx = self.pool.begin().await.map_err(|error| not_checked(resource, error))?;
        Fence::new().check(&mut *tx, resource, token).await?;
        tx.commit().await.map_err(|error| not_checked(resource, error))
    }
}
