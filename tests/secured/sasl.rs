//! Authentication by SASL DIGEST-MD5.

use lockkeeper::config::Acl;
use lockkeeper::error::{ConnectError, Refusal};
use lockkeeper::{Error, Mutex};
use lockkeeper_tests::{Ensemble, left_out};

use crate::support::{Outcome, a_mutex_passes_between, builder};

#[tokio::test]
async fn who_knows_the_password_takes_locks_that_others_cannot_touch() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::builder().sasl_user("shop", "secret").sasl_user("bank", "vault").start().await?;
    let connect = |user: &str, password: &str| {
        builder(&ensemble.connect_string()).sasl_digest_md5(user, password).acl(Acl::creator_only()).connect()
    };
    let (one, other) = (connect("shop", "secret").await?, connect("shop", "secret").await?);
    a_mutex_passes_between(&one, &other).await?;

    let bank = connect("bank", "vault").await?;
    for stranger in [bank, builder(&ensemble.connect_string()).connect().await?] {
        let error = Mutex::new(&stranger, "/secured/lock")?.acquire().await.unwrap_err();
        assert!(matches!(error, Error::Refused { refusal: Refusal::NoAuth, .. }), "{error}");
    }
    for (user, password) in [("shop", "wrong"), ("nobody", "guess")] {
        let error = connect(user, password).await.expect_err("a refusal");
        assert!(matches!(error, ConnectError::AuthFailed { .. }), "{error}");
    }
    Ok(())
}
