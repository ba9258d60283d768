//! What a client does as one of a fleet: it shares the items of a partition, and registers itself.

use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use lockkeeper::discovery::{Instance, NoPayload, Strategy};
use lockkeeper::partition::{AssignedItem, ReleaseReason};
use lockkeeper::presence::{Member, PresenceState};
use lockkeeper::view::{Snapshot, ViewNode};
use lockkeeper::{Discovery, Group, Partition, Registration};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Common;
use super::beside::Beside;
use super::look::LOOK;
use crate::Failure;
use crate::clock;
use crate::fixture::{self, GROUP, PARTITION, SERVICE, SERVICES, SINGLE};
use crate::history::{Mode, Token, What, client_of};

impl Beside {
    /// Works on the items that belong to this client, until everyone is to be quiet.
    pub(super) async fn share(mut self) -> Result<(), Failure> {
        let (common, quiet) = (Arc::clone(&self.common), self.common.quiet.clone());
        let partition = Partition::new(common.pool.for_path(PARTITION), PARTITION)?;
        while let Err(error) = partition.add(fixture::items()).await
            && !quiet.is_cancelled()
        {
            self.failed(common.journal.number(), &error);
            self.rest(10..100).await;
        }
        let mut member = partition.join(client_of(&common.process))?;
        let mut held = FuturesUnordered::new();
        loop {
            tokio::select! {
                () = quiet.cancelled() => break,
                Some(()) = held.next() => {}
                item = member.next() => match item {
                    Some(item) => {
                        let rng = StdRng::seed_from_u64(self.rng.random());
                        held.push(work_on(Arc::clone(&common), self.task, item, rng));
                    }
                    None => break,
                },
            }
        }
        let mut leave = pin!(member.leave());
        let left = loop {
            tokio::select! {
                left = &mut leave => break left,
                Some(()) = held.next() => {}
            }
        };
        if let Err(error) = left {
            self.failed(common.journal.number(), &error);
        }
        while held.next().await.is_some() {}
        Ok(())
    }

    /// Is a member of the group and an instance of the service, and follows both; and wants the node that one
    /// client has.
    pub(super) async fn register(self) -> Result<(), Failure> {
        let (common, quiet) = (&self.common, self.common.quiet.clone());
        let process = common.process.as_str();
        let group = Group::new(common.pool.for_path(GROUP), GROUP)?;
        let own = group.join(client_of(process), process)?;
        let single = Registration::register(common.pool.for_path(SINGLE), SINGLE, process)?;
        let discovery = Discovery::new(common.pool.for_path(SERVICES), SERVICES)?;
        let instance = Instance::new(SERVICE, process, 1).with_id(client_of(process));
        let instance = discovery.register(instance)?;
        let balancer = discovery.balancer(SERVICE, Strategy::RoundRobin)?;
        let members = group.members()?;
        let (mut states_of_own, mut states_of_single) = (own.watch(), single.watch());
        let mut states_of_instance = instance.watch();
        let (mut changes, mut instances) = (members.changes(), balancer.view().changes());
        self.registered(instance.path().as_str(), instance.state());
        self.registered(own.path().as_str(), own.state());
        self.registered(SINGLE, single.state());
        loop {
            tokio::select! {
                () = quiet.cancelled() => break,
                Ok(state) = states_of_own.changed() => self.registered(own.path().as_str(), state),
                Ok(state) = states_of_single.changed() => self.registered(SINGLE, state),
                Ok(state) = states_of_instance.changed() => {
                    self.registered(instance.path().as_str(), state);
                }
                Some(difference) = changes.next() => self.sees(difference.snapshot()),
                Some(difference) = instances.next() => self.finds(difference.snapshot()),
            }
        }
        let attempt = common.journal.number();
        for ended in [own.leave().await, single.release().await, instance.release().await] {
            if let Err(error) = ended {
                self.failed(attempt, &error);
            }
        }
        Ok(())
    }

    fn registered(&self, path: &str, state: PresenceState) {
        if let PresenceState::Registered { czxid } = state {
            self.say(What::Registered { name: fixture::name_of(path).to_owned(), czxid: czxid.get() });
        }
    }

    fn sees(&self, snapshot: &Snapshot<Member>) {
        let member = |(id, node): (&str, &Arc<ViewNode<Member>>)| {
            (id.to_owned(), String::from_utf8_lossy(node.data()).into_owned())
        };
        self.say(What::Sees { members: snapshot.children("").map(member).collect() });
    }

    fn finds(&self, snapshot: &Snapshot<Arc<Instance<NoPayload>>>) {
        let instance = |(id, node): (&str, &Arc<ViewNode<Arc<Instance<NoPayload>>>>)| {
            let address = node.value().ok().and_then(|instance| instance.address());
            (id.to_owned(), address.unwrap_or_default().to_owned())
        };
        self.say(What::Finds { instances: snapshot.children("").map(instance).collect() });
    }
}

/// Works on an item until it is asked for or lost, or for a while.
async fn work_on(common: Arc<Common>, task: usize, item: AssignedItem, mut rng: StdRng) {
    let (hold, lock) = (common.journal.number(), fixture::lock_of(item.item()));
    let (token, say) = (Token::from(item.fencing_token()), |what| common.journal.say(task, what));
    let (mode, nodes) = (Mode::Alone, vec![item.path().to_string()]);
    say(What::Granted { attempt: hold, hold, lock: lock.clone(), mode, token, nodes });
    while common.look(task, hold, item.hold()).await {
        if rng.random_bool(0.1)
            && let Ok(accepted) = common.fenced.stamp(&lock, token, false).await
        {
            let at = clock::now();
            common.journal.say_at(at, task, What::Stamped { hold, accepted, valid: item.is_valid() });
        }
        match tokio::time::timeout(LOOK, item.release_requested()).await {
            // The next look finds the loss.
            Ok(ReleaseReason::Lost) if !item.is_valid() => {}
            Ok(ReleaseReason::Lost) => {
                let text = "the request says that it is lost, is_valid() says true".to_owned();
                say(What::Contradiction { hold, text });
                break;
            }
            Ok(_) => break,
            Err(_) if !common.quiet.is_cancelled() && rng.random_bool(0.005) => break,
            Err(_) => {}
        }
    }
    say(What::Ended { hold });
    if rng.random_bool(0.2) {
        return drop(item);
    }
    if let Some(released) = common.quiet.run_until_cancelled(item.release()).await {
        let outcome = released.map_or_else(|error| error.to_string(), |()| "released".to_owned());
        say(What::Released { hold, outcome });
    }
}
