//! What cannot be checked is a typed error.

use std::error::Error;

use lockkeeper_fence::{FenceError, FencingToken};

use crate::database::Database;

#[tokio::test]
async fn a_name_that_no_table_takes_is_refused_before_anything_is_sent() {
    for database in Database::all().await {
        let mut link = database.link().await;
        // A statement would fail on this table with another error.
        link.run("DROP TABLE lockkeeper_fence").await.unwrap();
        let token = FencingToken::new(1);
        for name in ["", "a\0b", &"a".repeat(256)] {
            let is_refused = |error: FenceError| matches!(error, FenceError::InvalidResource { .. });
            assert!(is_refused(link.check(name, token).await.unwrap_err()), "{name:?}");
            assert!(is_refused(link.check_read(name, token).await.unwrap_err()), "{name:?}");
            assert!(is_refused(link.mark_above(name, token).await.unwrap_err()), "{name:?}");
            assert!(is_refused(link.newest(name).await.unwrap_err()), "{name:?}");
        }
    }
}

#[tokio::test]
async fn a_table_that_is_missing_or_has_other_tokens_is_an_error_and_admits_nothing() {
    for database in Database::all().await {
        let mut link = database.link().await;
        link.run("DROP TABLE lockkeeper_fence").await.unwrap();
        let refused = link.check("stock", FencingToken::new(1)).await.unwrap_err();
        assert!(!refused.is_stale() && !refused.is_transient(), "{refused}");
        assert!(refused.source().is_some() && refused.to_string().contains("needs its table"), "{refused}");

        let is_postgres = matches!(database, Database::Postgres(_));
        let (kind, bytes) = if is_postgres { ("BYTEA", "'zz'") } else { ("BLOB", "x'7a7a'") };
        link.run(&format!(
            "CREATE TABLE lockkeeper_fence \
             (resource VARCHAR(255) PRIMARY KEY, token {kind}, read_token {kind})"
        ))
        .await
        .unwrap();
        link.run(&format!("INSERT INTO lockkeeper_fence VALUES ('stock', {bytes}, {bytes})")).await.unwrap();
        let refused = link.check("stock", FencingToken::new(1)).await.unwrap_err();
        assert!(!refused.is_stale() && !refused.is_transient(), "{database:?}: {refused}");
    }
}
