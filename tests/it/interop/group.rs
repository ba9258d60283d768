//! Our group and Curator's `GroupMember`, on one path; and the parties of kazoo, which we read.

use lockkeeper::Group;
use lockkeeper::presence::MemberLayout;
use lockkeeper_tests::{Ensemble, Peer, Timing, eventually, left_out};

use super::fixture::{Failure, InteropFixture, Outcome, SESSION};
use crate::support::connect;

async fn java_sees(fixture: &InteropFixture, thread: &str, expected: &[&str]) -> Outcome {
    let java = fixture.java.thread(thread);
    eventually(format!("Curator to see {expected:?}"), Timing::settle(), async || {
        (java.members(&fixture.path).await.ok()? == expected).then_some(())
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn members_of_java_and_rust_are_in_one_group_and_see_each_other() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/group").await? else {
        return Ok(());
    };
    let group = Group::new(&fixture.manager, fixture.path.as_str())?;
    let view = group.members()?;
    let ours = group.join("rust", "ours")?;
    ours.registered().await?;
    let java = fixture.java.thread("java");
    java.join(&fixture.path, "theirs").await?;
    java_sees(&fixture, "java", &["java=theirs", "rust=ours"]).await?;
    eventually("our view to see both", Timing::settle(), async || {
        let snapshot = view.sync().await.ok()?;
        let payload = |id: &str| snapshot.get(id).map(|node| node.data().to_vec());
        (view.ids() == ["java", "rust"] && payload("java")? == b"theirs").then_some(())
    })
    .await?;

    ours.set_payload("changed").await?;
    java_sees(&fixture, "java", &["java=theirs", "rust=changed"]).await?;
    ours.leave().await?;
    java_sees(&fixture, "java", &["java=theirs"]).await?;
    java.part(&fixture.path).await?;
    eventually("an empty group", Timing::settle(), async || {
        view.sync().await.ok()?;
        view.ids().is_empty().then_some(())
    })
    .await?;
    Ok::<_, Failure>(())
}

#[tokio::test]
async fn the_parties_of_kazoo_are_members_with_their_identifiers() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let kazoo = Peer::kazoo(&ensemble.connect_string(), SESSION).await?;
    let manager = connect(&ensemble.connect_string()).await;
    let path = "/interop/group-kazoo";
    let view = Group::new(&manager, path)?.members()?;
    kazoo.ask(&format!("party deep {path}")).await?;
    kazoo.ask(&format!("shallow flat {path}")).await?;
    let snapshot = view.sync().await?;
    let mut members = Vec::new();
    for (_, node) in snapshot.children("") {
        let member = node.value().map_err(|error| error.to_string())?;
        members.push((member.id().to_owned(), member.layout()));
    }
    members.sort_by(|one, other| one.0.cmp(&other.0));
    let expected = [("deep", MemberLayout::Party), ("flat", MemberLayout::ShallowParty)];
    assert_eq!(members, expected.map(|(id, layout)| (id.to_owned(), layout)));
    kazoo.ask(&format!("depart deep {path}")).await?;
    kazoo.ask(&format!("depart flat {path}")).await?;
    view.sync().await?;
    assert!(view.ids().is_empty());
    Ok(())
}
