//! TLS and SASL, where their features are on.

use zookeeper_client as client;

use crate::config::tls::{Sasl, Tls};
use crate::error::ConfigError;

#[cfg(feature = "tls")]
pub(super) fn with_tls(
    connector: client::Connector,
    tls: Option<&Tls>,
) -> Result<client::Connector, ConfigError> {
    let Some(tls) = tls else {
        return Ok(connector);
    };
    let refused = |error: client::Error| ConfigError::Setting {
        name: "tls",
        value: error.to_string(),
        advice: "give certificates and keys in PEM form",
    };
    let mut options = client::TlsOptions::new();
    // The client takes one text. A list of PEM texts is their concatenation.
    if !tls.authorities().is_empty() {
        options = options.with_pem_ca(&tls.authorities().join("\n")).map_err(refused)?;
    }
    if let Some((certificate, key)) = tls.identity() {
        options = options.with_pem_identity(certificate, key).map_err(refused)?;
    }
    Ok(connector.with_tls(options))
}

#[cfg(not(feature = "tls"))]
pub(super) fn with_tls(
    connector: client::Connector,
    _: Option<&Tls>,
) -> Result<client::Connector, ConfigError> {
    Ok(connector)
}

#[cfg(any(feature = "sasl-digest-md5", feature = "sasl-gssapi"))]
pub(super) fn with_sasl(
    connector: client::Connector,
    sasl: Option<&Sasl>,
) -> Result<client::Connector, ConfigError> {
    Ok(match sasl {
        None => connector,
        #[cfg(feature = "sasl-digest-md5")]
        Some(Sasl::DigestMd5 { user, password }) => {
            connector.with_sasl(client::SaslOptions::digest_md5(user.clone(), password.clone()))
        }
        #[cfg(feature = "sasl-gssapi")]
        Some(Sasl::Gssapi) => connector.with_sasl(client::SaslOptions::gssapi()),
    })
}

#[cfg(not(any(feature = "sasl-digest-md5", feature = "sasl-gssapi")))]
pub(super) fn with_sasl(
    connector: client::Connector,
    _: Option<&Sasl>,
) -> Result<client::Connector, ConfigError> {
    Ok(connector)
}
