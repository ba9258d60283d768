//! A rate limit on Redis, as services have it: a script of GCRA, which keeps one number for a key.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use hdrhistogram::Histogram;
use lockkeeper_lock::BootInstant;
use redis::Script;
use redis::aio::MultiplexedConnection;

use crate::load::Failure;
use crate::peers::connected;

const USAGE: &str = "usage: URL gcra admit w=32 s=2 limit=1000 window=1000 t=5 warm=1";

/// The number is the time at which all that was admitted is paid for, in microseconds. Answers the
/// microseconds to wait; 0: admitted.
const SCRIPT: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local each, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local paid = math.max(now, tonumber(redis.call('GET', KEYS[1]) or now)) + each
if paid - now > window then return paid - now - window end
redis.call('SET', KEYS[1], string.format('%d', math.floor(paid)), 'PX', math.ceil(window / 1000) + 1)
return 0";

/// Runs the load, and prints it as one line of JSON.
pub(crate) async fn run(url: &str, words: &[String]) -> Result<(), Failure> {
    let mut keys = BTreeMap::new();
    for word in words {
        let (key, value) = word.split_once('=').ok_or(USAGE)?;
        if !["w", "s", "limit", "window", "t", "warm"].contains(&key) {
            return Err(USAGE.into());
        }
        keys.insert(key, value.parse::<u64>()?);
    }
    let number = |key: &str, default: u64| keys.get(key).copied().unwrap_or(default);
    let connections = (0..number("s", 2).max(1)).map(|_| connected(url));
    let connections = try_join_all(connections).await?;
    let window = number("window", 1_000) * 1_000;
    let each = window as f64 / number("limit", 1_000).max(1) as f64;
    let (warm, span) = (Duration::from_secs(number("warm", 1)), Duration::from_secs(number("t", 5)));
    let begun = BootInstant::now();
    let callers = connections.iter().cycle().zip(0..number("w", 32)).map(|(connection, _)| {
        let mut connection = connection.clone();
        tokio::spawn(async move {
            let mut waits = Histogram::<u64>::new(3)?;
            loop {
                let asked = BootInstant::now().since(begun);
                if asked >= warm + span {
                    return Ok::<_, Failure>(waits);
                }
                admit(&mut connection, each, window).await?;
                let admitted = BootInstant::now().since(begun);
                if admitted >= warm && admitted < warm + span {
                    waits.record(u64::try_from((admitted - asked).as_nanos())?)?;
                }
            }
        })
    });
    let mut waits = Histogram::<u64>::new(3)?;
    for caller in callers.collect::<Vec<_>>() {
        waits.add(caller.await??)?;
    }
    let quantile = |at: f64| waits.value_at_quantile(at) as f64 / 1e3;
    println!(
        "{}",
        serde_json::json!({
            "peer": "redis", "scenario": "admit", "params": words,
            "ops": waits.len(), "elapsed_s": span.as_secs_f64(),
            "ops_s": waits.len() as f64 / span.as_secs_f64(),
            "acq_p50_us": quantile(0.5), "acq_p99_us": quantile(0.99),
        })
    );
    Ok(())
}

async fn admit(connection: &mut MultiplexedConnection, each: f64, window: u64) -> Result<(), Failure> {
    let script = Script::new(SCRIPT);
    loop {
        let mut invocation = script.key("lockkeeper-redis-bench:limit");
        match invocation.arg(each).arg(window).invoke_async::<u64>(connection).await? {
            0 => return Ok(()),
            wait => tokio::time::sleep(Duration::from_micros(wait)).await,
        }
    }
}
