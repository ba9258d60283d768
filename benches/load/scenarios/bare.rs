//! The same writes without a lock around them, by the client crate alone: what no lock can be quicker than.

use std::sync::Arc;

use zookeeper_client::{Acls, Client, CreateMode};

use crate::Outcome;
use crate::arguments::Arguments;
use crate::counters::Meters;
use crate::fixture::path;
use crate::measurements::{Lap, now};
use crate::report::Report;
use crate::run::{Worker, for_a_time};

/// Each worker creates an ephemeral sequential node and deletes it; then, as long again, each reads a node's
/// data.
pub(super) async fn run(arguments: &Arguments) -> Outcome<Report> {
    let meters = Meters::of(arguments.servers()).await;
    let mut clients = Vec::new();
    for _ in 0..arguments.size("s")? {
        let connector = Client::connector().with_session_timeout(arguments.seconds("timeout")?);
        clients.push(Arc::new(connector.connect(arguments.servers()).await?));
    }
    let directory = path("bare");
    let first = clients.first().ok_or("no session")?;
    first.mkdir(&directory, &CreateMode::Persistent.with_acls(Acls::anyone_all())).await?;

    let (warm, span) = (arguments.seconds("warm")?, arguments.seconds("t")?);
    let of_workers = || clients.iter().cycle().zip(0..arguments.size("w").unwrap_or(1));
    let prefix = format!("{directory}/{}lock-", "_c_01234567-89ab-cdef-0123-456789abcdef-");
    let writers =
        of_workers().map(|(client, _)| Writer { client: Arc::clone(client), prefix: prefix.clone() });
    let written = for_a_time(writers.collect(), warm, span, &meters).await?;
    let readers =
        of_workers().map(|(client, _)| Reader { client: Arc::clone(client), path: directory.clone() });
    let read = for_a_time(readers.collect(), warm, span, &meters).await?;

    let stuck = written.stuck + read.stuck;
    let mut report = Report::new(arguments, &written.measurements, written.cost, 0, stuck);
    report.set("read_p50_us", read.measurements.acquire.at(0.5));
    report.set("read_p99_us", read.measurements.acquire.at(0.99));
    report.set("reads_s", read.cost.get("ops_s").cloned());
    Ok(report)
}

struct Writer {
    client: Arc<Client>,
    prefix: String,
}

impl Worker for Writer {
    async fn lap(&mut self) -> Outcome<Lap> {
        let asked = now();
        let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let (_, sequence) = self.client.create(&self.prefix, b"host=bench pid=1", &options).await?;
        let granted = now();
        self.client.delete(&format!("{}{sequence}", self.prefix), None).await?;
        Ok(Lap { acquire: granted - asked, release: Some(granted.elapsed()), handover: None })
    }
}

struct Reader {
    client: Arc<Client>,
    path: String,
}

impl Worker for Reader {
    async fn lap(&mut self) -> Outcome<Lap> {
        let asked = now();
        self.client.get_data(&self.path).await?;
        Ok(Lap { acquire: asked.elapsed(), ..Lap::default() })
    }
}
