mod model;
mod tables;
