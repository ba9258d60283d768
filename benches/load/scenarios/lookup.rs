//! A client of a service with many instances: how fast it chooses one, and how late a change is in its view.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper::Discovery;
use lockkeeper::discovery::{Balancer, Instance, InstanceRegistration, Strategy};
use lockkeeper::view::ViewChanges;
use tokio::task::JoinSet;

use crate::Outcome;
use crate::fixture::Fixture;
use crate::measurements::{Lap, Measurements, now};
use crate::report::Report;

const SERVICE: &str = "service";
/// For how long instances are chosen, and how many choices are between two looks at the clock.
const CHOOSING: Duration = Duration::from_millis(500);
const CHOICES: u64 = 10_000;

pub(super) async fn run(fixture: &Fixture<'_>) -> Outcome<Report> {
    let arguments = fixture.arguments;
    let (count, manager) = (arguments.size("k")?, fixture.manager(0)?);
    let discovery = Discovery::new(manager, fixture.path("services"))?;
    let mut registered = Vec::new();
    for number in 0..count {
        let instance = Instance::new(SERVICE, "10.0.0.7", 8080).with_id(format!("instance-{number:06}"));
        registered.push((discovery.register(instance.clone())?, instance));
    }
    for (registration, _) in &registered {
        registration.registered().await?;
    }
    let balancer = discovery.balancer(SERVICE, Strategy::RoundRobin)?;
    let shown = balancer.view().sync().await?.children("").count();
    let (first, instance) = registered.first().ok_or("no instances")?;

    let mut changes = balancer.view().changes();
    for _ in 0..arguments.number("warmn")? {
        change(first, instance, &mut changes).await?;
    }
    let measurements = Measurements::new();
    let earlier = fixture.meters.read().await;
    for _ in 0..arguments.number("n")? {
        measurements.add(change(first, instance, &mut changes).await?);
    }
    let later = fixture.meters.read().await;
    let cost = later.since(&earlier, &fixture.meters, arguments.number("n")?);

    let mut report = Report::new(arguments, &measurements, cost, 0, 0);
    report.set("instances", shown);
    report.set("lookups_s", lookups(&balancer, 1).await?);
    report.set("lookups_w_s", lookups(&balancer, arguments.size("w")?).await?);
    Ok(report)
}

/// One update: until the client's view has it (acquire), and until its own answer (release).
async fn change(
    registration: &InstanceRegistration,
    instance: &Instance,
    changes: &mut ViewChanges<Arc<Instance>>,
) -> Outcome<Lap> {
    let asked = now();
    let update = async {
        registration.update(instance.clone()).await?;
        Outcome::Ok(asked.elapsed())
    };
    let seen = async {
        while changes.next().await.ok_or("the view has ended")?.changes().is_empty() {}
        Outcome::Ok(asked.elapsed())
    };
    let (release, acquire) = tokio::try_join!(update, seen)?;
    Ok(Lap { acquire, release: Some(release), handover: None })
}

/// The choices in a second, by so many threads.
#[expect(clippy::cast_precision_loss, reason = "a figure for people to read")]
async fn lookups(balancer: &Balancer, threads: usize) -> Outcome<f64> {
    let mut choosing = JoinSet::new();
    for _ in 0..threads {
        let balancer = balancer.clone();
        choosing.spawn_blocking(move || {
            let (begun, mut count) = (now(), 0_u64);
            while begun.elapsed() < CHOOSING {
                count += (0..CHOICES).map(|_| u64::from(balancer.choose().is_some())).sum::<u64>();
            }
            count as f64 / begun.elapsed().as_secs_f64()
        });
    }
    let mut all = 0.0;
    while let Some(chosen) = choosing.join_next().await {
        all += chosen?;
    }
    Ok(all)
}
