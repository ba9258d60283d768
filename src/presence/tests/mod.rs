mod model;
mod model_server;
mod tables;
