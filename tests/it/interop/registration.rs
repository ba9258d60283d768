//! Our registration and Curator's `PersistentNode`, on one path.

use lockkeeper::Registration;
use lockkeeper::presence::PresenceState;
use lockkeeper_tests::{Timing, eventually};

use super::fixture::{Failure, InteropFixture, Outcome};

/// The data and the owner of the node.
async fn node(fixture: &InteropFixture) -> Result<Option<(String, i64)>, Failure> {
    let read = fixture.manager.znodes().read(fixture.path.as_str()).await?;
    Ok(read.map(|(data, stat)| (String::from_utf8_lossy(&data).into_owned(), stat.ephemeral_owner)))
}

#[tokio::test]
async fn the_node_of_a_persistent_node_is_a_conflict_until_java_closes_it() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/registered-by-java").await? else {
        return Ok(());
    };
    let java = fixture.java.thread("java");
    java.register(&fixture.path, "theirs").await?;
    let (_, owner) = node(&fixture).await?.ok_or("no node of Java")?;
    let ours = Registration::register(&fixture.manager, fixture.path.as_str(), "ours")?;
    eventually("the conflict", Timing::settle(), async || {
        (ours.state() == PresenceState::Conflict { owner_session: owner }).then_some(())
    })
    .await?;
    assert_eq!(node(&fixture).await?, Some(("theirs".to_owned(), owner)), "nothing was overwritten");
    java.unregister(&fixture.path).await?;
    ours.registered_timeout(Timing::settle()).await?;
    let (data, now) = node(&fixture).await?.ok_or("no node of ours")?;
    assert_eq!((data.as_str(), now == owner), ("ours", false));
    ours.release().await?;
    assert_eq!(node(&fixture).await?, None);
    Ok(())
}

/// Curator takes a node that exists for its own, writes its data, and deletes the node when it is closed.
#[tokio::test]
async fn a_registration_outlives_a_persistent_node_that_takes_its_node() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/taken-by-java").await? else {
        return Ok(());
    };
    let java = fixture.java.thread("java");
    let ours = Registration::register(&fixture.manager, fixture.path.as_str(), "ours")?;
    let first = ours.registered_timeout(Timing::settle()).await?;
    let (_, owner) = node(&fixture).await?.ok_or("no node of ours")?;
    java.register(&fixture.path, "theirs").await?;
    eventually("our data again, in our node", Timing::settle(), async || {
        let is_ours = node(&fixture).await.ok()? == Some(("ours".to_owned(), owner));
        is_ours.then_some(())
    })
    .await?;
    java.unregister(&fixture.path).await?;
    eventually("a node of ours after Java has deleted it", Timing::settle(), async || {
        let is_again = matches!(ours.state(), PresenceState::Registered { czxid } if czxid > first);
        (is_again && node(&fixture).await.ok()? == Some(("ours".to_owned(), owner))).then_some(())
    })
    .await?;
    Ok(())
}
