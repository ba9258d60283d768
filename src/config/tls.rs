//! TLS and SASL settings for the client crate, with the features `tls`, `sasl-digest-md5` and `sasl-gssapi`.

/// How connections to `tcp+tls://` endpoints are secured.
///
/// By default no certificate is trusted: add the certificate authorities that signed the servers'
/// certificates.
#[cfg(feature = "tls")]
#[derive(Clone, Default)]
pub struct Tls {
    authorities: Vec<String>,
    identity: Option<(String, String)>,
}

#[cfg(feature = "tls")]
impl Tls {
    /// No certificate is trusted yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts the certificates in this PEM text.
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

    pub(crate) fn authorities(&self) -> &[String] {
        &self.authorities
    }

    pub(crate) fn identity(&self) -> Option<(&str, &str)> {
        self.identity.as_ref().map(|(certificate, key)| (certificate.as_str(), key.as_str()))
    }
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
