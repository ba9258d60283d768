//! The configuration of a server: `zoo.cfg` and its command line.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::EnsembleBuilder;
use super::archive::Archive;
use super::between::Between;
use super::install::Installation;
use super::ports::Ports;
use super::secure;
use crate::error::HarnessError;

/// For servers that log by log4j: the same lines as those that log by slf4j-simple, up to the time.
const LOG4J: &str = "rootLogger.level = info
rootLogger.appenderRef.output.ref = output
appender.output.name = output
appender.output.type = Console
appender.output.layout.type = PatternLayout
appender.output.layout.pattern = %d{HH:mm:ss.SSS} [%t] %p %c - %m%n
";

impl EnsembleBuilder {
    /// Writes the configuration of server `index` into `home`.
    pub(super) fn furnish(
        &self,
        home: &Path,
        index: usize,
        ports: &Ports,
        between: Option<&Between>,
    ) -> Result<(), HarnessError> {
        let data = home.join("data");
        fs::create_dir_all(&data).map_err(HarnessError::io("create a data folder"))?;
        let client = ports.client(index);
        let min = self.min_session_timeout.unwrap_or(self.tick * 2);
        let mut settings = BTreeMap::from([
            ("tickTime".to_owned(), self.tick.as_millis().to_string()),
            ("minSessionTimeout".to_owned(), min.as_millis().to_string()),
            ("maxSessionTimeout".to_owned(), self.max_session_timeout.as_millis().to_string()),
            ("dataDir".to_owned(), data.display().to_string()),
            ("clientPort".to_owned(), client.port().to_string()),
            ("clientPortAddress".to_owned(), client.ip().to_string()),
            ("maxClientCnxns".to_owned(), "0".to_owned()),
            ("4lw.commands.whitelist".to_owned(), "*".to_owned()),
            ("admin.enableServer".to_owned(), "false".to_owned()),
        ]);
        if self.servers > 1 {
            fs::write(data.join("myid"), (index + 1).to_string()).map_err(HarnessError::io("write myid"))?;
            settings.insert("initLimit".to_owned(), "40".to_owned());
            // How soon followers miss a paused leader: 4 ticks.
            settings.insert("syncLimit".to_owned(), "4".to_owned());
            for peer in 0..self.servers {
                let (quorum, election) = (ports.quorum(peer), ports.election(peer));
                let own = (quorum.port(), election.port());
                let (following, electing) = between.and_then(|it| it.ports(index, peer)).unwrap_or(own);
                let address = format!("{}:{following}:{electing}", quorum.ip());
                settings.insert(format!("server.{}", peer + 1), address);
            }
        }
        if self.tls.is_some() {
            settings.insert("secureClientPort".to_owned(), ports.secure().port().to_string());
            settings.insert("secureClientPortAddress".to_owned(), ports.secure().ip().to_string());
        }
        settings.extend(self.settings.clone());
        let lines: String = settings.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        fs::write(home.join("zoo.cfg"), lines).map_err(HarnessError::io("write zoo.cfg"))?;
        fs::write(home.join("log4j2.properties"), LOG4J).map_err(HarnessError::io("write log4j2.properties"))
    }

    /// The arguments of `java` for a server in `home`.
    pub(super) fn arguments(
        &self,
        installation: &Installation,
        archive: &Archive,
        home: &Path,
    ) -> Vec<String> {
        let mut arguments: Vec<String> = [
            "-Xshare:auto",
            "-Xss512k",
            // Or a killed server leaves a file in /tmp/hsperfdata_*.
            "-XX:-UsePerfData",
            "-XX:+ExitOnOutOfMemoryError",
            "-Djava.awt.headless=true",
            "-Djava.net.preferIPv4Stack=true",
            "-Dzookeeper.jmx.log4j.disable=true",
            "-Dzookeeper.preAllocSize=1024",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
        ]
        .map(str::to_owned)
        .into();
        if !self.enduring {
            // A server of a test lives for seconds: start quickly, rather than run fast later.
            arguments.extend(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"].map(str::to_owned));
        }
        arguments.extend(archive.argument());
        arguments.push(format!("-Xmx{}m", self.heap_mebibytes));
        arguments.push(format!("-Dlog4j2.configurationFile={}", home.join("log4j2.properties").display()));
        arguments.push(format!("-Dzookeeper.forceSync={}", if self.durable { "yes" } else { "no" }));
        arguments.extend(self.properties.iter().map(|(name, value)| format!("-D{name}={value}")));
        arguments.extend(secure::arguments(home, self.tls.as_ref(), &self.sasl_users));
        arguments.extend(["-cp".to_owned(), installation.class_path.clone()]);
        arguments.push("org.apache.zookeeper.server.quorum.QuorumPeerMain".to_owned());
        arguments.push(home.join("zoo.cfg").display().to_string());
        arguments
    }
}
