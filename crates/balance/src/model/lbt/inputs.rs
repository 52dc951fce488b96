//! LBT's thresholds worked out for a load that somebody gives, as a switch would from one that it
//! measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Rate, Span};

use super::{Bounds, ClassLoad, Load, Model, Solution};
use crate::ParameterError;
use crate::model::{self, Working, quantities};
use crate::registry::Parameters as _;
use crate::switch::lbt::Params;

/// Inputs of LBT's equations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Inputs {
    /// `K`: equivalent paths. Source: the nine spines of LBT §6.
    pub paths: u32,
    /// `G`: what one path carries (rate). Source: LBT §6.
    pub rate: Rate,
    /// `t`: the period in which flows and bytes are counted (time). Source: as `refresh` of the
    /// scheme.
    pub refresh: Span,
    /// `P_s`: short flows that send something in a period, 0 or more; a mean need not be whole.
    /// Source: 80 % of the flows, LBT §1, of 100 flows without best effort.
    pub short_flows: f64,
    /// `P_l`: long flows. Source: 20 % of the flows, LBT §1.
    pub long_flows: f64,
    /// `P_b`: best-effort flows. Source: not in LBT; a few.
    pub best_effort_flows: f64,
    /// `X_s`: mean bytes that a short flow sends in a period (size). Source: with `short_flows`, 20
    /// % of the bytes, LBT §1, at a load of 0.5.
    pub short_bytes: Bytes,
    /// `X_l`: mean bytes that a long flow sends in a period (size). Source: with `long_flows`, 80 %
    /// of the bytes, LBT §1.
    pub long_bytes: Bytes,
    /// `X_b`: mean bytes that a best-effort flow sends in a period (size). Source: not in LBT; as a
    /// long flow.
    pub best_effort_bytes: Bytes,
    /// `l_2`: the load of all classes, above 0. The numbers of flows are multiplied until LBT eq. 2
    /// gives it, their bytes stay. Default: the load that the flows make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// `K_s`: paths of short flows, 0 or more. Default: in proportion to the flows. Source: not
    /// defined in LBT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_paths: Option<f64>,
    /// `K_l`: paths of long flows. Default: in proportion to the flows. Source: not defined in LBT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_paths: Option<f64>,
    /// `K_b`: paths of best-effort flows. Default: in proportion to the flows. Source: not defined
    /// in LBT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_effort_paths: Option<f64>,
    /// `W`: the largest window of a sender (size). Source: as `window` of the scheme.
    pub window: Bytes,
    /// `m`: what slow start begins with (size). Source: as `segment` of the scheme.
    pub segment: Bytes,
    /// `E[FCT_s]` as a fixed target (time). Default: the mean that LBT eq. 3 gives at the load that
    /// is there. Source: not defined in LBT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_fct: Option<Span>,
    /// The smallest threshold of long flows (size). Source: as `least` of the scheme.
    pub least: Bytes,
    /// The largest threshold (size). Source: as `most` of the scheme.
    pub most: Bytes,
    /// `Q2` is at least this many times `Q1`: 1 to 1,000. Source: as `ratio` of the scheme.
    pub ratio: u16,
}

impl Default for Inputs {
    fn default() -> Self {
        let Params { refresh, window, segment, short_fct, least, most, ratio, .. } = Params::default();
        Self {
            paths: 9,
            rate: Rate::from_gbps(10),
            refresh,
            short_flows: 80.0,
            long_flows: 20.0,
            best_effort_flows: 5.0,
            short_bytes: Bytes::from_kb(7),
            long_bytes: Bytes::from_kb(112),
            best_effort_bytes: Bytes::from_kb(112),
            load: None,
            short_paths: None,
            long_paths: None,
            best_effort_paths: None,
            window,
            segment,
            short_fct,
            least,
            most,
            ratio,
        }
    }
}

impl Inputs {
    fn validate(&self) -> Result<(), ParameterError> {
        let check = |wrong: bool, key, found: &dyn ToString, allowed| {
            if wrong { Err(ParameterError { key, found: found.to_string(), allowed }) } else { Ok(()) }
        };
        check(self.paths == 0, "paths", &self.paths, "at least 1")?;
        check(self.rate.is_zero(), "rate", &self.rate, "larger than nothing")?;
        let counts = [
            ("short_flows", Some(self.short_flows)),
            ("long_flows", Some(self.long_flows)),
            ("best_effort_flows", Some(self.best_effort_flows)),
            ("short_paths", self.short_paths),
            ("long_paths", self.long_paths),
            ("best_effort_paths", self.best_effort_paths),
        ];
        for (key, count) in counts {
            let count = count.unwrap_or_default();
            check(!(0.0..=1e12).contains(&count), key, &count, "0 to 1e12")?;
        }
        let load = self.load.unwrap_or(1.0);
        check(!(load > 0.0 && load <= 1e6), "load", &load, "above 0, at most 1e6")?;
        let sent = self.given().total();
        check(self.load.is_some() && sent <= 0.0, "load", &load, "only with flows that send something")?;
        self.scheme().validate()
    }

    /// The parameters of the scheme that are inputs here.
    fn scheme(&self) -> Params {
        Params {
            refresh: self.refresh,
            window: self.window,
            segment: self.segment,
            short_fct: self.short_fct,
            least: self.least,
            most: self.most,
            ratio: self.ratio,
            // Not in the equations: with any period valid.
            forget: Span::MAX,
            ..Params::default()
        }
    }

    fn model(&self) -> Model {
        Model {
            paths: self.paths.into(),
            rate: self.rate.as_bps() as f64 / 8.0,
            period_s: self.refresh.as_s(),
            window_bytes: self.window.as_u64() as f64,
            segment_bytes: self.segment.as_u64() as f64,
            short_fct_s: self.short_fct.map(Span::as_s),
        }
    }

    /// The load as the flows and their bytes give it.
    fn given(&self) -> Load {
        let class = |flows: f64, size: Bytes| ClassLoad { flows, bytes: flows * size.as_u64() as f64 };
        Load {
            short: class(self.short_flows, self.short_bytes),
            long: class(self.long_flows, self.long_bytes),
            best_effort: class(self.best_effort_flows, self.best_effort_bytes),
        }
    }

    /// That load, with so many times the flows that LBT eq. 2 gives `load`.
    fn load(&self, model: &Model) -> Load {
        let given = self.given();
        let factor = self.load.map_or(1.0, |load| load / model.strength(given.total()));
        let more = |class: ClassLoad| ClassLoad { flows: class.flows * factor, bytes: class.bytes * factor };
        Load { short: more(given.short), long: more(given.long), best_effort: more(given.best_effort) }
    }
}

impl model::Inputs for Inputs {
    const NAME: &'static str = "lbt";
    const TITLE: &'static str = "LBT: how long queues may grow before long and best-effort flows leave them.";
    const SOURCE: &'static str = "Wang et al., JNCA 2023, section 4.1";

    fn work_out(&self) -> Result<Working, ParameterError> {
        self.validate()?;
        let model = self.model();
        let load = self.load(&model);
        let [short, long, best_effort] = model.shares(&load);
        let shares = [
            self.short_paths.unwrap_or(short),
            self.long_paths.unwrap_or(long),
            self.best_effort_paths.unwrap_or(best_effort),
        ];
        let solution = model.solve(&load, shares);
        let scheme = self.scheme();
        let bounds =
            Bounds { least: scheme.least.as_u64(), most: scheme.most.as_u64(), ratio: scheme.ratio.into() };
        let used = bounds.apply(solution.thresholds);
        Ok(Working {
            quantities: quantities(rows(&model, &load, &solution, used)),
            conclusions: conclusions(&model, &load, &solution, &bounds),
        })
    }
}

fn rows(model: &Model, load: &Load, solution: &Solution, used: [u64; 2]) -> [model::Row; 20] {
    let [l1, l2] = [load.short.bytes + load.long.bytes, load.total()].map(|bytes| model.strength(bytes));
    let [ks, kl, kb] = solution.shares;
    let [z1, z2] = solution.needed;
    let fct_us = |load| 1e6 * model.short_fct_s.unwrap_or_else(|| model.short_fct_s(load, solution.size));
    let fct_by = if model.short_fct_s.is_some() { "given" } else { "3" };
    [
        ("short_flows", "given", "P_s", "short flows in a period", "flows", load.short.flows),
        ("long_flows", "given", "P_l", "long flows", "flows", load.long.flows),
        ("best_effort_flows", "given", "P_b", "best-effort flows", "flows", load.best_effort.flows),
        ("load_1", "1", "l_1", "load of short and long flows", "", l1),
        ("load_2", "2", "l_2", "load of all flows", "", l2),
        ("short_paths", "-", "K_s", "paths of short flows", "paths", ks),
        ("long_paths", "-", "K_l", "paths of long flows", "paths", kl),
        ("best_effort_paths", "-", "K_b", "paths of best-effort flows", "paths", kb),
        ("rounds", "text", "log2(X_s/m)+1", "rounds of a short flow", "rounds", model.rounds(solution.size)),
        ("wait_1", "5", "E[W_q] at l_1", "wait in a queue", "us", 1e6 * model.wait_s(l1)),
        ("wait_2", "5", "E[W_q] at l_2", "wait in a queue", "us", 1e6 * model.wait_s(l2)),
        ("short_fct_1", fct_by, "E[FCT_s] at l_1", "time of a short flow", "us", fct_us(l1)),
        ("short_fct_2", fct_by, "E[FCT_s] at l_2", "time of a short flow", "us", fct_us(l2)),
        ("carried", "text", "G t", "what a path carries in a period", "B", model.rate * model.period_s),
        ("needed_1", "9", "Z_1", "paths that short and long flows need", "paths", z1),
        ("threshold_1", "8", "Q_1", "threshold of long flows", "B", solution.thresholds.long),
        ("needed_2", "11", "Z_2", "paths that all flows need", "paths", z2),
        ("threshold_2", "10", "Q_2", "threshold of best-effort flows", "B", solution.thresholds.best_effort),
        ("used_1", "-", "used Q_1", "what a switch makes of it", "B", used[0] as f64),
        ("used_2", "-", "used Q_2", "what a switch makes of it", "B", used[1] as f64),
    ]
}

fn conclusions(model: &Model, load: &Load, solution: &Solution, bounds: &Bounds) -> Vec<String> {
    let raw = solution.thresholds;
    let used = bounds.apply(raw);
    let floor = if used[0].saturating_mul(bounds.ratio) > bounds.most {
        "`most`, for `ratio` times Q_1 is beyond it"
    } else {
        "`ratio` times Q_1"
    };
    let mut found = vec![
        concluded("Q_1", raw.long, load.long.bytes, used[0], "`least`"),
        concluded("Q_2", raw.best_effort, load.best_effort.bytes, used[1], floor),
    ];
    if model.short_fct_s.is_none() {
        let text = "E[FCT_s] is the mean at this load, so that Eqs. 9 and 11 give K back; with short_fct it is a target.";
        found.push(text.to_owned());
    }
    found
}

/// Threshold that a switch uses, and why; `floor` is the lowest that it allows.
fn concluded(name: &str, raw: f64, sent: f64, used: u64, floor: &str) -> String {
    let found = if raw.is_infinite() {
        "is infinite, for the other classes leave this one no path. The switch uses `most`".to_owned()
    } else if sent <= 0.0 {
        format!("is negative, for no flow of this class sends. The switch uses {floor}")
    } else if raw < 0.0 {
        format!("is negative, for these paths carry more than the class sends. The switch uses {floor}")
    } else if raw < used as f64 - 0.5 {
        format!("is lower than a switch allows. It uses {floor}")
    } else if raw > used as f64 + 1.0 {
        "is higher than a switch allows. It uses `most`".to_owned()
    } else {
        "is within its bounds. The switch uses it".to_owned()
    };
    format!("{name} {found}: {used} B.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Inputs as _;

    /// Four paths of 8 Gbit/s carry 500,000 B each in a period of 500 us.
    fn small() -> Inputs {
        Inputs {
            paths: 4,
            rate: Rate::from_gbps(8),
            short_flows: 7.0,
            long_flows: 2.0,
            best_effort_flows: 1.0,
            short_bytes: Bytes::new(8_000),
            long_bytes: Bytes::from_kb(300),
            best_effort_bytes: Bytes::from_kb(240),
            window: Bytes::from_kb(64),
            segment: Bytes::from_kb(1),
            ..Inputs::default()
        }
    }

    #[track_caller]
    fn assert_value(inputs: &Inputs, key: &str, expected: f64) {
        let found = inputs.work_out().unwrap().value(key).unwrap();
        assert!(
            (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
            "{key} is {found}, not {expected}"
        );
    }

    #[test]
    fn every_equation_worked_by_hand() {
        // 56,000 + 600,000 + 240,000 B of 2,000,000.
        let (l1, l2) = (0.328, 0.448);
        let wait = |load: f64| load / (2.0 * (1.0 - load)) * 64.0;
        for (key, expected) in [
            ("load_1", l1),
            ("load_2", l2),
            ("short_paths", 2.8),
            ("long_paths", 0.8),
            ("best_effort_paths", 0.4),
            ("rounds", 4.0),
            ("wait_1", wait(l1)),
            ("wait_2", wait(l2)),
            ("short_fct_1", 4.0 * wait(l1) + 8.0),
            ("short_fct_2", 4.0 * wait(l2) + 8.0),
            ("carried", 500_000.0),
            ("needed_1", 4.0),
            ("needed_2", 4.0),
            // 600,000 / 0.8 and 240,000 / 0.4, less what a path carries.
            ("threshold_1", 250_000.0),
            ("threshold_2", 100_000.0),
            // Beyond `most`, as `ratio` times Q1 is.
            ("used_2", 384_000.0),
        ] {
            assert_value(&small(), key, expected);
        }
        let used = small().work_out().unwrap().value("used_1").unwrap();
        assert!((249_999.0..=250_000.0).contains(&used), "whole bytes of Q1: {used}");
    }

    #[test]
    fn given_paths_and_a_given_completion_time_stand_in_place_of_those_worked_out() {
        // Z1 = 64,000 x 4 x 1.312e9 / (2 x 128e-6 x 1e18) + 1.312; Q1 = 600,000 / (Z1 - 1) -
        // 500,000.
        let inputs = Inputs {
            short_fct: Some(Span::from_us(136)),
            short_paths: Some(0.75),
            best_effort_paths: Some(0.25),
            ..small()
        };
        assert_value(&inputs, "needed_1", 2.624);
        assert_value(&inputs, "threshold_1", 600_000.0 / 1.624 - 500_000.0);
        assert_value(&inputs, "short_fct_1", 136.0);
    }

    #[test]
    fn a_load_multiplies_the_flows_and_leaves_their_sizes() {
        let inputs = Inputs { load: Some(0.896), ..small() };
        assert_value(&inputs, "load_2", 0.896);
        assert_value(&inputs, "load_1", 0.656);
        assert_value(&inputs, "short_flows", 14.0);
        assert_value(&inputs, "rounds", 4.0);
        assert_value(&inputs, "long_paths", 0.8);
    }

    #[test]
    fn sentences_say_what_becomes_of_a_threshold() {
        let said = |inputs: Inputs| inputs.work_out().unwrap().conclusions.join(" ");
        let mixed = said(small());
        assert!(mixed.contains("Q_1 is within its bounds. The switch uses it:"), "{mixed}");
        assert!(mixed.contains("Q_2 is lower than a switch allows. It uses `most`"), "{mixed}");
        let light = said(Inputs { load: Some(0.05), ..small() });
        assert!(light.contains("Q_1 is negative, for these paths carry more"), "{light}");
        assert!(light.contains("The switch uses `least`: 4500 B."), "{light}");
        assert!(light.contains("uses `ratio` times Q_1: 9000 B."), "{light}");
        let heavy = said(Inputs { load: Some(2.0), ..small() });
        assert!(heavy.contains("Q_1 is higher than a switch allows. It uses `most`: 384000 B."), "{heavy}");
        let crowded = said(Inputs { short_paths: Some(4.0), ..small() });
        assert!(
            crowded.contains("Q_1 is infinite, for the other classes leave this one no path"),
            "{crowded}"
        );
        let silent = said(Inputs { long_flows: 0.0, ..small() });
        assert!(silent.contains("Q_1 is negative, for no flow of this class sends"), "{silent}");
    }

    #[test]
    fn inputs_that_the_equations_do_not_hold_for_are_refused() {
        let refused = |inputs: Inputs| inputs.work_out().unwrap_err().key;
        assert_eq!(refused(Inputs { paths: 0, ..small() }), "paths");
        assert_eq!(refused(Inputs { short_flows: -1.0, ..small() }), "short_flows");
        assert_eq!(refused(Inputs { long_paths: Some(f64::NAN), ..small() }), "long_paths");
        assert_eq!(refused(Inputs { load: Some(0.0), ..small() }), "load");
        assert_eq!(refused(Inputs { refresh: Span::ZERO, ..small() }), "refresh");
        assert_eq!(refused(Inputs { most: Bytes::new(1), ..small() }), "most");
        let silent = Inputs { short_flows: 0.0, long_flows: 0.0, best_effort_flows: 0.0, ..small() };
        assert_eq!(refused(Inputs { load: Some(0.5), ..silent.clone() }), "load");
        assert!(silent.work_out().is_ok());
    }

    #[test]
    fn the_default_mix_is_that_of_the_paper_at_a_load_of_about_a_half() {
        let inputs = Inputs::default();
        let Load { short, long, .. } = inputs.given();
        assert!((short.bytes / (short.bytes + long.bytes) - 0.2).abs() < 1e-9);
        assert!((short.flows / (short.flows + long.flows) - 0.8).abs() < 1e-9);
        let load = inputs.work_out().unwrap().value("load_1").unwrap();
        assert!((load - 0.5).abs() < 0.01, "{load}");
    }
}
