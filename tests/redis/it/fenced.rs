//! The scripts of the fence refuse a holder that is late, and each part of them is needed for that.

use lockkeeper_fence::FencingToken;
use lockkeeper_fence::redis::{CHECK, CHECK_AND_SET};
use lockkeeper_redis_tests::{RedisServer, left_out};
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Script};

/// The part that sells under a token, on the keys of one resource.
struct Stock<'a> {
    raw: MultiplexedConnection,
    resource: String,
    script: &'a str,
}

impl Stock<'_> {
    async fn set(&mut self, token: &str, value: &str) -> RedisResult<Option<String>> {
        let (script, resource) = (Script::new(self.script), &self.resource);
        let mut called = script.key(format!("{{{resource}}}:fence"));
        called.key(format!("{{{resource}}}")).arg(token).arg(value).invoke_async(&mut self.raw).await
    }

    async fn value(&mut self) -> Option<String> {
        let key = format!("{{{}}}", self.resource);
        redis::cmd("GET").arg(key).query_async(&mut self.raw).await.unwrap()
    }

    /// The first rule that the script breaks.
    async fn broken(&mut self) -> Option<&'static str> {
        for wrong in ["", "7", "0x2a.0", &"9".repeat(40), &" ".repeat(39), &"a".repeat(39)] {
            let refused = self.set(wrong, "wrong").await.err();
            if !refused.is_some_and(|error| error.to_string().contains("39 digits")) {
                return Some("what is no token is refused");
            }
        }
        // Tokens of a real ensemble, which differ only where a floating-point number has no digits.
        let digits =
            |number, handover| FencingToken::from_parts(0, (7_u64 << 32) + number, handover).to_decimal();
        for (token, value) in
            [(digits(9, 0), "a"), (digits(9, 0), "b"), (digits(10, 0), "c"), (digits(10, 1), "d")]
        {
            if self.set(&token, value).await != Ok(None) || self.value().await.as_deref() != Some(value) {
                return Some("the newest holder writes, and writes again");
            }
        }
        for late in [digits(9, 7), digits(10, 0)] {
            let newer = self.set(&late, "late").await;
            if self.value().await.as_deref() != Some("d") {
                return Some("a late holder writes nothing");
            }
            if newer != Ok(Some(digits(10, 1))) {
                return Some("the refusal names the newer token");
            }
        }
        let restored = FencingToken::from_parts(1, 1, 0).to_decimal();
        let (first, late) = (self.set(&restored, "e").await, self.set(&digits(99, 0), "late").await);
        let is_first = (first, late) == (Ok(None), Ok(Some(restored)));
        (!is_first).then_some("the generation is compared first")
    }
}

async fn stock<'a>(server: &RedisServer, resource: &str, script: &'a str) -> Stock<'a> {
    Stock { raw: server.raw().await.unwrap(), resource: resource.to_owned(), script }
}

#[tokio::test]
async fn a_script_writes_for_the_newest_holder_and_refuses_every_older_one() {
    if left_out() {
        return;
    }
    let server = RedisServer::start(&[]).await.unwrap();
    let mut stock = stock(&server, "stock", CHECK_AND_SET).await;
    assert_eq!(stock.broken().await, None);
    let newest = FencingToken::from_parts(1, 1, 0).to_decimal();
    for (token, newer) in [(FencingToken::new(900).to_decimal(), Some(newest.clone())), (newest, None)] {
        let script = Script::new(CHECK);
        let checked = script.key("{stock}:fence").arg(&token).invoke_async(&mut stock.raw).await;
        assert_eq!(checked, Ok(newer), "the check alone");
    }
    // For the engineer on call.
    let held = FencingToken::from_parts(1, 1, 0);
    let mark = held.mark_above().to_decimal();
    let marked = Script::new(CHECK).key("{stock}:fence").arg(&mark).invoke_async(&mut stock.raw).await;
    assert_eq!(marked, Ok(None::<String>));
    for late in [held, FencingToken::from_parts(1, 1, 9)] {
        assert_eq!(stock.set(&late.to_decimal(), "late").await, Ok(Some(mark.clone())));
    }
}

/// The mutants of the script: it is a constant, which tests/mutants cannot break.
#[tokio::test]
async fn without_any_part_of_the_script_a_rule_is_broken() {
    if left_out() {
        return;
    }
    let server = RedisServer::start(&[]).await.unwrap();
    let parts = [
        ("not string.find(ARGV[1], '^%d+$') or ", "", "what is no token is refused"),
        (" or #ARGV[1] ~= 39", "", "what is no token is refused"),
        ("ARGV[1] < newest", "ARGV[1] <= newest", "the newest holder writes, and writes again"),
        ("ARGV[1] < newest", "false", "a late holder writes nothing"),
        ("ARGV[1] < newest", "tonumber(ARGV[1]) < tonumber(newest)", "a late holder writes nothing"),
        ("redis.call('SET', KEYS[1], ARGV[1])", "", "a late holder writes nothing"),
        ("return newest", "return ARGV[1]", "the refusal names the newer token"),
        ("redis.call('SET', KEYS[2], ARGV[2])", "", "the newest holder writes, and writes again"),
    ];
    for (number, (part, instead, rule)) in parts.into_iter().enumerate() {
        assert!(CHECK_AND_SET.contains(part), "{part}");
        let script = CHECK_AND_SET.replace(part, instead);
        let mut stock = stock(&server, &format!("stock-{number}"), &script).await;
        assert_eq!(stock.broken().await, Some(rule), "{part} became {instead:?}");
    }
}
