//! Functions that the page calls. Texts and numbers lie in the module's memory: a call leaves them
//! there, and others say where.
//!
//! A page writes a text where [`room`] says, and calls. A text that comes back is at [`text_at`],
//! [`text_bytes`] long, in UTF-8; the numbers of the last [`look`] are doubles. Times are in
//! picoseconds, and below 2^53.

use std::cell::RefCell;

use serde_json::json;

use crate::frame::Frame;
use crate::session::{Session, catalog};

/// State of one instance of the module.
#[derive(Default)]
struct Desk {
    input: Vec<u8>,
    output: String,
    session: Option<Session>,
    frame: Places,
}

/// Where the numbers of the last look lie, and how many they are.
#[derive(Clone, Copy, Default)]
struct Places([(usize, usize); 3]);

thread_local! {
    static DESK: RefCell<Desk> = RefCell::default();
}

fn at_desk<R>(act: impl FnOnce(&mut Desk) -> R) -> R {
    DESK.with_borrow_mut(act)
}

impl Places {
    fn of(frame: &Frame) -> Self {
        Self(
            [&frame.links, &frame.packets, &frame.flows]
                .map(|numbers| (numbers.as_ptr() as usize, numbers.len())),
        )
    }
}

impl Desk {
    /// Leaves an answer for the page: a value, or `{"error"}`. Returns whether it is a value.
    fn answer(&mut self, answer: Result<serde_json::Value, String>) -> bool {
        let is_good = answer.is_ok();
        self.output = answer.unwrap_or_else(|error| json!({ "error": error })).to_string();
        is_good
    }
}

/// Where the page may write a text of so many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    at_desk(|desk| {
        desk.input.clear();
        desk.input.resize(bytes, 0);
        desk.input.as_mut_ptr()
    })
}

/// Where the last text lies.
#[unsafe(no_mangle)]
pub extern "C" fn text_at() -> *const u8 {
    at_desk(|desk| desk.output.as_ptr())
}

/// How long it is.
#[unsafe(no_mangle)]
pub extern "C" fn text_bytes() -> usize {
    at_desk(|desk| desk.output.len())
}

/// Writes the catalog as a text: see [`crate::catalog`].
#[unsafe(no_mangle)]
pub extern "C" fn list() {
    at_desk(|desk| desk.answer(catalog().map_err(|error| error.to_string())));
}

/// Gives specs a file: of the text that was written, the first `name_bytes` are its name and the
/// rest is what is in it.
#[unsafe(no_mangle)]
pub extern "C" fn give_file(name_bytes: usize) {
    at_desk(|desk| {
        let text = String::from_utf8_lossy(&desk.input);
        if let Some((name, content)) = text.split_at_checked(name_bytes) {
            weft_units::give_file(name, content);
        }
    });
}

/// Begins a run: of the text that was written, the first `variant_bytes` are the variant and the
/// rest is the spec. Leaves a description or an error as a text; returns whether it began.
#[unsafe(no_mangle)]
pub extern "C" fn begin(variant_bytes: usize) -> bool {
    at_desk(|desk| {
        let text = String::from_utf8_lossy(&desk.input).into_owned();
        let began = text.split_at_checked(variant_bytes).ok_or("a text that is too short".to_owned());
        let began = began
            .and_then(|(variant, spec)| Session::begin(spec, variant).map_err(|error| error.to_string()));
        let answer = began.map(|session| desk.session.insert(session).describe());
        desk.answer(answer)
    })
}

/// See [`Session::advance`].
#[unsafe(no_mangle)]
pub extern "C" fn advance(until_ps: f64, max_events: f64) -> u32 {
    at_desk(|desk| desk.session.as_mut().map_or(2, |run| run.advance(until_ps as u64, max_events as u64)))
}

/// The time of the last event.
#[unsafe(no_mangle)]
pub extern "C" fn now() -> f64 {
    at_desk(|desk| desk.session.as_ref().map_or(0, Session::now)) as f64
}

/// Packet-hops so far.
#[unsafe(no_mangle)]
pub extern "C" fn hops() -> f64 {
    at_desk(|desk| desk.session.as_ref().map_or(0, Session::hops)) as f64
}

/// Looks at the run at this time, up to which it has advanced.
#[unsafe(no_mangle)]
pub extern "C" fn look(at_ps: f64) {
    at_desk(|desk| {
        let frame = desk.session.as_mut().map(|session| Places::of(session.look(at_ps as u64)));
        desk.frame = frame.unwrap_or_default();
    });
}

/// Where numbers of the last look lie: those of links (0), of packets (1) or of flows (2).
#[unsafe(no_mangle)]
pub extern "C" fn numbers_at(list: usize) -> usize {
    at_desk(|desk| desk.frame.0.get(list).map_or(0, |place| place.0))
}

/// How many they are.
#[unsafe(no_mangle)]
pub extern "C" fn numbers(list: usize) -> usize {
    at_desk(|desk| desk.frame.0.get(list).map_or(0, |place| place.1))
}

/// Follows a flow from now on; none if the number is negative.
#[unsafe(no_mangle)]
pub extern "C" fn follow(flow: i32) {
    at_desk(|desk| {
        if let Some(session) = &mut desk.session {
            session.follow(u32::try_from(flow).ok());
        }
    });
}

/// Writes the decisions about the followed flow since the last call as a text.
#[unsafe(no_mangle)]
pub extern "C" fn decisions() {
    at_desk(|desk| {
        let decisions = desk.session.as_mut().map(Session::decisions).unwrap_or_default();
        desk.answer(Ok(decisions))
    });
}

/// Ends the run, and leaves what came of it as a text.
#[unsafe(no_mangle)]
pub extern "C" fn finish() -> bool {
    at_desk(|desk| {
        let none = || Err("there is no run".to_owned());
        let ended =
            desk.session.as_mut().map_or_else(none, |run| run.finish().map_err(|error| error.to_string()));
        desk.answer(ended)
    })
}
