//! TCP.
/// TCP.
#[derive(Debug)]
pub struct Tcp;
