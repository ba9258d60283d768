//! The scripts of the fence refuse a holder that is late.

use lockkeeper_fence::FencingToken;
use lockkeeper_fence::redis::{CHECK, CHECK_AND_SET};
use lockkeeper_redis_tests::{RedisServer, left_out};
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Script};

async fn set(raw: &mut MultiplexedConnection, token: &str, value: &str) -> RedisResult<Option<String>> {
    let script = Script::new(CHECK_AND_SET);
    script.key("{stock}:fence").key("{stock}").arg(token).arg(value).invoke_async(raw).await
}

async fn stock(raw: &mut MultiplexedConnection) -> Option<String> {
    redis::cmd("GET").arg("{stock}").query_async(raw).await.unwrap()
}

#[tokio::test]
async fn a_script_writes_for_the_newest_holder_and_refuses_every_older_one() {
    if left_out() {
        return;
    }
    let server = RedisServer::start(&[]).await.unwrap();
    let mut raw = server.raw().await.unwrap();
    let digits = |number, handover| FencingToken::from_parts(0, number, handover).to_decimal();
    // The order of the numbers, and not that of their shortest texts.
    for (token, value) in
        [(digits(9, 0), "a"), (digits(9, 0), "b"), (digits(10, 0), "c"), (digits(10, 1), "d")]
    {
        assert_eq!(set(&mut raw, &token, value).await.unwrap(), None);
        assert_eq!(stock(&mut raw).await.as_deref(), Some(value));
    }
    for late in [digits(9, 7), digits(10, 0)] {
        assert_eq!(set(&mut raw, &late, "late").await.unwrap(), Some(digits(10, 1)));
        assert_eq!(stock(&mut raw).await.as_deref(), Some("d"));
        let checked = Script::new(CHECK).key("{stock}:fence").arg(&late).invoke_async(&mut raw).await;
        assert_eq!(checked, Ok(Some(digits(10, 1))));
    }
    let restored = FencingToken::from_parts(1, 1, 0).to_decimal();
    assert_eq!(set(&mut raw, &restored, "restored").await.unwrap(), None);
    assert_eq!(set(&mut raw, &digits(99, 0), "late").await.unwrap(), Some(restored));
}

#[tokio::test]
async fn a_script_refuses_what_is_no_token() {
    if left_out() {
        return;
    }
    let server = RedisServer::start(&[]).await.unwrap();
    let mut raw = server.raw().await.unwrap();
    for wrong in ["", "7", "0x2a.0", &"9".repeat(40), &" ".repeat(39)] {
        let refused = set(&mut raw, wrong, "wrong").await.unwrap_err();
        assert!(refused.to_string().contains("39 digits"), "{refused}");
        assert_eq!(stock(&mut raw).await, None);
    }
}
