//! The certificates, for sessions and for the four-letter words.

use lockkeeper::config::ConnectionManagerBuilder;

use super::options::ConnectionOptions;
#[cfg(feature = "tls")]
use crate::connection_file::read_text;
use crate::exit::Failure;
use crate::four_letter_words::Words;
#[cfg(feature = "tls")]
use crate::four_letter_words::addresses;
#[cfg(feature = "tls")]
use crate::secure::{ClientIdentity, Secure};

impl ConnectionOptions {
    #[cfg(feature = "tls")]
    pub(super) fn secure(
        &self,
        builder: ConnectionManagerBuilder,
    ) -> Result<ConnectionManagerBuilder, Failure> {
        if let (None, None, None) = (&self.tls_ca, &self.tls_cert, &self.tls_key) {
            return Ok(builder);
        }
        let mut tls = lockkeeper::config::Tls::new();
        if let Some(authority) = &self.tls_ca {
            tls = tls.authority(&read_text(authority)?);
        }
        if let Some((certificate, key)) = self.identity()? {
            // A certificate that cannot be used is found here, with the reason.
            client_identity(&certificate, &key)?;
            tls = tls.client_identity(&certificate, &key);
        }
        Ok(builder.tls(tls))
    }

    /// The texts of the client's certificate and its key.
    #[cfg(feature = "tls")]
    fn identity(&self) -> Result<Option<(String, String)>, Failure> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Ok(Some((read_text(certificate)?, read_text(key)?))),
            (None, None) => Ok(None),
            _ => Err(Failure::usage("give both --tls-cert and --tls-key, or none of them")),
        }
    }

    /// How the four-letter words get to the servers.
    #[cfg(feature = "tls")]
    pub(crate) fn words(&self) -> Result<Words, Failure> {
        let settings = self.with_file()?;
        if !addresses(settings.servers()?).iter().any(|address| address.is_secure) {
            return Ok(Words::default());
        }
        let authorities = settings.tls_ca.as_deref().map(read_text).transpose()?;
        let identity = settings.identity()?;
        let identity = identity.map(|(certificate, key)| client_identity(&certificate, &key)).transpose()?;
        let secure = Secure::new(authorities.as_deref(), identity).map_err(Failure::usage)?;
        Ok(Words { secure: Some(secure) })
    }

    /// The same without TLS.
    #[cfg(not(feature = "tls"))]
    pub(crate) fn words(&self) -> Result<Words, Failure> {
        Ok(Words::default())
    }

    #[cfg(not(feature = "tls"))]
    pub(super) fn secure(
        &self,
        builder: ConnectionManagerBuilder,
    ) -> Result<ConnectionManagerBuilder, Failure> {
        match (&self.tls_ca, &self.tls_cert, &self.tls_key) {
            (None, None, None) => Ok(builder),
            _ => Err(Failure::usage("this command was built without TLS; install it with --features tls")),
        }
    }
}

#[cfg(feature = "tls")]
fn client_identity(certificate: &str, key: &str) -> Result<ClientIdentity, Failure> {
    let refused = |reason| format!("--tls-cert and --tls-key cannot be used: {reason}");
    ClientIdentity::read(certificate, key).map_err(|reason| Failure::usage(refused(reason)))
}
