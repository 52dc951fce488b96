//! Requirements of collectives.

use weft_units::Mistake;

use crate::spec::Spec;

/// Flows that wait for others begin and end at simulated hosts, which count what has come.
pub(crate) fn check_collectives(spec: &Spec) -> Result<(), Mistake> {
    if !spec.traffic.has_collectives() || spec.hosts.is_simulated() {
        return Ok(());
    }
    let allowed = "hosts.kind = \"simulated\"";
    let said = format!(" does not go with Linux hosts: allowed is {allowed}");
    Err(Mistake::at(spec.traffic.collectives_key(), said).found("Linux hosts").allowed(allowed))
}
