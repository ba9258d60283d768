mod model;
mod reads;
mod server;
mod tables;
