//! What applications that write their flows in pieces go with.

use weft_units::Mistake;

use crate::spec::Spec;

/// Applications that write in pieces need hosts whose transports take that.
pub(crate) fn check_application(spec: &Spec) -> Result<(), Mistake> {
    if spec.traffic.application.is_none() {
        return Ok(());
    }
    let refuse = |what: &str, allowed: &str| {
        let said = format!(" does not go with {what}: allowed is {allowed}");
        Err(Mistake::at("traffic.application", said).found(what).allowed(allowed))
    };
    if !spec.hosts.is_simulated() {
        return refuse("Linux hosts", "hosts.kind = \"simulated\"");
    }
    let unable = spec.transport.all().find(|transport| !transport.takes_writes());
    // Credits call for data, and are wasted while there is none.
    unable.map_or(Ok(()), |transport| {
        refuse(transport.name(), "a transport without credits: tcp, dctcp or mptcp")
    })
}
