//! Items of a partition that Java holds by a mutex.

use lockkeeper::Partition;
use lockkeeper_tests::Timing;

use super::fixture::{InteropFixture, Outcome};

#[tokio::test]
async fn an_item_that_java_holds_is_asked_for_and_then_ours() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/partition").await? else {
        return Ok(());
    };
    let partition = Partition::new(&fixture.manager, fixture.path.as_str())?;
    partition.add(["x", "y"]).await?;
    let (java, path) = (fixture.java.thread("holder"), format!("{}/locks/x", fixture.path));
    java.make_revocable(&path).await?;
    let grant = java.acquire(&path).await?;
    let mut member = partition.join("rust")?;
    let share = member.settled(Timing::settle()).await?;
    let token = share.fencing_token("x").ok_or("x is not ours")?;
    assert!(token.as_u64() > grant.czxid, "after the hold of Java");
    let inspection = partition.inspect().await?;
    assert_eq!((inspection.members(), inspection.misplaced().count()), (&["rust".to_owned()][..], 0));
    let first = member.next().await.ok_or("no item")?;
    first.txn().set(format!("{}/items/{}", fixture.path, first.item()), "by rust", -1).commit().await?;
    first.release().await?;
    member.leave().await?;
    Ok(())
}
