//! QALL with a congestion index that was fitted to the traffic of ports: a polynomial of occupancy
//! and dequeue interval (Liu et al., IEEE TNSM 2024, §V). All but the index is `qall`.

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Packet;
use weft_units::{Bytes, Span};

use super::qall::Qall;
use super::qall::index::Formula;
use super::qall::params::{Granularity, Shared, refuse, with_shared_parameters};
use super::qall::polynomial::{COEFFICIENTS, Cubic, Form, Polynomial, from_file};
use crate::registry::{FlowletRule, Parameters};
use crate::{
    NextHops, Order, ParameterError, PortId, Queued, SwitchContext, SwitchHooks, SwitchInfo, SwitchScheme,
};

with_shared_parameters! {
    /// Parameters of QALL with a fitted index.
    {
        /// A published polynomial: `linear`, `poly2` or `poly3` (QALL eqs. 11 to 13). Source: QALL
        /// §V-A; the default is what the paper finds best.
        form: Form = Form::Poly3,
        /// Which equation has `poly3`: `eq13`, which gives a coefficient as 188, or `eq10`, of
        /// which it would be 1887. Source: QALL §V-A; the default is what the paper gives for the
        /// switch.
        cubic: Cubic = Cubic::Eq13,
        /// A file that `weft fit qall --out` wrote, in place of `form`; its time constant takes the
        /// place of `time_constant`. Default: none. Source: QALL §VII-A, which fits anew for each
        /// traffic.
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<String> = None,
        /// Which polynomial of the file: its degree. Source: QALL §V-A, where nothing above 3 pays.
        degree: u8 = 3,
        /// Coefficients in place of `form`: in hundredths of the port's rate, by degree and falling
        /// powers of L (1; L, T; L², LT, T²; L³, L²T, LT², T³; …), so 3, 6, 10, 15, 21, 28, 36, 45,
        /// 55 or 66 of them for degrees 1 to 10; or none. L and T are from 0 to 1. Source: QALL
        /// §VII-A, which fits anew for each traffic.
        coefficients: Vec<f64> = Vec::new(),
        /// Polynomial read from the file.
        #[serde(skip)]
        loaded: Option<Polynomial> = None,
    }
}

impl Params {
    /// The polynomial, if the coefficients make one and the file was read.
    fn polynomial(&self) -> Option<Polynomial> {
        match &self.file {
            Some(_) => self.loaded.clone(),
            None if self.coefficients.is_empty() => Some(Polynomial::published(self.form, self.cubic)),
            None => Polynomial::new(&self.coefficients),
        }
    }
}

impl Parameters for Params {
    fn flowlets(&self, _base_rtt: Span) -> Option<FlowletRule> {
        self.shared().flowlets()
    }

    fn order(&self, usual: Order) -> Order {
        self.shared().order(usual)
    }

    fn load(&mut self) -> Result<(), ParameterError> {
        if let Some(file) = &self.file {
            let (polynomial, time_constant) = from_file(file, self.degree)?;
            (self.loaded, self.time_constant) = (Some(polynomial), time_constant);
        }
        Ok(())
    }

    fn validate(&self) -> Result<(), ParameterError> {
        if let Some(file) = &self.file
            && !self.coefficients.is_empty()
        {
            return refuse("file", &format!("{file:?}, beside `coefficients`"), "one of the two");
        }
        if let Some(wild) = Polynomial::wild(&self.coefficients) {
            return refuse("coefficients", &wild, COEFFICIENTS);
        }
        match (self.polynomial(), &self.file) {
            (Some(_), _) => self.shared().validate(),
            (None, Some(file)) => refuse("file", file, "a file that was read"),
            (None, None) => {
                let allowed = "none, or 3, 6, 10, 15, 21, 28, 36, 45, 55 or 66 values, for degrees 1 to 10";
                refuse("coefficients", &format!("an array of {}", self.coefficients.len()), allowed)
            }
        }
    }
}

/// QALL with a fitted index at one switch.
#[derive(Debug, Clone)]
pub struct QallPoly(Qall);

impl SwitchScheme for QallPoly {
    type Params = Params;

    const HOOKS: SwitchHooks = Qall::HOOKS;

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let polynomial =
            params.polynomial().unwrap_or_else(|| Polynomial::published(params.form, params.cubic));
        Self(Qall::with_formula(Formula::Polynomial(polynomial), &params.shared(), info))
    }

    #[inline(never)]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        self.0.choose(cx, packet, hops)
    }

    #[inline]
    fn on_enqueued<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, packet: &mut Packet, queued: Queued) {
        self.0.on_enqueued(cx, packet, queued);
    }

    fn on_port_change<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, port: PortId) {
        self.0.on_port_change(cx, port);
    }

    fn registers(&self, set: &mut dyn FnMut(&'static str, u32, u64)) {
        self.0.registers(set);
    }

    fn state_bytes(&self) -> u64 {
        self.0.state_bytes()
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        self.0.counters(count);
    }
}
