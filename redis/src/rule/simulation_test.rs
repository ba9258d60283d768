//! Clients and a server in simulated time: messages are delayed, lost and late, clients stop, and the
//! server forgets nothing. At no time do two clients believe that they hold a mutex.

use std::collections::VecDeque;
use std::time::Duration;

use lockkeeper_lock::BootInstant;
use proptest::prelude::*;

use super::{Answer, Grant, LockRule};
use crate::lease::LeaseClock;

const LEASE: u64 = 1_000;

fn clock(at: u64) -> BootInstant {
    BootInstant::at(Duration::from_millis(at))
}

/// A contender as the crate has it: what it knows, and what it may believe.
#[derive(Clone, Debug, Default)]
struct Client {
    /// The id of the present acquire; a new one for each.
    id: u64,
    /// When the last answered request of the waiter was sent, and the newest token at that time.
    confirmed: Option<(u64, u64)>,
    held: Option<LeaseClock>,
    token: u64,
}

#[derive(Clone, Debug)]
enum Message {
    Acquire { client: usize, id: u64, sent: u64 },
    Release { id: u64 },
    Extend { client: usize, id: u64, sent: u64 },
    Acquired { client: usize, id: u64, sent: u64, answer: Answer },
    Extended { client: usize, id: u64, sent: u64, held: bool },
    Granted { id: u64, token: u64 },
}

#[derive(Clone, Debug)]
enum Step {
    /// Time passes.
    Pass(u64),
    /// A client sends what it would send.
    Act(usize),
    /// A client gives up, or releases.
    Leave(usize),
    /// A message arrives, whichever: the network has no order.
    Deliver(usize),
    Lose(usize),
    /// A message arrives, and will arrive again.
    Repeat(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..400_u64).prop_map(Step::Pass),
        6 => (0..3_usize).prop_map(Step::Act),
        2 => (0..3_usize).prop_map(Step::Leave),
        12 => (0..8_usize).prop_map(Step::Deliver),
        1 => (0..8_usize).prop_map(Step::Lose),
        1 => (0..8_usize).prop_map(Step::Repeat),
    ]
}

#[derive(Debug)]
struct World {
    at: u64,
    rule: LockRule,
    clients: Vec<Client>,
    network: VecDeque<Message>,
    ids: u64,
    tokens: u64,
}

impl World {
    fn new() -> Self {
        let clients = (1..=3).map(|id| Client { id, ..Client::default() }).collect();
        Self { at: 10_000, rule: LockRule::new(1), clients, network: VecDeque::new(), ids: 3, tokens: 0 }
    }

    fn act(&mut self, client: usize) {
        let Client { id, held, .. } = self.clients[client].clone();
        let sent = self.at;
        self.network.push_back(match held {
            Some(_) => Message::Extend { client, id, sent },
            None => Message::Acquire { client, id, sent },
        });
    }

    fn leave(&mut self, client: usize) {
        let id = self.clients[client].id;
        self.network.push_back(Message::Release { id });
        self.ids += 1;
        self.clients[client] = Client { id: self.ids, ..Client::default() };
    }

    fn publish(&mut self, grants: Vec<Grant>) {
        self.network.extend(grants.into_iter().map(|Grant { id, token }| Message::Granted { id, token }));
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::Acquire { client, id, sent } => {
                let (answer, grants) = self.rule.acquire(self.at, id, 1, LEASE, true);
                self.publish(grants.into_iter().filter(|grant| grant.id != id).collect());
                self.network.push_back(Message::Acquired { client, id, sent, answer });
            }
            Message::Release { id } => {
                let (_, grants) = self.rule.release(self.at, id);
                self.publish(grants);
            }
            Message::Extend { client, id, sent } => {
                let (held, grants) = self.rule.extend(self.at, id, LEASE);
                self.publish(grants);
                self.network.push_back(Message::Extended { client, id, sent, held });
            }
            Message::Acquired { client, id, sent, answer } if self.clients[client].id == id => match answer {
                Answer::Held { token } => self.grant(client, sent, token),
                Answer::Waits { newest, .. } => {
                    let confirmed = &mut self.clients[client].confirmed;
                    *confirmed = (*confirmed).max(Some((sent, newest)));
                }
            },
            Message::Extended { client, id, sent, held } if self.clients[client].id == id => {
                let lease = self.clients[client].held.as_mut();
                match (lease, held) {
                    (Some(lease), true) => lease.confirm(clock(sent)),
                    (Some(_), false) => self.leave(client),
                    (None, _) => {}
                }
            }
            Message::Granted { id, token } => {
                let found = self.clients.iter().position(|client| client.id == id);
                if let Some(client) = found
                    && let Some((sent, newest)) = self.clients[client].confirmed
                    && token > newest
                {
                    self.grant(client, sent, token);
                }
            }
            Message::Acquired { .. } | Message::Extended { .. } => {}
        }
    }

    fn grant(&mut self, client: usize, base: u64, token: u64) {
        let lease = LeaseClock::new(clock(base), Duration::from_millis(LEASE));
        let own = &mut self.clients[client];
        if own.held.is_none() && lease.is_valid(clock(self.at)) {
            assert!(token > self.tokens, "the token {token} after {}", self.tokens);
            self.tokens = token;
            (own.held, own.token) = (Some(lease), token);
        }
    }

    fn valid(&self) -> usize {
        let is_valid = |lease: &LeaseClock| lease.is_valid(clock(self.at));
        self.clients.iter().filter_map(|client| client.held.as_ref()).filter(|lease| is_valid(lease)).count()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn at_most_one_client_believes_that_it_holds_the_mutex(steps in prop::collection::vec(step(), 0..150)) {
        let mut world = World::new();
        for step in steps {
            match step {
                Step::Pass(time) => world.at += time,
                Step::Act(client) => world.act(client),
                Step::Leave(client) => world.leave(client),
                Step::Deliver(index) => {
                    let index = index % world.network.len().max(1);
                    if let Some(message) = world.network.remove(index) {
                        world.deliver(message);
                    }
                }
                Step::Lose(index) => {
                    let index = index % world.network.len().max(1);
                    world.network.remove(index);
                }
                Step::Repeat(index) => {
                    let index = index % world.network.len().max(1);
                    // Only a request of a client arrives twice, by a retry.
                    if let Some(message @ (Message::Acquire { .. } | Message::Release { .. })) =
                        world.network.get(index).cloned()
                    {
                        world.deliver(message);
                    }
                }
            }
            prop_assert!(world.valid() <= 1, "{world:?}");
        }
    }
}

#[test]
fn a_message_of_a_grant_whose_lease_is_over_is_no_grant() {
    let mut world = World::new();
    let all = |world: &mut World| {
        while let Some(message) = world.network.pop_front() {
            world.deliver(message);
        }
    };
    world.act(0);
    all(&mut world);
    world.act(1);
    all(&mut world);
    world.leave(0);
    let release = world.network.pop_front().unwrap();
    world.deliver(release);
    // The message stays in the network for longer than the lease, in which another client takes the lock.
    let late = world.network.pop_front().unwrap();
    assert!(matches!(late, Message::Granted { id: 2, .. }), "{late:?}");
    world.at += LEASE;
    world.act(2);
    all(&mut world);
    world.act(1);
    all(&mut world);
    world.deliver(late);
    assert_eq!(world.valid(), 1, "{world:?}");
}
