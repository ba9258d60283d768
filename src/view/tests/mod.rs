mod model;
mod server;
mod tables;
