//! The ticket office, end to end.
