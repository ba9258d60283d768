//! The scripts on a server decide as their rules in Rust do.

use std::collections::BTreeMap;

use lockkeeper_redis::rule::{Answer, LockRule};
use lockkeeper_redis_tests::left_out;
use redis::Script;
use redis::aio::MultiplexedConnection;

use crate::fixture::server;

macro_rules! script {
    ($($part:literal),+) => {
        Script::new(concat!($(include_str!(concat!("../../../redis/src/script/", $part)), "\n"),+))
    };
}

/// Longer than the test takes, so that nothing expires: what expires is the pure tests' part.
const LEASE: u64 = 600_000;

struct Scripts {
    acquire: Script,
    release: Script,
    extend: Script,
    limit: Option<u64>,
    connection: MultiplexedConnection,
}

impl Scripts {
    async fn call(&mut self, script: fn(&Self) -> &Script, name: &str, arguments: &[String]) -> Vec<i64> {
        let parts = ["fence", "queue", "waiters", "permits"];
        let keys = std::iter::once(name.to_owned())
            .chain(parts.map(|part| format!("{{{name}}}:lockkeeper:{part}")))
            .take(if self.limit.is_some() { 5 } else { 4 });
        let mut connection = self.connection.clone();
        let mut invocation = script(self).prepare_invoke();
        for key in keys {
            invocation.key(key);
        }
        let answer: redis::Value = invocation.arg(arguments).invoke_async(&mut connection).await.unwrap();
        match answer {
            redis::Value::Int(single) => vec![single],
            other => redis::FromRedisValue::from_redis_value(other).unwrap(),
        }
    }
}

/// A small generator of numbers, from a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

async fn scripts_and_rule_agree(scripts: &mut Scripts, seed: u64) {
    let mut draws = Draws(seed);
    let limit = scripts.limit.unwrap_or(1);
    let (mut rule, name) = (LockRule::new(limit), format!("lock-{seed}-{limit}-{}", scripts.limit.is_some()));
    // What each id asked for first: a waiter asks for the same again.
    let mut asked: BTreeMap<u64, u64> = BTreeMap::new();
    for step in 0..60 {
        let id = draws.below(5);
        let text = format!("lockkeeper:{id}");
        match draws.below(8) {
            0..=3 => {
                let permits = *asked.entry(id).or_insert_with(|| 1 + draws.below(limit));
                let waits = draws.below(3) > 0;
                let mode = if waits { "wait" } else { "try" };
                let mut arguments = vec![text, LEASE.to_string(), mode.to_owned(), "channel".to_owned()];
                if scripts.limit.is_some() {
                    arguments.extend([permits.to_string(), limit.to_string()]);
                }
                let answer = scripts.call(|scripts| &scripts.acquire, &name, &arguments).await;
                let expected = match rule.acquire(step, id, permits, LEASE, waits).0 {
                    Answer::Held { token } => vec![1, token as i64],
                    Answer::Waits { ahead, newest } => vec![0, ahead as i64, newest as i64],
                };
                let seen = match answer.as_slice() {
                    [0, ahead, _, _, newest] => vec![0, *ahead, *newest],
                    other => other.to_vec(),
                };
                assert_eq!(seen, expected, "seed {seed}, step {step}: acquire {id} {mode}");
            }
            4..=6 => {
                asked.remove(&id);
                let answer = scripts.call(|scripts| &scripts.release, &name, &[text]).await;
                let (held, _) = rule.release(step, id);
                assert_eq!(answer, [i64::from(held)], "seed {seed}, step {step}: release {id}");
            }
            _ => {
                let arguments = [text, LEASE.to_string()];
                let answer = scripts.call(|scripts| &scripts.extend, &name, &arguments).await;
                let (held, _) = rule.extend(step, id, LEASE);
                assert_eq!(answer, [i64::from(held)], "seed {seed}, step {step}: extend {id}");
            }
        }
    }
}

#[tokio::test]
async fn the_scripts_decide_as_their_rule() {
    if left_out() {
        return;
    }
    let server = server().await;
    let connection = server.raw().await.unwrap();
    let mut mutex = Scripts {
        acquire: script!("queue.lua", "mutex.lua", "acquire.lua"),
        release: script!("queue.lua", "mutex.lua", "release.lua"),
        extend: script!("queue.lua", "mutex.lua", "extend.lua"),
        limit: None,
        connection: connection.clone(),
    };
    for seed in 0..40 {
        scripts_and_rule_agree(&mut mutex, seed).await;
    }
    for limit in 1..4 {
        let mut permits = Scripts {
            acquire: script!("queue.lua", "permits.lua", "acquire_permits.lua"),
            release: script!("queue.lua", "permits.lua", "release_permits.lua"),
            extend: script!("queue.lua", "permits.lua", "extend_permits.lua"),
            limit: Some(limit),
            connection: connection.clone(),
        };
        for seed in 0..20 {
            scripts_and_rule_agree(&mut permits, seed).await;
        }
    }
}
