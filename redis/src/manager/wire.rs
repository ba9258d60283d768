//! The client crate's connections, with one server or with a cluster.

#[cfg(feature = "tls")]
use redis::TlsCertificates;
use redis::aio::{ConnectionLike, MultiplexedConnection};
#[cfg(feature = "cluster")]
use redis::cluster::ClusterClientBuilder;
#[cfg(feature = "cluster")]
use redis::cluster_async::ClusterConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, ErrorKind, IntoConnectionInfo, Pipeline,
    ProtocolVersion, PushInfo, RedisError, RedisFuture, RedisResult, Value,
};
use tokio::sync::mpsc::UnboundedSender;

/// Where to connect to, and how.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// One server, or some nodes of a cluster.
    nodes: Vec<ConnectionInfo>,
    #[cfg(feature = "cluster")]
    is_cluster: bool,
    #[cfg(feature = "tls")]
    certificates: Option<TlsCertificates>,
}

/// A connection. Clones are the same one.
#[derive(Clone)]
pub(super) enum Wire {
    Single(MultiplexedConnection),
    #[cfg(feature = "cluster")]
    Cluster(ClusterConnection),
}

impl Target {
    /// One server, or the cluster of which these are nodes.
    pub(super) fn new(urls: &[&str], is_cluster: bool) -> RedisResult<Self> {
        let nodes = urls.iter().map(|url| info(url)).collect::<RedisResult<Vec<_>>>()?;
        #[cfg(feature = "tls")]
        if nodes.iter().any(|node| matches!(node.addr(), redis::ConnectionAddr::TcpTls { .. })) {
            crate::tls::choose_cryptography();
        }
        #[cfg(not(feature = "cluster"))]
        let _ = is_cluster;
        #[cfg(feature = "cluster")]
        if is_cluster {
            // Nodes with different credentials are refused now, and not by each attempt to connect.
            ClusterClientBuilder::new(nodes.clone()).build()?;
        }
        Ok(Self {
            nodes,
            #[cfg(feature = "cluster")]
            is_cluster,
            #[cfg(feature = "tls")]
            certificates: None,
        })
    }

    #[cfg(feature = "tls")]
    pub(super) fn with_certificates(self, certificates: TlsCertificates) -> Self {
        Self { certificates: Some(certificates), ..self }
    }

    /// Connects, and subscribes to the channel of the grants.
    pub(super) async fn connect(
        &self,
        pushes: UnboundedSender<PushInfo>,
        channel: &str,
    ) -> RedisResult<Wire> {
        #[cfg(feature = "cluster")]
        if self.is_cluster {
            return self.connect_to_cluster(pushes, channel).await;
        }
        // The manager limits the time itself.
        let config = AsyncConnectionConfig::new()
            .set_push_sender(pushes)
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let mut connection = self.client()?.get_multiplexed_async_connection_with_config(&config).await?;
        connection.subscribe(channel).await?;
        Ok(Wire::Single(connection))
    }

    fn client(&self) -> RedisResult<Client> {
        let Some(node) = self.nodes.first().cloned() else {
            return Err(RedisError::from((ErrorKind::InvalidClientConfig, "no server is named")));
        };
        #[cfg(feature = "tls")]
        if let Some(certificates) = &self.certificates {
            return Client::build_with_tls(node, certificates.clone());
        }
        Client::open(node)
    }

    #[cfg(feature = "cluster")]
    async fn connect_to_cluster(
        &self,
        pushes: UnboundedSender<PushInfo>,
        channel: &str,
    ) -> RedisResult<Wire> {
        let builder = ClusterClientBuilder::new(self.nodes.clone())
            .use_protocol(ProtocolVersion::RESP3)
            .push_sender(pushes);
        #[cfg(feature = "tls")]
        let builder = match &self.certificates {
            Some(certificates) => builder.certs(certificates.clone()),
            None => builder,
        };
        let mut connection = builder.build()?.get_async_connection().await?;
        connection.subscribe(channel).await?;
        Ok(Wire::Cluster(connection))
    }
}

/// Messages arrive on the connection of the requests, which needs RESP3.
fn info(url: &str) -> RedisResult<ConnectionInfo> {
    let info = url.into_connection_info()?;
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    Ok(info.set_redis_settings(settings))
}

impl ConnectionLike for Wire {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Single(connection) => connection.req_packed_command(command),
            #[cfg(feature = "cluster")]
            Self::Cluster(connection) => connection.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Single(connection) => connection.req_packed_commands(commands, offset, count),
            #[cfg(feature = "cluster")]
            Self::Cluster(connection) => connection.req_packed_commands(commands, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Single(connection) => connection.get_db(),
            #[cfg(feature = "cluster")]
            Self::Cluster(connection) => connection.get_db(),
        }
    }
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Wire")
    }
}
