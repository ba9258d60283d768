//! A certificate authority of the test's own.

use lockkeeper_tests::ServerTls;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};

/// Signs certificates for the loopback address.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM form.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn sign(&self, name: &str) -> Identity {
        self.sign_for(name, "127.0.0.1")
    }

    pub(crate) fn sign_for(&self, name: &str, host: &str) -> Identity {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap().pem();
        Identity { certificate, key: key.serialize_pem() }
    }

    /// A server with a certificate of this authority, which believes no other.
    pub(crate) fn server(&self, asks_for_certificates: bool) -> ServerTls {
        self.server_named("127.0.0.1", asks_for_certificates)
    }

    pub(crate) fn server_named(&self, host: &str, asks_for_certificates: bool) -> ServerTls {
        let Identity { certificate, key } = self.sign_for("server", host);
        ServerTls { identity: format!("{key}{certificate}"), authorities: self.pem(), asks_for_certificates }
    }
}
