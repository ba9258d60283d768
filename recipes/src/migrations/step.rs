use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use lockkeeper_core::{ConnectionManager, Error, Txn};

use super::record::record_of;

type Work = dyn Fn(ConnectionManager) -> BoxFuture<'static, Result<Txn<'static>, Error>> + Send + Sync;

/// One step.
#[derive(Clone)]
pub(super) struct MigrationStep {
    pub(super) name: String,
    pub(super) version: u32,
    work: Arc<Work>,
}

impl MigrationStep {
    pub(super) fn new<F>(
        name: String,
        version: u32,
        work: impl Fn(ConnectionManager) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Txn<'static>, Error>> + Send + 'static,
    {
        Self { name, version, work: Arc::new(move |manager| work(manager).boxed()) }
    }

    pub(super) fn record(&self) -> String {
        record_of(&self.name, self.version)
    }

    /// The writes of the step.
    pub(super) async fn writes(&self, manager: &ConnectionManager) -> Result<Txn<'static>, Error> {
        (self.work)(manager.clone()).await
    }
}
