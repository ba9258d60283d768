use futures::{StreamExt, TryStreamExt, stream};
use lockkeeper::{Error, ZnodePath, Znodes};

use super::patience::patiently;

/// How many requests are under way at a time.
const AT_A_TIME: usize = 64;

/// Deletes a node and everything below it. Nobody may be at work there any more.
///
/// # Errors
///
/// As [`Znodes::delete`].
pub async fn sweep(znodes: &Znodes, path: ZnodePath) -> Result<(), Error> {
    let names = patiently(|| znodes.children(&path)).await?.unwrap_or_default();
    stream::iter(names)
        .map(|name| path.child(&name))
        .map(|child| async { Box::pin(sweep(znodes, child?)).await })
        .buffer_unordered(AT_A_TIME)
        .try_collect::<()>()
        .await?;
    znodes.delete(&path).await?;
    Ok(())
}
