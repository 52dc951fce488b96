//! External schemes: load balancers that are not in the registry, which a caller brings to a run.

use weft_balance::{ExternalScheme, SwitchInfo};
use weft_units::Mistake;

use crate::run::Prepared;
use crate::spec::SpecError;

/// Makes the load balancer of each switch, in place of the spec's.
pub struct ExternalSchemeFactory<'a> {
    /// Name of the scheme in the results.
    pub name: String,
    /// Called once a switch, in the order of their numbers.
    pub make: &'a mut dyn FnMut(&SwitchInfo<'_>) -> Box<dyn ExternalScheme>,
}

impl Prepared {
    /// Refuses a spec whose load balancer is not in the core, where nobody brings it.
    pub(crate) fn refuse_outside(&self) -> Result<(), SpecError> {
        let Some(class) = self.resolved.spec.scheme.python_class() else { return Ok(()) };
        let allowed = "a scheme of the core";
        let said = format!(
            " is a class in a file of Python, {}, which weft run, compare, sweep, reproduce and multiverse can have; \
             allowed here is {allowed}",
            class.class
        );
        let mistake = Mistake::at("scheme.name", said).found(&class.class).allowed(allowed);
        Err(self.resolved.error(mistake))
    }
}
