use std::io;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::StartError;
use super::socket::{Receiver, Sender};

/// The names for which the certificate is.
const NAMES: [&str; 2] = ["127.0.0.1", "localhost"];

/// The certificate of the servers of one ensemble, and the authority that has signed it.
#[derive(Clone)]
pub(super) struct Identity {
    acceptor: TlsAcceptor,
    authority: Arc<str>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    /// Makes a certificate, and an authority of its own for it.
    pub(super) fn generate() -> Result<Self, StartError> {
        let failed = |error: rcgen::Error| StartError::Certificate(error.to_string());
        let mut of_authority = CertificateParams::default();
        of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        of_authority.distinguished_name.push(DnType::CommonName, "lockkeeper-testserver");
        let key = KeyPair::generate().map_err(failed)?;
        let authority = CertifiedIssuer::self_signed(of_authority, key).map_err(failed)?;

        let of_server = CertificateParams::new(NAMES.map(str::to_owned)).map_err(failed)?;
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = of_server.signed_by(&key, &authority).map_err(failed)?;
        let private = PrivateKeyDer::try_from(key.serialize_der());
        let private = private.map_err(|error| StartError::Certificate(error.to_owned()))?;
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map(|builder| builder.with_no_client_auth())
            .and_then(|builder| builder.with_single_cert(vec![certificate.der().clone()], private))
            .map_err(|error| StartError::Certificate(error.to_string()))?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Self { acceptor, authority: authority.pem().into() })
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// Makes the handshake, and returns both sides of the connection.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<(Receiver, Sender)> {
        let (read, write) = tokio::io::split(self.acceptor.accept(stream).await?);
        Ok((Box::new(read), Sender::Secure(Box::new(write))))
    }
}
