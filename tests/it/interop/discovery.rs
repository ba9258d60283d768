//! Our discovery and Curator's `curator-x-discovery`, on one path and byte for byte.

use lockkeeper::Discovery;
use lockkeeper::discovery::{Instance, InstanceState, ServiceView, Strategy};
use lockkeeper_tests::{Timing, eventually, leave_out_without};
use serde::{Deserialize, Serialize};

use super::fixture::{Failure, InteropFixture, Outcome};

/// The payload of the Java service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Zone {
    zone: String,
    weight: i32,
    load: f64,
}

const CLASS: &str = "Services$Zone";

/// The fixture and our discovery; `None` where such tests, or Curator's jar, are left out.
async fn fixture(path: &str) -> Result<Option<(InteropFixture, Discovery<Zone>)>, Failure> {
    let Some(fixture) = InteropFixture::at(path).await? else { return Ok(None) };
    if !fixture.java.has_discovery() {
        leave_out_without("libcurator-discovery-java");
        return Ok(None);
    }
    let discovery = Discovery::new_typed(&fixture.manager, path)?;
    Ok(Some((fixture, discovery)))
}

fn ours(id: &str, zone: &str) -> Instance<Zone> {
    let payload = Zone { zone: zone.to_owned(), weight: -7, load: 0.00025 };
    Instance::new("web", "größe.example", 8081).with_id(id).with_payload(payload).with_payload_class(CLASS)
}

async fn view_has(view: &ServiceView<Zone>, expected: &[&str]) -> Outcome {
    eventually(format!("our view to show {expected:?}"), Timing::settle(), async || {
        view.sync().await.ok()?;
        let instances = view.instances();
        let ids: Vec<&str> = instances.iter().map(|instance| instance.id()).collect();
        (ids == expected).then_some(())
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn what_java_registers_is_found_and_written_back_byte_for_byte() -> Outcome {
    let Some((fixture, discovery)) = fixture("/interop/discovery-java").await? else { return Ok(()) };
    let java = fixture.java.thread("java-1");
    java.announce(&fixture.path, "web", 8080, Some("north")).await?;
    fixture.java.thread("java-2").announce(&fixture.path, "web", 8082, None).await?;
    let view = discovery.service("web")?;
    view_has(&view, &["java-1", "java-2"]).await?;
    let instances = view.instances();
    let (zone, none) = (&instances[0], &instances[1]);
    let expected = Zone { zone: "north".to_owned(), weight: 3, load: 1e10 };
    assert_eq!((zone.payload(), zone.payload_class()), (Some(&expected), Some(CLASS)));
    assert_eq!((zone.port(), zone.uri().as_deref()), (Some(8080), Some("http://10.0.0.7:8080/x")));
    assert_eq!((none.payload(), none.uri_spec()), (None, None));
    for (id, instance) in [("java-1", zone), ("java-2", none)] {
        let data = fixture.java.data(&format!("{}/web/{id}", fixture.path)).await?;
        assert_eq!(String::from_utf8(instance.to_json()?)?, data);
    }
    java.withdraw(&fixture.path).await?;
    view_has(&view, &["java-2"]).await
}

#[tokio::test]
async fn what_we_register_java_finds_chooses_and_writes_back_byte_for_byte() -> Outcome {
    let Some((fixture, discovery)) = fixture("/interop/discovery-rust").await? else { return Ok(()) };
    let one = discovery.register(ours("rust-1", "süd\u{1f600}\u{7}"))?;
    let other = discovery.clone().with_enabled_field().register(ours("rust-2", "west"))?;
    one.registered().await?;
    other.registered().await?;
    let java = fixture.java.thread("java");
    let found = java.lookup(&fixture.path, "web").await?;
    assert_eq!(
        found,
        ["rust-1=8081,true,süd\u{1f600}\u{7}/-7/2.5E-4,null", "rust-2=8081,true,west/-7/2.5E-4,null"]
    );
    for (id, is_compatible) in [("rust-1", true), ("rust-2", false)] {
        let node = format!("{}/web/{id}", fixture.path);
        let data = fixture.java.data(&node).await?;
        assert_eq!(java.rewrite(&node, is_compatible).await?, data);
    }
    let provides = async |expected: &[&str]| {
        eventually(format!("Curator to provide {expected:?}"), Timing::settle(), async || {
            (java.provide(&fixture.path, "web").await.ok()? == expected).then_some(())
        })
        .await
    };
    provides(&["rust-1", "rust-2"]).await?;
    // Curator's clients do not choose an instance that drains.
    one.set_state(InstanceState::Draining).await?;
    provides(&["rust-2"]).await?;
    let node = format!("{}/web/rust-1", fixture.path);
    assert_eq!(java.rewrite(&node, false).await?, fixture.java.data(&node).await?);
    other.release().await?;
    provides(&[]).await?;
    one.set_state(InstanceState::Enabled).await?;
    provides(&["rust-1"]).await?;
    Ok(())
}

#[tokio::test]
async fn clients_of_both_choose_among_the_instances_of_both() -> Outcome {
    let Some((fixture, discovery)) = fixture("/interop/discovery-both").await? else { return Ok(()) };
    let java = fixture.java.thread("java");
    java.announce(&fixture.path, "web", 8080, Some("north")).await?;
    let ours = discovery.register(ours("rust", "south"))?;
    ours.registered().await?;
    let balancer = discovery.balancer("web", Strategy::RoundRobin)?;
    view_has(balancer.view(), &["java", "rust"]).await?;
    let mut chosen: Vec<String> =
        (0..2).filter_map(|_| balancer.choose()).map(|instance| instance.id().to_owned()).collect();
    chosen.sort_unstable();
    assert_eq!(chosen, ["java", "rust"]);
    eventually("Curator to provide both", Timing::settle(), async || {
        (java.provide(&fixture.path, "web").await.ok()? == ["java", "rust"]).then_some(())
    })
    .await?;
    java.withdraw(&fixture.path).await?;
    view_has(balancer.view(), &["rust"]).await?;
    assert!((0..10).all(|_| balancer.choose().is_some_and(|instance| instance.id() == "rust")));
    Ok(())
}
