//! The statements decide as the rule in Rust.

use lockkeeper_fence::sql::{MYSQL, POSTGRESQL, SQLITE};
use lockkeeper_fence::{FenceError, FencingToken, Marks};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::database::Database;

/// A token near the others, in one of two generations, and often of a kept node.
fn token(rng: &mut StdRng) -> FencingToken {
    let parts = (rng.random_range(0..2), rng.random_range(0..6), rng.random_range(0..3));
    // With the upper half of the numbers, which a signed comparison would put first.
    let number = if rng.random_bool(0.2) { u64::MAX - parts.1 } else { parts.1 };
    FencingToken::from_parts(parts.0, number, parts.2)
}

fn refusal(result: Result<(), FenceError>) -> Option<FencingToken> {
    match result {
        Ok(()) => None,
        Err(FenceError::Stale(stale)) => Some(stale.newer),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn the_statements_decide_as_the_rule() {
    for database in Database::all().await {
        let mut link = database.link().await;
        let mut refused = 0;
        for seed in 0..150 {
            let mut rng = StdRng::seed_from_u64(seed);
            let resource = format!("rule/{seed}");
            let mut marks = Marks::default();
            for step in 0..12 {
                let token = token(&mut rng);
                let at = format!("{database:?}, seed {seed}, step {step}, {token} at {marks:?}");
                let expected = match rng.random_range(0..10) {
                    0..5 => {
                        assert_eq!(
                            refusal(link.check(&resource, token).await),
                            marks.write(token).err(),
                            "{at}"
                        );
                        marks.write(token)
                    }
                    5..9 => {
                        let read = refusal(link.check_read(&resource, token).await);
                        assert_eq!(read, marks.read(token).err(), "{at}");
                        marks.read(token)
                    }
                    _ => {
                        link.mark_above(&resource, token).await.unwrap();
                        Ok(marks.above(token))
                    }
                };
                refused += u32::from(expected.is_err());
                marks = expected.unwrap_or(marks);
                assert_eq!(link.newest(&resource).await.unwrap(), marks, "{at}");
            }
        }
        assert!(refused > 300, "only {refused} were refused");
    }
}

#[test]
fn the_page_on_fencing_has_the_statements() {
    let page = include_str!("../../../docs/fencing.md");
    for of in [POSTGRESQL, SQLITE, MYSQL] {
        for statement in [of.table, of.check, of.check_read] {
            assert!(page.contains(&format!("{statement};\n")), "docs/fencing.md lacks: {statement}");
        }
    }
}

#[tokio::test]
async fn resources_are_told_apart_byte_by_byte() {
    for database in Database::all().await {
        let mut link = database.link().await;
        let names = ["a", "A", "a ", "ä", "a\u{308}", "%", "_", "a'b", &"a".repeat(255)];
        for (name, number) in names.into_iter().zip(1..) {
            link.check(name, FencingToken::new(number)).await.unwrap();
        }
        for (name, number) in names.into_iter().zip(1..) {
            let marks = link.newest(name).await.unwrap();
            assert_eq!(marks, Marks::new(FencingToken::new(number), FencingToken::new(0)), "{name:?}");
        }
        assert_eq!(link.newest("b").await.unwrap(), Marks::default());
    }
}
