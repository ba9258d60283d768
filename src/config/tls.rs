//! TLS and SASL settings for the client crate, with the features `tls`, `sasl-digest-md5` and `sasl-gssapi`.

use super::connect_string::ConnectString;
use super::error::ConfigError;

/// How connections to `tcp+tls://` endpoints are secured.
///
/// By default the certificate authorities of the system are trusted. With [`authority`](Self::authority),
/// only those that are given are.
///
/// The system's authorities are read when the manager is built. On Linux they are a file or a folder of PEM
/// texts, and the environment variables `SSL_CERT_FILE` and `SSL_CERT_DIR` name others.
#[cfg(feature = "tls")]
#[derive(Clone, Default)]
pub struct Tls {
    authorities: Vec<String>,
    identity: Option<(String, String)>,
}

#[cfg(feature = "tls")]
impl Tls {
    /// The certificate authorities of the system, and no client certificate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts the certificates in this PEM text, and those of the system no more.
    #[must_use]
    pub fn authority(mut self, pem: &str) -> Self {
        self.authorities.push(pem.to_owned());
        self
    }

    /// Presents this certificate to servers that request one. Both texts are in PEM form.
    #[must_use]
    pub fn client_identity(mut self, certificate: &str, key: &str) -> Self {
        self.identity = Some((certificate.to_owned(), key.to_owned()));
        self
    }

    /// The certificates to be trusted, as one PEM text.
    pub(crate) fn authorities(&self) -> Result<String, ConfigError> {
        if self.authorities.is_empty() { system_authorities() } else { Ok(self.authorities.join("\n")) }
    }

    pub(crate) fn identity(&self) -> Option<(&str, &str)> {
        self.identity.as_ref().map(|(certificate, key)| (certificate.as_str(), key.as_str()))
    }
}

/// The certificates in the store of the operating system, those left out that cannot be read beside others.
#[cfg(feature = "tls")]
fn system_authorities() -> Result<String, ConfigError> {
    let store = rustls_native_certs::load_native_certs();
    if store.certs.is_empty() {
        let cause = store.errors.first().map(|error| format!(": {error}"));
        return Err(ConfigError::Setting {
            name: "tls",
            value: format!("the system's store without a certificate{}", cause.unwrap_or_default()),
            advice: "install the system's certificates, or give yours by Tls::authority()",
        });
    }
    let text = |certificate: &[u8]| pem::encode(&pem::Pem::new("CERTIFICATE", certificate));
    Ok(store.certs.iter().map(|certificate| text(certificate)).collect())
}

#[cfg(feature = "tls")]
impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// Without the feature there are no TLS settings.
#[cfg(not(feature = "tls"))]
#[derive(Clone, Debug)]
pub(crate) enum Tls {}

/// With TLS settings, a server without TLS would have everything in plain.
pub(crate) fn check_tls(servers: &ConnectString, tls: Option<&Tls>) -> Result<(), ConfigError> {
    match servers.endpoints().iter().find(|endpoint| !endpoint.is_secure()) {
        Some(plain) if tls.is_some() => Err(ConfigError::Setting {
            name: "tls",
            value: format!("set, and {plain} is a server without TLS"),
            advice: "write tcp+tls:// before each server, or leave out tls()",
        }),
        _ => Ok(()),
    }
}

/// How a connection authenticates through SASL.
#[derive(Clone)]
pub(crate) enum Sasl {
    /// With a user name and a password.
    #[cfg(feature = "sasl-digest-md5")]
    DigestMd5 { user: String, password: String },
    /// With Kerberos, as the environment configures it.
    #[cfg(feature = "sasl-gssapi")]
    Gssapi,
}

impl std::fmt::Debug for Sasl {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Sasl").finish_non_exhaustive()
    }
}
