//! Which transport carries which flow, where a run has several.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Class;

use crate::{Flow, TrafficError, TrafficSpec};

/// The transports of the classes, by label.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct ClassTransports {
    /// The transport of flows of which nothing is said. Default: the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// The transport of `short` flows. Default: the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<String>,
    /// The transport of `long` flows. Default: the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long: Option<String>,
    /// The transport of `best-effort` flows. Default: the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_effort: Option<String>,
    /// The transport of `tc4` flows. Default: the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tc4: Option<String>,
    /// The transport of `tc5` flows. Default: the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tc5: Option<String>,
    /// The transport of `tc6` flows. Default: the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tc6: Option<String>,
    /// The transport of `tc7` flows. Default: the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tc7: Option<String>,
}

impl ClassTransports {
    fn of(&self, class: Class) -> Option<&str> {
        match class {
            Class::Unknown => self.unknown.as_deref(),
            Class::Short => self.short.as_deref(),
            Class::Long => self.long.as_deref(),
            Class::BestEffort => self.best_effort.as_deref(),
            Class::Tc4 => self.tc4.as_deref(),
            Class::Tc5 => self.tc5.as_deref(),
            Class::Tc6 => self.tc6.as_deref(),
            Class::Tc7 => self.tc7.as_deref(),
        }
    }
}

/// One of several transports of a run, as far as traffic knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carrier {
    /// By which traffic names it.
    pub label: String,
    /// The class of the flows that it carries, as far as traffic says nothing of them; none if it
    /// gives them none.
    pub class: Option<Class>,
}

/// The transports of a run by label, and which of them the traffic names.
pub(crate) struct Carriers<'a> {
    all: &'a [Carrier],
    by_class: [u8; Class::COUNT],
    named: Vec<bool>,
}

impl<'a> Carriers<'a> {
    /// These transports, by number; none if there is one without a label.
    pub fn new(spec: &TrafficSpec, all: &'a [Carrier]) -> Result<Self, TrafficError> {
        let mut carriers = Self { all, by_class: [0; Class::COUNT], named: vec![false; all.len()] };
        for class in Class::ALL {
            if let Some(label) = spec.classes.transport.as_ref().and_then(|transports| transports.of(class)) {
                let key = format!("traffic.classes.transport.{}", class.name());
                carriers.by_class[class as usize] = carriers
                    .number(label)
                    .map_err(|allowed| TrafficError::bad_value(key, shown(label), allowed))?;
            }
        }
        Ok(carriers)
    }

    /// The number of the transport with this label, or else what is allowed.
    pub fn number(&mut self, label: &str) -> Result<u8, String> {
        if let Some(number) = self.all.iter().position(|known| known.label == label) {
            self.named[number] = true;
            return Ok(number as u8);
        }
        Err(if self.all.is_empty() {
            "the label of a [[transport]], of which there are none: [transport] carries all flows".to_owned()
        } else {
            let labels: Vec<String> = self.all.iter().map(|carrier| shown(&carrier.label)).collect();
            format!("the label of a [[transport]]: {}", labels.join(", "))
        })
    }

    /// The transport of flows of this class that have none of their own.
    pub const fn of_class(&self, class: Class) -> u8 {
        self.by_class[class as usize]
    }

    /// Gives flows the transport that the key `transport` of their own table names, or else that of
    /// their class.
    pub fn assign(&mut self, flows: &mut [Flow], table: &str, own: Option<&str>) -> Result<(), TrafficError> {
        let own = own.map(|label| {
            let bad = |allowed| TrafficError::bad_value(format!("{table}.transport"), shown(label), allowed);
            self.number(label).map_err(bad)
        });
        let own = own.transpose()?;
        for flow in flows {
            flow.transport = own.unwrap_or_else(|| self.of_class(flow.class));
        }
        Ok(())
    }

    /// Gives flows of which nothing is said the class of the transport that carries them, if that
    /// has one.
    pub fn class(&self, flows: &mut [Flow]) {
        for flow in flows.iter_mut().filter(|flow| flow.class == Class::Unknown) {
            let carrier = self.all.get(usize::from(flow.transport));
            flow.class = carrier.and_then(|carrier| carrier.class).unwrap_or_default();
        }
    }

    /// Refuses a transport that nothing names. The first one may be that of flows which name none.
    pub fn check_used(&self, flows: &[Flow]) -> Result<(), TrafficError> {
        let is_used = |number: usize| {
            self.named[number] || (number == 0 && flows.iter().any(|flow| flow.transport == 0))
        };
        match (0..self.all.len()).find(|&number| !is_used(number)) {
            None => Ok(()),
            Some(number) => {
                let allowed = "a label that traffic names, in classes.transport, in a table of incast or long_lived or in \
                               a trace; no flow has this transport";
                let key = format!("transport[{number}].label");
                Err(TrafficError::bad_value(key, shown(&self.all[number].label), allowed))
            }
        }
    }
}

fn shown(label: &str) -> String {
    format!("{label:?}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::fixtures::{leaf_spine, spec};

    fn numbers(text: &str, labels: &[&str]) -> Result<Vec<(Class, u8)>, String> {
        let all = labels.iter().map(|&label| Carrier { label: label.to_owned(), class: None });
        numbers_over(text, &all.collect::<Vec<_>>())
    }

    fn numbers_over(text: &str, all: &[Carrier]) -> Result<Vec<(Class, u8)>, String> {
        let traffic = spec(text).generate_over(all, &leaf_spine(), 1, Path::new("."));
        let traffic = traffic.map_err(|error| error.to_string())?;
        Ok(traffic.flows.iter().map(|flow| (flow.class, flow.transport)).collect())
    }

    const RANDOM: &str = "size = '10KB'\nload = 0.3\nflows = 200\n";

    #[test]
    fn classes_and_tables_name_their_transport_and_the_rest_has_the_first() {
        let text = format!(
            "{RANDOM}[classes]\nbest_effort = 0.5\n[classes.transport]\nbest-effort = 'bulk'\n\
             [[long_lived]]\ntransport = 'old'\nclass = 'best-effort'\n[[incast]]\nsenders = 2\nsize = '1KB'"
        );
        let found = numbers(&text, &["web", "bulk", "old"]).unwrap();
        assert_eq!(found.iter().filter(|(_, number)| *number == 2).count(), 1, "the long-lived flow");
        for (class, number) in found.iter().filter(|(_, number)| *number != 2) {
            assert_eq!(*number, u8::from(*class == Class::BestEffort));
        }
        assert!(!found.iter().filter(|(class, _)| *class == Class::Unknown).any(|(_, n)| *n != 0));
    }

    #[test]
    fn flows_of_which_nothing_is_said_have_the_class_of_their_transport() {
        let carrier = |label: &str, class| Carrier { label: label.to_owned(), class };
        let all = [carrier("web", None), carrier("rdma", Some(Class::Long))];
        let text = format!(
            "{RANDOM}[[incast]]\nsenders = 2\nsize = '1KB'\ntransport = 'rdma'\n\
             [[long_lived]]\ntransport = 'rdma'\nclass = 'best-effort'"
        );
        let found = numbers_over(&text, &all).unwrap();
        let of = |number| found.iter().filter(move |flow| flow.1 == number).map(|flow| flow.0);
        assert!(of(0).all(|class| class == Class::Unknown), "the first one gives none");
        assert_eq!(of(1).filter(|&class| class == Class::Long).count(), 2, "the incast");
        assert_eq!(of(1).filter(|&class| class == Class::BestEffort).count(), 1, "what traffic says counts");
    }

    #[test]
    fn rows_of_a_trace_name_their_transport() {
        let directory = std::env::temp_dir().join(format!("weft-carriers-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let text = "start_us,src,dst,size_bytes,transport\n1,0,5,9,b\n2,0,5,9,\n3,0,5,9,a\n";
        std::fs::write(directory.join("t.csv"), text).unwrap();
        let labels = ["a", "b"].map(|label| Carrier { label: label.to_owned(), class: None });
        let spec = spec("trace = 't.csv'");
        let traffic = spec.generate_over(&labels, &leaf_spine(), 1, &directory).unwrap();
        assert_eq!(traffic.flows.iter().map(|flow| flow.transport).collect::<Vec<_>>(), [1, 0, 0]);
        let refused = spec.generate(&leaf_spine(), 1, &directory).unwrap_err().to_string();
        assert!(
            refused.contains("t.csv:2: found transport \"b\": allowed is the label of a [[transport]]"),
            "{refused}"
        );
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn labels_that_nobody_has_or_nobody_names_are_refused_with_what_is_allowed() {
        let cases: [(&str, &[&str], &str); 5] = [
            (
                "[classes.transport]\nshort = 'x'",
                &["a", "b"],
                "traffic.classes.transport.short = \"x\": allowed is the label of a [[transport]]: \"a\", \"b\"",
            ),
            (
                "[[long_lived]]\ntransport = 'x'",
                &["a", "b"],
                "traffic.long_lived[0].transport = \"x\": allowed is the label",
            ),
            (
                "[[incast]]\nsenders = 1\nsize = '1KB'\ntransport = 'a'",
                &[],
                "traffic.incast[0].transport = \"a\": allowed is the label of a [[transport]], of which there are none",
            ),
            ("", &["a", "b"], "transport[1].label = \"b\": allowed is a label that traffic names"),
            ("[classes.transport]\nunknown = 'b'", &["a", "b"], "transport[0].label = \"a\": allowed is"),
        ];
        for (text, labels, expected) in cases {
            let found = numbers(&format!("{RANDOM}{text}"), labels).unwrap_err();
            assert!(found.contains(expected), "{text}: {found}");
        }
    }
}
