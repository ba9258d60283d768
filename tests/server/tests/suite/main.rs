//! Tests of the test server, over real sockets, against the real server, and with other people's clients.

#[cfg(test)]
mod binary;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod ensemble;
#[cfg(test)]
mod ensemble_differential;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod nulls;
#[cfg(test)]
mod operations;
#[cfg(test)]
mod other_servers;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod peers;
#[cfg(test)]
mod player;
#[cfg(test)]
mod protocol;
#[cfg(test)]
mod pure;
#[cfg(test)]
mod raw;
#[cfg(test)]
mod real_server;
#[cfg(test)]
mod script;
#[cfg(test)]
mod server_faults;
#[cfg(test)]
mod watch_modes;
