use redis::{ClientTlsConfig, TlsCertificates};
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::ConfigError;

/// How connections to `rediss://` URLs are secured.
///
/// By default the certificate authorities of the system are trusted. With [`authority`](Self::authority),
/// only those that are given are.
#[derive(Clone, Default)]
pub struct Tls {
    authorities: Vec<String>,
    identity: Option<(String, String)>,
}

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

    /// What the client crate needs. Every text is read before anything is sent.
    pub(crate) fn certificates(&self) -> Result<TlsCertificates, ConfigError> {
        for authority in &self.authorities {
            check_authority(authority)?;
        }
        let identity = self.identity.as_ref();
        if let Some((certificate, key)) = identity {
            certificates_of("client certificate", certificate)?;
            // The words of the error may have the line with the fault: in a key without line breaks, the key.
            PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| ConfigError {
                setting: "client key",
                value: "a text that is no private key".to_owned(),
                advice: "give the private key in PEM form, with its line breaks, not encrypted",
            })?;
        }
        Ok(TlsCertificates {
            client_tls: identity.map(|(certificate, key)| ClientTlsConfig {
                client_cert: certificate.clone().into_bytes(),
                client_key: key.clone().into_bytes(),
            }),
            root_cert: (!self.authorities.is_empty()).then(|| self.authorities.join("\n").into_bytes()),
        })
    }
}

fn certificates_of(setting: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let advice = "give one or more certificates in PEM form, with their line breaks";
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(ConfigError { setting, value: "a text without a certificate".to_owned(), advice }),
        // As for the key: a key may stand in the place of a certificate.
        Err(_) => Err(ConfigError { setting, value: "a text that is no certificate".to_owned(), advice }),
    }
}

fn check_authority(pem: &str) -> Result<(), ConfigError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates_of("authority", pem)? {
        store.add(certificate).map_err(|error| ConfigError {
            setting: "authority",
            value: error.to_string(),
            advice: "give the certificate of a certificate authority",
        })?;
    }
    Ok(())
}

/// The client crate panics if the process has no cryptography, or several and no choice among them.
pub(crate) fn choose_cryptography() {
    // Whatever the application has chosen before stays.
    let _ = aws_lc_rs::default_provider().install_default();
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tls").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As an environment variable may have it: without line breaks, so that all of it is one line.
    fn in_one_line(label: &str) -> String {
        format!("-----BEGIN {label}-----c2VjcmV0IDEyMw==-----END {label}-----")
    }

    #[test]
    fn no_part_of_a_key_or_a_certificate_is_in_a_message() {
        let (key, certificate) = (in_one_line("PRIVATE KEY"), in_one_line("CERTIFICATE"));
        let valid = "-----BEGIN CERTIFICATE-----\nc2VjcmV0IDEyMw==\n-----END CERTIFICATE-----\n";
        for (tls, said) in [
            (Tls::new().client_identity(valid, &key), "no private key"),
            (Tls::new().client_identity(&certificate, &key), "no certificate"),
            (Tls::new().client_identity(&key, &certificate), "no certificate"),
            (Tls::new().authority(&certificate), "no certificate"),
            (Tls::new().authority(&key), "no certificate"),
            (Tls::new().authority(valid), "authority"),
        ] {
            let message = tls.certificates().unwrap_err().to_string();
            assert!(message.contains(said) && !message.contains("c2Vj"), "{message}");
            assert!(!message.contains("BEGIN") && message.len() < 160, "{message}");
        }
    }
}
