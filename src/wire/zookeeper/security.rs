//! TLS and SASL, where their features are on.

use zookeeper_client as client;

use crate::config::connect_string::ConnectString;
#[cfg(feature = "tls")]
use crate::config::connect_string::Endpoint;
use crate::config::tls::{Sasl, Tls};
use crate::error::ConfigError;

#[cfg(feature = "tls")]
pub(super) fn with_tls(
    connector: client::Connector,
    servers: &ConnectString,
    tls: Option<&Tls>,
) -> Result<client::Connector, ConfigError> {
    if !servers.endpoints().iter().any(Endpoint::is_secure) {
        return Ok(connector);
    }
    let unset = Tls::new();
    let tls = tls.unwrap_or(&unset);
    // The client's own words may have the line with the fault: in a key without line breaks, the key.
    let refused = |value: &str, advice| ConfigError::Setting { name: "tls", value: value.to_owned(), advice };
    let authorities = client::TlsOptions::new().with_pem_ca(&tls.authorities()?);
    let mut options = authorities
        .map_err(|_| refused("the authorities", "give certificates in PEM form, with its line breaks"))?;
    if let Some((certificate, key)) = tls.identity() {
        let identity = options.with_pem_identity(certificate, key);
        let advice = "give both in PEM form, with line breaks, and the certificate's own key, not encrypted";
        options = identity.map_err(|_| refused("the client's certificate or its key", advice))?;
    }
    Ok(connector.with_tls(options))
}

#[cfg(not(feature = "tls"))]
pub(super) fn with_tls(
    connector: client::Connector,
    _: &ConnectString,
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
