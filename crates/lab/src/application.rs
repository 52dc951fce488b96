//! Requirements of applications that write their flows in pieces.

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
        refuse(
            transport.name(),
            "a transport without credits: tcp, dctcp, mptcp, roce, irn, uec, swift or mprdma",
        )
    })
}

#[cfg(test)]
mod tests {
    use weft_transport::TransportSpec;

    use crate::{Prepared, SpecSource};

    #[test]
    fn the_message_names_the_transports_that_take_writes() {
        let prepared = |name: &str| {
            let spec = SpecSource::from_text(
                "[traffic]\nflows = 2\napplication = { write = '64KB', pause = '1us' }",
            );
            Prepared::new(&spec.with("transport.name", name)).map(drop)
        };
        let said = prepared("expresspass").unwrap_err().to_string();
        let allowed = said.rsplit(": ").next().unwrap_or_default().replace(" or ", ", ");
        let able = TransportSpec::list().iter().map(|info| info.name).filter(|name| prepared(name).is_ok());
        let mut able: Vec<&str> = able.collect();
        let mut named: Vec<&str> = allowed.split(", ").collect();
        able.sort_unstable();
        named.sort_unstable();
        assert_eq!(named, able, "{said}");
    }
}
