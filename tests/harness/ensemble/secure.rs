//! TLS and SASL of a server: ZooKeeper reads both from files and system properties.

use std::fs;
use std::path::Path;

use crate::error::HarnessError;

const IDENTITY: &str = "identity.pem";
const AUTHORITIES: &str = "authorities.pem";
const LOGIN: &str = "jaas.conf";

/// How a server secures its connections; all texts in PEM form.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerTls {
    /// Its certificate, and its key.
    pub identity: String,
    /// The certificate authority of the accepted clients.
    pub authorities: String,
    /// Whether clients must show one.
    pub asks_for_certificates: bool,
}

/// Writes the files that [`arguments`] names.
pub(super) fn furnish(
    home: &Path,
    tls: Option<&ServerTls>,
    sasl_users: &[(String, String)],
) -> Result<(), HarnessError> {
    let write = |name, text: String| {
        fs::write(home.join(name), text).map_err(HarnessError::io(format!("write {name}")))
    };
    if let Some(tls) = tls {
        write(IDENTITY, tls.identity.clone())?;
        write(AUTHORITIES, tls.authorities.clone())?;
    }
    if !sasl_users.is_empty() {
        let users: String =
            sasl_users.iter().map(|(user, password)| format!("  user_{user}=\"{password}\"\n")).collect();
        let module = "org.apache.zookeeper.server.auth.DigestLoginModule required";
        write(LOGIN, format!("Server {{\n  {module}\n{users}  ;\n}};\n"))?;
    }
    Ok(())
}

/// The system properties for it.
pub(super) fn arguments(
    home: &Path,
    tls: Option<&ServerTls>,
    sasl_users: &[(String, String)],
) -> Vec<String> {
    let file = |name| home.join(name).display().to_string();
    let mut properties = Vec::new();
    if let Some(tls) = tls {
        let asked = if tls.asks_for_certificates { "need" } else { "none" };
        properties.extend([
            // The usual one speaks no TLS.
            ("zookeeper.serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory".to_owned()),
            ("zookeeper.ssl.keyStore.location", file(IDENTITY)),
            ("zookeeper.ssl.trustStore.location", file(AUTHORITIES)),
            ("zookeeper.ssl.clientAuth", asked.to_owned()),
        ]);
    }
    if !sasl_users.is_empty() {
        properties.extend([
            (
                "zookeeper.authProvider.sasl",
                "org.apache.zookeeper.server.auth.SASLAuthenticationProvider".to_owned(),
            ),
            ("java.security.auth.login.config", file(LOGIN)),
        ]);
    }
    properties.into_iter().map(|(name, value)| format!("-D{name}={value}")).collect()
}
