//! A load balancer that is written in Python: called for every packet with more than one next hop,
//! and for whatever else it has a method for.

mod views;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use weft_balance::{
    Arrival, ExternalScheme, NextHops, PortId, Ports, PythonClass, Queued, SwitchContext, SwitchHooks,
    SwitchInfo,
};
use weft_packet::{Kinds, Packet};

use crate::progress::Failure;
use views::{InfoView, PacketView, PortView, SwitchView};

pub use views::Racks;

/// A Python object that balances load.
pub struct PythonScheme {
    method: Method,
    /// Whether a spec names it by its file: then an exception in it is told as a mistake in that
    /// file.
    is_of_spec: bool,
}

/// Method to call: of one object for the whole run, or of one that makes one for each switch.
enum Method {
    /// `choose(switch, packet, ports)`, with the number of the switch.
    Shared(Py<PyAny>),
    /// `at(info)`, which returns the scheme of a switch.
    PerSwitch(Py<PyAny>),
}

impl PythonScheme {
    /// The scheme's class, and what it offers.
    ///
    /// # Errors
    /// `TypeError` if it has neither method.
    pub fn new(scheme: &Bound<'_, PyAny>) -> PyResult<(String, Self)> {
        // A class may make the scheme of each switch itself.
        let class = scheme.cast::<PyType>().cloned().unwrap_or_else(|_| scheme.get_type());
        let class = class.name()?.to_string();
        let found = method(scheme, "at").map(Method::PerSwitch);
        if let Some(method) = found.or_else(|| method(scheme, "choose").map(Method::Shared)) {
            return Ok((class, Self { method, is_of_spec: false }));
        }
        Err(PyTypeError::new_err(format!(
            "a load balancer needs a method choose(switch, packet, ports), or at(info) that makes the scheme of a switch, \
             and {class} has none"
        )))
    }

    /// The load balancer that a spec names by its file and class.
    ///
    /// # Errors
    /// Whatever goes wrong when the file is executed or the class is made.
    pub fn of_class(class: &PythonClass) -> PyResult<(String, Self)> {
        Python::attach(|py| {
            let parameters = serde_json::to_string(&class.parameters)
                .map_err(|error| PyValueError::new_err(error.to_string()))?;
            let load = py.import("weft.scheme_file")?.getattr("load_scheme")?;
            let made = load.call1((&class.source, &class.file, &class.class, parameters))?;
            let (_, scheme) = Self::new(&made)?;
            Ok((class.class.clone(), Self { is_of_spec: true, ..scheme }))
        })
    }

    /// The scheme at the switch of `info`. Its exceptions go to `failure`.
    pub fn at(&self, info: &SwitchInfo<'_>, racks: &Racks, failure: &Failure) -> PythonSwitch {
        let made = Python::attach(|py| {
            let calls = match &self.method {
                Method::Shared(choose) => Ok(Calls::shared(choose.clone_ref(py))),
                Method::PerSwitch(at) => {
                    let made = at.bind(py).call1((InfoView::from(info),));
                    made.and_then(|scheme| Calls::of(&scheme))
                        .map_err(|error| if self.is_of_spec { told(&error, at.bind(py)) } else { error })
                }
            };
            let view = Py::new(py, SwitchView::new(info.switch, racks.clone()))?;
            Ok((calls?, view))
        });
        let made = made.map_err(|error| failure.set(error)).ok();
        PythonSwitch {
            switch: info.switch,
            ports: info.port_rates.len() as u16,
            racks: racks.clone(),
            made,
            is_of_spec: self.is_of_spec,
            failure: failure.clone(),
        }
    }
}

/// Converts an exception in this method of a scheme that a spec names: it adds the place in the
/// file.
fn told(error: &PyErr, method: &Bound<'_, PyAny>) -> PyErr {
    let py = method.py();
    let in_file = || {
        py.import("weft.scheme_file")?.getattr("in_its_file")?.call1((
            error.value(py),
            error.traceback(py),
            method,
        ))
    };
    in_file().map_or_else(|failed| failed, PyErr::from_value)
}

/// The method of an object, if it has one of this name.
fn method(object: &Bound<'_, PyAny>, name: &str) -> Option<Py<PyAny>> {
    object.getattr(name).ok().filter(PyAnyMethods::is_callable).map(Bound::unbind)
}

/// The methods that a scheme has.
struct Calls {
    choose: Py<PyAny>,
    /// Whether `choose` takes a view of the switch, not its number alone.
    sees_switch: bool,
    start: Option<Py<PyAny>>,
    on_arrival: Option<Py<PyAny>>,
    on_enqueued: Option<Py<PyAny>>,
    on_timer: Option<Py<PyAny>>,
    on_port_change: Option<Py<PyAny>>,
    state_bytes: Option<Py<PyAny>>,
    counters: Option<Py<PyAny>>,
}

impl Calls {
    const fn shared(choose: Py<PyAny>) -> Self {
        Self {
            choose,
            sees_switch: false,
            start: None,
            on_arrival: None,
            on_enqueued: None,
            on_timer: None,
            on_port_change: None,
            state_bytes: None,
            counters: None,
        }
    }

    fn of(scheme: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Some(choose) = method(scheme, "choose") else {
            let class = scheme.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "at(info) returned {class}, which has no method choose(switch, packet, ports)"
            )));
        };
        Ok(Self {
            choose,
            sees_switch: true,
            start: method(scheme, "start"),
            on_arrival: method(scheme, "on_arrival"),
            on_enqueued: method(scheme, "on_enqueued"),
            on_timer: method(scheme, "on_timer"),
            on_port_change: method(scheme, "on_port_change"),
            state_bytes: method(scheme, "state_bytes"),
            counters: method(scheme, "counters"),
        })
    }
}

/// The Python scheme at one switch.
pub struct PythonSwitch {
    switch: u32,
    ports: u16,
    racks: Racks,
    /// `None` if it could not be made: the run is about to end.
    made: Option<(Calls, Py<SwitchView>)>,
    /// Whether a spec names it by its file.
    is_of_spec: bool,
    failure: Failure,
}

impl PythonSwitch {
    /// Calls one of the scheme's methods, if it has it, with a view of its switch. Of an exception,
    /// or when the run is about to end, nothing comes back.
    fn call<R>(
        &self,
        cx: &mut dyn SwitchContext,
        which: impl FnOnce(&Calls) -> Option<&Py<PyAny>>,
        call: impl FnOnce(&Bound<'_, PyAny>, &Bound<'_, SwitchView>) -> PyResult<R>,
    ) -> Option<R> {
        if self.failure.is_set() {
            return None;
        }
        let (calls, view) = self.made.as_ref()?;
        let method = which(calls)?;
        let answer = Python::attach(|py| {
            let view = view.bind(py);
            view.try_borrow_mut()?.open(cx, self.ports);
            let answer = call(method.bind(py), view);
            view.try_borrow_mut()?.close(cx);
            answer.map_err(|error| self.told(error, method.bind(py)))
        });
        answer.map_err(|error| self.failure.set(error)).ok()
    }

    /// Converts an exception in this method.
    fn told(&self, error: PyErr, method: &Bound<'_, PyAny>) -> PyErr {
        if self.is_of_spec { told(&error, method) } else { error }
    }

    /// Calls one of the scheme's methods that need no switch, if it has it.
    fn ask<R>(
        &self,
        which: impl FnOnce(&Calls) -> Option<&Py<PyAny>>,
        read: impl Fn(Bound<'_, PyAny>) -> PyResult<R>,
    ) -> Option<R> {
        let method = which(&self.made.as_ref()?.0)?;
        let answer = Python::attach(|py| {
            let method = method.bind(py);
            method.call0().and_then(&read).map_err(|error| self.told(error, method))
        });
        answer.map_err(|error| self.failure.set(error)).ok()
    }

    /// Shows a packet to `call`, and takes what it wrote into it.
    fn show<R>(
        &self,
        py: Python<'_>,
        packet: &mut Packet,
        call: impl FnOnce(&Bound<'_, PacketView>) -> PyResult<R>,
    ) -> PyResult<R> {
        let view = Bound::new(py, PacketView::new(packet, &self.racks))?;
        let answer = call(&view)?;
        view.try_borrow()?.write_to(packet);
        Ok(answer)
    }
}

/// Reads the answer of `choose`: a position in the list of so many ports.
fn position(answer: &Bound<'_, PyAny>, allowed: usize) -> PyResult<usize> {
    let Ok(index) = answer.extract::<i64>() else {
        let message = format!(
            "choose() returned {}: allowed is the position of a port, 0 to {}",
            answer.repr()?,
            allowed - 1
        );
        return Err(PyTypeError::new_err(message));
    };
    usize::try_from(index).ok().filter(|&index| index < allowed).ok_or_else(|| {
        let message =
            format!("choose() returned {index}: allowed is 0 to {}, one of {allowed} ports", allowed - 1);
        PyValueError::new_err(message)
    })
}

/// Reads the answer of `on_arrival`: nothing or true for a packet that goes on, false for one that
/// ends here.
fn arrival(answer: &Bound<'_, PyAny>) -> PyResult<Arrival> {
    match answer.extract::<Option<bool>>() {
        Ok(None | Some(true)) => Ok(Arrival::Forward),
        Ok(Some(false)) => Ok(Arrival::Consume),
        Err(_) => Err(PyTypeError::new_err(format!(
            "on_arrival() returned {}: allowed is None or True (the packet goes on), or False (it ends here)",
            answer.repr()?
        ))),
    }
}

/// The name of a counter, kept for as long as the process lives: schemes have few, and the same
/// ones in every run.
fn kept(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.get(name.as_str()).copied().unwrap_or_else(|| {
        let name: &'static str = name.leak();
        names.insert(name);
        name
    })
}

impl ExternalScheme for PythonSwitch {
    fn hooks(&self) -> SwitchHooks {
        let Some((calls, _)) = &self.made else { return SwitchHooks::default() };
        SwitchHooks {
            on_arrival: if calls.on_arrival.is_some() { Kinds::ALL } else { Kinds::NONE },
            on_arrival_by: Ports::All,
            on_enqueued: if calls.on_enqueued.is_some() { Ports::All } else { Ports::None },
            timers: true,
        }
    }

    fn choose(&mut self, cx: &mut dyn SwitchContext, packet: &mut Packet, hops: &NextHops<'_>) -> usize {
        let ports = PortView::all(cx, hops, packet);
        let sees_switch = self.made.as_ref().is_some_and(|(calls, _)| calls.sees_switch);
        let choice = self.call(
            cx,
            |calls| Some(&calls.choose),
            |choose, switch| {
                self.show(choose.py(), packet, |packet| {
                    let answer = if sees_switch {
                        choose.call1((switch, packet, ports))
                    } else {
                        choose.call1((self.switch, packet, ports))
                    };
                    position(&answer?, hops.ports.len())
                })
            },
        );
        // After an exception the run is about to end: any port will do.
        choice.unwrap_or(0)
    }

    fn start(&mut self, cx: &mut dyn SwitchContext) {
        self.call(cx, |calls| calls.start.as_ref(), |start, switch| start.call1((switch,)).map(drop));
    }

    fn on_arrival(&mut self, cx: &mut dyn SwitchContext, packet: &mut Packet, port: PortId) -> Arrival {
        let answer = self.call(
            cx,
            |calls| calls.on_arrival.as_ref(),
            |method, switch| {
                self.show(method.py(), packet, |packet| arrival(&method.call1((switch, packet, port.0))?))
            },
        );
        answer.unwrap_or(Arrival::Forward)
    }

    fn on_enqueued(&mut self, cx: &mut dyn SwitchContext, packet: &mut Packet, queued: Queued) {
        let (port, leaves_ps, found_bytes) = (queued.port.0, queued.leaves.as_ps(), queued.found_bytes);
        self.call(
            cx,
            |calls| calls.on_enqueued.as_ref(),
            |method, switch| {
                self.show(method.py(), packet, |packet| {
                    method.call1((switch, packet, port, leaves_ps, found_bytes)).map(drop)
                })
            },
        );
    }

    fn on_timer(&mut self, cx: &mut dyn SwitchContext, token: u32) {
        self.call(
            cx,
            |calls| calls.on_timer.as_ref(),
            |timer, switch| timer.call1((switch, token)).map(drop),
        );
    }

    fn on_port_change(&mut self, cx: &mut dyn SwitchContext, port: PortId) {
        self.call(
            cx,
            |calls| calls.on_port_change.as_ref(),
            |changed, switch| changed.call1((switch, port.0)).map(drop),
        );
    }

    fn state_bytes(&self) -> u64 {
        self.ask(|calls| calls.state_bytes.as_ref(), |answer| answer.extract()).unwrap_or_default()
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let read = |answer: Bound<'_, PyAny>| answer.extract::<std::collections::BTreeMap<String, u64>>();
        for (name, value) in self.ask(|calls| calls.counters.as_ref(), read).unwrap_or_default() {
            count(kept(name), value);
        }
    }
}
