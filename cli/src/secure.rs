//! TLS for the four-letter words, with the certificates of the connection.

use std::io;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Whom this client trusts, and who it is.
#[derive(Clone)]
pub(crate) struct Secure(TlsConnector);

/// The certificate of a client, and its key.
#[derive(Debug)]
pub(crate) struct ClientIdentity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl ClientIdentity {
    /// Reads both from PEM texts. The error says why the certificate cannot be used.
    pub(crate) fn read(certificate: &str, key: &str) -> Result<Self, String> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
        let chain = chain.map_err(|error| format!("the certificate: {}", not_pem(&error)))?;
        if chain.is_empty() {
            return Err("the certificate: no certificate in PEM form".to_owned());
        }
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
            .map_err(|error| format!("the key: {}", not_pem(&error)))?;
        let provider = default_provider();
        CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider).map_err(|error| reason(&error))?;
        Ok(Self { chain, key })
    }
}

/// Why a text is not in PEM form. The library's own words have the line with the fault: in a key without line
/// breaks, the key.
fn not_pem(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::NoItemsFound => "nothing of its kind is in the file",
        pem::Error::MissingSectionEnd { .. } => {
            "a line with END is missing; keep the line breaks of the PEM form"
        }
        pem::Error::IllegalSectionStart { .. } => {
            "a line with BEGIN is wrong; keep the line breaks of the PEM form"
        }
        pem::Error::Base64Decode(_) => "the text between BEGIN and END is not base64",
        _ => "it is not in PEM form",
    }
}

/// What the library of TLS says, and what is meant where it says that by a name alone.
fn reason(error: &rustls::Error) -> String {
    let text = error.to_string();
    let advice = match text.as_str() {
        _ if text.contains("UnsupportedCertVersion") => {
            "; the certificate is not of version 3 of X.509: issue one with an extension, such as a name"
        }
        _ if text.contains("KeyMismatch") => "; the key is not that of the certificate",
        _ => "",
    };
    format!("{text}{advice}")
}

impl Secure {
    /// Without authorities those of the system are trusted.
    pub(crate) fn new(authorities: Option<&str>, identity: Option<ClientIdentity>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        match authorities {
            Some(text) => {
                for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
                    let certificate =
                        certificate.map_err(|error| format!("--tls-ca: {}", not_pem(&error)))?;
                    // As the client of the sessions does: one that cannot be read hides no other.
                    let _ = roots.add(certificate);
                }
            }
            None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        let provider: Arc<CryptoProvider> = default_provider().into();
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?.with_root_certificates(roots);
        let config = match identity {
            Some(ClientIdentity { chain, key }) => {
                builder.with_client_auth_cert(chain, key).map_err(|error| reason(&error))?
            }
            None => builder.with_no_client_auth(),
        };
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// The stream of bytes over this connection to a host, whose certificate must be valid for its name.
    pub(crate) async fn over(&self, stream: TcpStream, host: &str) -> io::Result<TlsStream<TcpStream>> {
        let name =
            ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(io::Error::other)?;
        self.0.connect(name, stream).await
    }
}

impl std::fmt::Debug for Secure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Secure").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = include_str!("../tests/secured/client.pem");
    const KEY: &str = include_str!("../tests/secured/client.key");
    const AUTHORITY: &str = include_str!("../tests/secured/authority.pem");

    /// As an environment variable may have it.
    fn broken(text: &str) -> [String; 2] {
        [text.replace('\n', ""), text.replace('\n', r"\n")]
    }

    #[test]
    fn no_part_of_a_key_or_a_certificate_is_in_a_message() {
        ClientIdentity::read(CERTIFICATE, KEY).unwrap();
        let mut messages = Vec::new();
        messages.extend(broken(KEY).map(|key| ClientIdentity::read(CERTIFICATE, &key).unwrap_err()));
        messages.extend(broken(CERTIFICATE).map(|text| ClientIdentity::read(&text, KEY).unwrap_err()));
        messages.extend(broken(AUTHORITY).map(|text| Secure::new(Some(&text), None).unwrap_err()));
        messages.push(ClientIdentity::read(KEY, CERTIFICATE).unwrap_err());
        for message in messages {
            assert!(!message.contains("BEGIN CERT") && !message.contains(char::is_numeric), "{message}");
            assert!(message.len() < 120, "{message}");
        }
    }
}
