use lockkeeper_lock::FencingToken;

use crate::error::FenceError;

/// Where a receiver keeps the newest token of each resource.
pub trait FenceStore: Send + Sync + 'static {
    /// What the receiver keeps until the service has answered the request. A store that admits no other token
    /// while it exists makes the check exact.
    type Admission: Send;

    /// Admits a write with this token, or refuses it.
    ///
    /// # Errors
    ///
    /// [`FenceError::Stale`] if the resource has seen a newer token.
    fn admit(
        &self,
        resource: &str,
        token: FencingToken,
    ) -> impl Future<Output = Result<Self::Admission, FenceError>> + Send;
}
