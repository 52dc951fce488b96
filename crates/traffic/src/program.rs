//! Programs that run on hosts, beside flows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::HostId;
use weft_units::{Span, Time};

use crate::generate::LATEST_START;
use crate::hosts::known_host;
use crate::{FabricShape, TrafficError};

/// Prefix of the number of a host in a command.
const OPENS: &str = "{host:";

/// A program of this machine that runs on a Linux host. What it sends and receives shares the
/// fabric with all else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramSpec {
    /// The host that it runs on.
    pub host: u16,
    /// The program and its arguments, with quotes as in a shell; there is no shell. `{host:7}`
    /// stands for the address of host 7.
    pub command: String,
    /// When it begins, default 0.
    #[serde(default)]
    pub start: Span,
    /// When it is ended if it still runs, from the beginning of the run: with SIGTERM, and SIGKILL
    /// 100 ms later. Default: it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
    /// Whether it serves others: the run does not wait for its end.
    #[serde(default)]
    pub serves: bool,
}

impl ProgramSpec {
    /// When it begins.
    pub fn begins(&self) -> Time {
        Time::ZERO.saturating_add(self.start)
    }

    /// The command, with what `address` says of each host that it names. In `key` is a mistake of
    /// it.
    ///
    /// # Errors
    /// What is in braces is no number.
    pub fn command_with(
        &self,
        key: &str,
        mut address: impl FnMut(HostId) -> Result<String, TrafficError>,
    ) -> Result<String, TrafficError> {
        let mut command = String::with_capacity(self.command.len());
        let mut rest = self.command.as_str();
        while let Some((before, after)) = rest.split_once(OPENS) {
            let (number, behind) = after.split_once('}').unwrap_or((after, ""));
            let host = number.trim().parse().map_err(|_| {
                let found = format!("{OPENS}{}", after.split_inclusive('}').next().unwrap_or_default());
                TrafficError::bad_value(key, found, "the number of a host, as in {host:7}")
            })?;
            command.push_str(before);
            command.push_str(&address(HostId(host))?);
            rest = behind;
        }
        command.push_str(rest);
        Ok(command)
    }

    /// Refuses what cannot be meant on a fabric of this shape, in table number `index`.
    pub(crate) fn check(&self, index: usize, shape: &FabricShape) -> Result<(), TrafficError> {
        let key = |name: &str| format!("traffic.program[{index}].{name}");
        known_host(self.host, key("host"), shape)?;
        let command = key("command");
        if self.command.trim().is_empty() {
            let allowed = "a program and its arguments, as in \"iperf3 -c {host:7}\"";
            return Err(TrafficError::bad_value(command, format!("{:?}", self.command), allowed));
        }
        self.command_with(&command, |host| {
            known_host(host.0, command.clone(), shape)?;
            Ok(String::new())
        })?;
        if self.begins() > LATEST_START {
            return Err(TrafficError::bad_value(key("start"), self.start, "100 days or less"));
        }
        match self.stop {
            Some(stop) if stop <= self.start => {
                Err(TrafficError::bad_value(key("stop"), stop, format!("later than start, {}", self.start)))
            }
            Some(stop) if Time::ZERO.saturating_add(stop) > LATEST_START => {
                Err(TrafficError::bad_value(key("stop"), stop, "100 days or less"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{generate, message};

    fn program(keys: &str) -> String {
        format!("[[program]]\nhost = 3\n{keys}")
    }

    #[test]
    fn programs_alone_are_traffic_and_flows_stay_as_they_are_beside_them() {
        assert!(generate(&program("command = 'true'")).unwrap().flows.is_empty());
        let flows = "size = '1KB'\nload = 0.1\nflows = 20\n";
        let beside = generate(&format!("{flows}{}", program("command = 'true'"))).unwrap();
        assert_eq!(beside, generate(flows).unwrap());
    }

    #[test]
    fn hosts_in_braces_become_addresses_and_other_braces_stay() {
        let spec = |command: &str| ProgramSpec {
            host: 0,
            command: command.to_owned(),
            start: Span::ZERO,
            stop: None,
            serves: false,
        };
        let command = |text: &str| {
            spec(text).command_with("k", |host| Ok(format!("<{}>", host.0))).map_err(|e| e.to_string())
        };
        assert_eq!(command("nc {host:7} 80; ${x} {host: 12}").unwrap(), "nc <7> 80; ${x} <12>");
        assert_eq!(
            command("nc {host:b}").unwrap_err(),
            "k = {host:b}: allowed is the number of a host, as in {host:7}"
        );
    }

    #[test]
    fn what_cannot_be_meant_is_told_with_its_key() {
        let cases = [
            ("command = ''", "traffic.program[0].command = \"\": allowed is a program and its arguments"),
            ("command = 'nc {host:16} 1'", "traffic.program[0].command = 16: allowed is"),
            ("command = 'true'\nstart = '1s'\nstop = '1s'", "traffic.program[0].stop = 1s: allowed is later"),
            (
                "command = 'true'\nstart = '9000000s'",
                "traffic.program[0].start = 9000000s: allowed is 100 days",
            ),
        ];
        for (keys, expected) in cases {
            assert!(message(&program(keys)).starts_with(expected), "{}", message(&program(keys)));
        }
        let elsewhere = "[[program]]\nhost = 16\ncommand = 'true'";
        assert!(message(elsewhere).starts_with("traffic.program[0].host = 16: allowed is"));
    }
}
