//! A round of the poller: all sockets that are readable are read, their turns taken, and what those say is sent.
//!
//! `Poller.look` in `relay/transport/poller.py` specifies it, with `Link` in `relay/session/link.py` and
//! `System.at_once`; `Poller._serve` the rounds that follow each other.  Each step that is not usual is Python's: a link
//! that has to wait, a stream that is no plain socket, a socket that takes less than all.

use crate::delivery::{event, ENTER};
use crate::current_turn;
use crate::session_bytes::{taken_in, HopNames, Taken};
use crate::object_slots::{bind, bound_to, owner_of, slots_of, Slot};
use crate::turns::{drain, SystemNames, TurnNames};
use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PySet, PyTuple, PyType};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A ping in Preserves: `relay.server.throttle`.
const OTHER_PING: u8 = 0x80;
/// So long the time of a round is now.
const NOW: Duration = Duration::from_millis(5);

static ROUND_NAMES: PyOnceLock<RoundNames> = PyOnceLock::new();
static TAP: PyOnceLock<TapSlots> = PyOnceLock::new();
static HEARD: PyOnceLock<Slot> = PyOnceLock::new(); // of the traffic of taps

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

slots_of! {
    /// Those of a link.
    LinkSlots {
        session: "session", stream: "_stream", owing: "_owing", waiting: "_waiting", listening: "_listening",
        paused: "_paused", heard: "_heard", probed: "_probed", frame: "_frame", step: "step", repaid: "_repaid",
        polled: "_polled", crowded: "_crowded", idle: "_idle", flushing: "_flushing", left: "_left", said: "_said",
        burdened: "_burdened", limits: "_limits", clock: "_clock", dozes: "_dozes", patience: "_patience",
        due: "due",
    }
}

slots_of! {
    /// Those of a tap.
    TapSlots { shut: "_shut", stream: "_stream", traffic: "_traffic", received: "received", direct: "direct" }
}

/// What is called by these names.
struct RoundNames {
    link: Py<PyType>,
    flush: Py<PyAny>,
    wake: Py<PyAny>,
    slots: LinkSlots,
    plain: Py<PyAny>,
    never: Py<PyAny>,
    slice: f64,
    grains: f64, // the parts of a step that times are kept to
    ping: u8,    // what says only that one is there
    pings: usize, // so many bytes, if no more come, change nothing
    few: usize,   // the most of a crowd that are called at once
    chunk: usize, // the bytes that are read at once
    little: usize, // those above which what was read is long work
    direct: Slot,
    number: Slot,
    actor: Slot,
    system_of: Slot,
    daemon: Slot,
}

impl RoundNames {
    fn of(py: Python<'_>) -> PyResult<&RoundNames> {
        ROUND_NAMES.get_or_try_init(py, || {
            let class = |module: &str, name: &str| -> PyResult<Bound<'_, PyType>> {
                Ok(py.import(module)?.getattr(name)?.cast_into::<PyType>()?)
            };
            let link = class("relay.session.link", "Link")?;
            let facet = class("syndicate.actors.facet", "Facet")?;
            let actor = class("syndicate.actors.actor", "Actor")?;
            let plain = class("relay.transport.stream", "ByteStream")?;
            Ok(RoundNames {
                flush: link.getattr("_flush")?.unbind(),
                wake: link.getattr("wake")?.unbind(),
                slots: LinkSlots::of(&link)?,
                direct: Slot::of(&plain, "direct")?,
                number: Slot::of(&plain, "_number")?,
                plain: plain.into_any().unbind(),
                never: py.import("relay.session.deadlines")?.getattr("NEVER")?.unbind(),
                grains: py.import("relay.session.deadlines")?.getattr("GRAINS")?.extract()?,
                ping: py.import("relay.session.session")?.getattr("PING")?.extract::<[u8; 1]>()?[0],
                pings: py.import("relay.session.session")?.getattr("PINGS")?.extract()?,
                slice: py.import("syndicate.actors.system")?.getattr("SLICE")?.extract()?,
                few: py.import("relay.transport.poller")?.getattr("CROWD")?.extract()?,
                chunk: py.import("relay.transport.stream")?.getattr("CHUNK")?.extract()?,
                little: py.import("relay.session.link")?.getattr("LITTLE")?.extract()?,
                actor: Slot::of(&facet, "actor")?,
                system_of: Slot::of(&actor, "system")?,
                daemon: Slot::of(&actor, "daemon")?,
                link: link.unbind(),
            })
        })
    }
}

impl RoundNames {
    /// Whether what was read is a few pings in one encoding or the other, which change nothing that is held.
    fn may_be_pings(&self, data: &[u8]) -> bool {
        data.len() <= self.pings && data.iter().all(|byte| *byte == self.ping || *byte == OTHER_PING)
    }

    /// Whether what was read is a few pings, and nothing else.
    fn only_pings(&self, data: &[u8]) -> bool {
        data.len() <= self.pings && data.iter().all(|byte| *byte == self.ping)
    }
}

/// The class of taps as it is: what is read and sent past one here is counted with it.
pub fn tap_kernel(specification: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let slots = TapSlots::of(specification.cast::<PyType>()?)?;
    TAP.get_or_init(specification.py(), || slots);
    Ok(specification)
}

// ------------------------------------------------------------------------------------------------ time

/// What the clocks of links have said in the rounds that are made in this thread, if some are.
struct Moment {
    times: Vec<(Py<PyAny>, Py<PyAny>)>,
    began: Instant,
}

thread_local! {
    static MOMENT: RefCell<Option<Moment>> = const { RefCell::new(None) };
}

impl Moment {
    fn now() -> Moment {
        Moment { times: Vec::new(), began: Instant::now() }
    }
}

/// The time by a link's clock.  Within rounds that follow each other that is what it said first, for a moment.
fn time<'py>(clock: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = clock.py();
    let owner = match owner_of(&clock)? {
        Some(owner) => owner,
        None => clock.getattr(intern!(py, "__self__"))?,
    };
    let said = MOMENT.with_borrow(|moment| {
        let moment = moment.as_ref().filter(|moment| moment.began.elapsed() < NOW)?;
        moment.times.iter().find(|(of, _)| of.is(&owner)).map(|(_, time)| time.bind(py).clone())
    });
    if let Some(time) = said {
        return Ok(time);
    }
    let time = clock.call0()?;
    MOMENT.with_borrow_mut(|moment| {
        if let Some(moment) = moment {
            if moment.began.elapsed() >= NOW {
                *moment = Moment::now();
            }
            moment.times.push((owner.unbind(), time.clone().unbind()));
        }
    });
    Ok(time)
}

// ------------------------------------------------------------------------------------------------ streams

/// The plain stream of a link, and the tap around it, if there is one and it is open.
struct Plain<'py> {
    tap: Option<(Bound<'py, PyAny>, &'py TapSlots)>,
    descriptor: i32,
}

impl<'py> Plain<'py> {
    fn of(names: &RoundNames, stream: Bound<'py, PyAny>, reads: bool) -> PyResult<Option<Plain<'py>>> {
        let py = stream.py();
        let (mut tap, mut plain) = (None, stream);
        if let Some(slots) = TAP.get(py).filter(|slots| slots.stream.fits(&plain)) {
            if reads && !slots.shut.get(&plain)?.is_none() {
                return Ok(None);
            }
            let inner = slots.stream.get(&plain)?;
            tap = Some((std::mem::replace(&mut plain, inner), slots));
        }
        if !plain.get_type().is(&names.plain) || !names.direct.holds(&plain)? {
            return Ok(None);
        }
        let descriptor = names.number.get(&plain)?.extract()?;
        Ok(if descriptor < 0 { None } else { Some(Plain { tap, descriptor }) })
    }

    /// Count what was read through the tap, as `Tap._count` does.
    fn received(&self, names: &RoundNames, data: &[u8]) -> PyResult<()> {
        self.count(data.len())?;
        if names.may_be_pings(data) { Ok(()) } else { self.heard() }
    }

    /// Count the bytes of pings, which change nothing that is held.
    fn count(&self, size: usize) -> PyResult<()> {
        match &self.tap {
            Some((tap, slots)) => slots.received.add(tap, size as i64),
            None => Ok(()),
        }
    }

    /// What went through the tap may change what is held.
    fn heard(&self) -> PyResult<()> {
        let Some((tap, slots)) = &self.tap else { return Ok(()) };
        let py = tap.py();
        let traffic = slots.traffic.get(tap)?;
        let heard = HEARD.get_or_try_init(py, || {
            Slot::of(py.import("relay.server.throttle")?.getattr("Traffic")?.cast::<PyType>()?, "heard")
        })?;
        let heard = heard.get(&traffic)?.cast_into::<PySet>()?;
        if !heard.contains(tap)? {
            heard.add(tap)?;
            traffic.call_method0(intern!(py, "wake"))?;
        }
        Ok(())
    }
}

/// Whether a stream, or that which a tap is around, is a plain socket.
fn is_direct(names: &RoundNames, stream: &Bound<'_, PyAny>) -> PyResult<bool> {
    match TAP.get(stream.py()).filter(|slots| slots.direct.fits(stream)) {
        Some(slots) => slots.direct.holds(stream),
        None => names.direct.holds(stream),
    }
}

#[cfg(unix)]
mod socket {
    use std::ffi::{c_int, c_void};
    use std::io::{Error, Result};

    extern "C" {
        fn recv(socket: c_int, buffer: *mut c_void, size: usize, flags: c_int) -> isize;
        fn send(socket: c_int, data: *const c_void, size: usize, flags: c_int) -> isize;
    }

    /// What a socket that does not block has now, as far as it fits.
    pub fn read(descriptor: i32, buffer: &mut [u8]) -> Result<usize> {
        // SAFETY: the call writes so many bytes at most.
        done(unsafe { recv(descriptor, buffer.as_mut_ptr().cast(), buffer.len(), 0) })
    }

    /// How much of the data a socket that does not block takes now.
    pub fn write(descriptor: i32, data: &[u8]) -> Result<usize> {
        // SAFETY: the call reads so many bytes at most.
        done(unsafe { send(descriptor, data.as_ptr().cast(), data.len(), 0) })
    }

    fn done(count: isize) -> Result<usize> {
        usize::try_from(count).map_err(|_| Error::last_os_error())
    }
}

#[cfg(not(unix))]
mod socket {
    use std::io::{ErrorKind, Result};

    pub fn read(_: i32, _: &mut [u8]) -> Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }

    pub fn write(_: i32, _: &[u8]) -> Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }
}

// ------------------------------------------------------------------------------------------------ in

/// What a read has brought for the session, in a turn of its own: `Link._hand_over`.
#[pyclass(frozen, module = "syndicate._native")]
pub struct Arrival {
    link: Py<PyAny>,
    data: Py<PyBytes>,
}

#[pymethods]
impl Arrival {
    pub fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let names = RoundNames::of(py)?;
        let link = self.link.bind(py);
        let session = names.slots.session.get(link)?;
        let turn = match current_turn::turn(py) {
            Some(turn) => turn,
            None => return link.call_method1(intern!(py, "_hand_over"), (&self.data,)).map(|_| ()),
        };
        names.slots.waiting.flag(link, false)?;
        match taken_in(&session, turn, self.data.bind(py))? {
            Taken::All => repaid(names, link, &session),
            Taken::Nothing => session.call_method1(intern!(py, "feed"), (&self.data,)).map(|_| ()),
            Taken::Some(done) => session.call_method1(intern!(py, "feed"), (&self.data, done)).map(|_| ()),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.link)
    }
}

/// All that was read is done: `Link.repaid`.
fn repaid<'py>(names: &RoundNames, link: &Bound<'py, PyAny>, session: &Bound<'py, PyAny>) -> PyResult<()> {
    let (py, slots, hop) = (link.py(), &names.slots, HopNames::of(link.py())?);
    let limits = slots.limits.get(link)?;
    let debt = hop.debt.bytes.number(&hop.session.debt.get(session)?)?;
    if !slots.owing.holds(link)?
        || debt > hop.limits.debt.number(&limits)?
        || hop.session.ping.get(session)?.extract::<f64>()? < slots.step.get(link)?.extract::<f64>()?
        || (slots.dozes.get(link)?.is_none() && hop.session.pings.holds(session)?)
        || !slots.repaid.get(link)?.is_none()
        || slots.polled.number(link)? < 0
    {
        return link.call_method0(intern!(py, "repaid")).map(|_| ());
    }
    slots.owing.flag(link, false)?;
    slots.listening.flag(link, true)?;
    slots.heard.set(link, time(slots.clock.get(link)?)?)?;
    slots.probed.set(link, py.None().into_bound(py))?;
    slots.frame.set(link, names.never.bind(py).clone())
}

/// There is something to read: `Link.arrived` and `Link._feed`.  False if Python is to look.
fn arrived<'py>(names: &RoundNames, link: &Bound<'py, PyAny>, system: &Bound<'py, PyAny>) -> PyResult<bool> {
    let (py, slots, hop) = (link.py(), &names.slots, HopNames::of(link.py())?);
    let session = slots.session.get(link)?;
    let untrusted = hop.session.untrusted.holds(&session)?;
    if slots.owing.holds(link)? {
        return Ok(false);
    }
    if slots.crowded.holds(link)? != untrusted {
        link.call_method0(intern!(py, "_unpoll"))?;
        link.call_method0(intern!(py, "_poll"))?;
        if slots.polled.number(link)? < 0 {
            return Ok(false);
        }
    }
    let Some(stream) = Plain::of(names, slots.stream.get(link)?, true)? else { return Ok(false) };
    let data = BUFFER.with_borrow_mut(|buffer| {
        buffer.resize(names.chunk, 0);
        let most = if untrusted { names.little } else { names.chunk };
        let size = socket::read(stream.descriptor, &mut buffer[..most]).unwrap_or(0);
        PyBytes::new(py, &buffer[..size])
    });
    let size = data.as_bytes().len();
    if size == 0 {
        return Ok(false); // the end, nothing, or an error
    }
    stream.received(names, data.as_bytes())?;
    if names.only_pings(data.as_bytes()) && hop.pings(&session)? {
        hop.hear(&session, size)?;
        slots.heard.set(link, time(slots.clock.get(link)?)?)?;
        slots.probed.set(link, py.None().into_bound(py))?;
        if slots.dozes.get(link)?.is_none() {
            link.call_method0(intern!(py, "_doze"))?;
        }
        return Ok(true);
    }
    if untrusted || size > names.little {
        link.call_method1(intern!(py, "_feed"), (data,))?;
        return Ok(true);
    }
    slots.listening.flag(link, false)?;
    slots.paused.set(link, time(slots.clock.get(link)?)?)?;
    slots.owing.flag(link, true)?;
    hop.debt.bytes.add(&hop.session.debt.get(&session)?, size as i64)?;
    slots.waiting.flag(link, true)?;
    let arrival = Bound::new(py, Arrival { link: link.clone().unbind(), data: data.unbind() })?;
    let facet = hop.session.facet.get(&session)?;
    let actor = names.actor.get(&facet)?;
    let events = PyList::new(py, [event(ENTER.of(py), facet, arrival.into_any(), None)?])?;
    let queue = SystemNames::of(py)?.slots.queue.get(system)?;
    let batch = PyTuple::new(py, [&actor, events.as_any()])?;
    TurnNames::of(py)?.append.call1(&queue, batch.as_any())?;
    let chronicle = SystemNames::of(py)?.slots.chronicle.get(system)?;
    if !chronicle.is_none() {
        chronicle.call_method1(intern!(py, "comes"), (events,))?;
    }
    Ok(true)
}

// ------------------------------------------------------------------------------------------------ out

/// Do what a bound `Link.wake` does, if *wake* is one, a round is made here, and little waits; whether it is done.
pub fn wake_link(wake: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = wake.py();
    if MOMENT.with_borrow(Option::is_none) {
        return Ok(false);
    }
    let (names, hop) = (RoundNames::of(py)?, HopNames::of(py)?);
    let Some(link) = link_of(names, wake, &names.wake)? else { return Ok(false) };
    let slots = &names.slots;
    let session = slots.session.get(&link)?;
    let outbox = hop.session.outbox.get(&session)?;
    if !slots.idle.holds(&link)?
        || hop.outbox.said.holds(&outbox)?
        || hop.behind(&session)?
        || hop.stale.holds(&hop.session.backlog.get(&session)?)?
        || !is_direct(names, &slots.stream.get(&link)?)?
    {
        return Ok(false);
    }
    if !slots.flushing.holds(&link)? {
        slots.flushing.flag(&link, true)?;
        let system = names.system_of.get(&names.actor.get(&hop.session.facet.get(&session)?)?)?;
        let after = SystemNames::of(py)?.slots.after.get(&system)?;
        after.cast::<PyList>()?.append(bind(&names.flush, &link)?)?;
        if SystemNames::of(py)?.slots.parked.holds(&system)? {
            system.call_method0(intern!(py, "_awaken"))?;
        }
    }
    Ok(true)
}

/// Send what a slice of turns has said to the peer of a link: `Link._flush`.
fn flush<'py>(names: &RoundNames, link: &Bound<'py, PyAny>) -> PyResult<()> {
    let (py, slots, hop) = (link.py(), &names.slots, HopNames::of(link.py())?);
    let otherwise = || link.call_method0(intern!(py, "_flush")).map(|_| ());
    let session = slots.session.get(link)?;
    let outbox = hop.session.outbox.get(&session)?;
    let Ok(queue) = hop.outbox.queue.get(&outbox)?.cast_into::<PyList>() else { return otherwise() };
    if queue.len() != 1 || !slots.idle.holds(link)? || !slots.burdened.get(link)?.is_none() || hop.behind(&session)? {
        return otherwise();
    }
    let Ok(packet) = queue.get_item(0)?.cast_into_exact::<PyBytes>() else { return otherwise() };
    let size = packet.as_bytes().len();
    let Some(stream) = Plain::of(names, slots.stream.get(link)?, false)? else { return otherwise() };
    if size > names.chunk {
        return otherwise();
    }
    let Ok(sent @ 1..) = socket::write(stream.descriptor, packet.as_bytes()) else { return otherwise() };
    if size > 1 {
        stream.heard()?;
    }
    slots.flushing.flag(link, false)?;
    slots.said.set(link, time(slots.clock.get(link)?)?)?;
    queue.del_item(0)?;
    hop.outbox.bytes.add(&outbox, size as i64)?;
    hop.outbox.packets.add(&outbox, 1)?;
    hop.outbox.waiting.add(&outbox, -hop.outbox.flying.number(&outbox)?)?;
    if sent < size {
        hop.outbox.flying.put(&outbox, size as i64)?;
        slots.left.set(link, PyTuple::new(py, [PyBytes::new(py, &packet.as_bytes()[sent..])])?.into_any())?;
        return link.call_method0(intern!(py, "wait_to_write")).map(|_| ());
    }
    hop.outbox.waiting.add(&outbox, -(size as i64))?;
    hop.outbox.flying.put(&outbox, 0)
}

// ------------------------------------------------------------------------------------------------ what is idle

/// The limits of links, as the last one has them: all those of a server have the same.
struct Patience<'py> {
    limits: Bound<'py, PyAny>,
    idle: f64,
    insists: bool, // whether the peer has to say that it pings
}

impl<'py> Patience<'py> {
    fn of(limits: Bound<'py, PyAny>) -> PyResult<Patience<'py>> {
        let slots = &HopNames::of(limits.py())?.limits;
        let (idle, insists) = (slots.idle.get(&limits)?.extract()?, slots.liveness.holds(&limits)?);
        Ok(Patience { limits, idle, insists })
    }
}

/// When something will be due for a link that does nothing: `Link.look`.  `None` if Python is to look.
///
/// What an idle connection has is in no cache, so that each object which is looked at counts: of a link that dozes,
/// owes nothing and awaits no more of a packet, codec and intake are known to hold nothing.
fn look<'py>(
    names: &RoundNames,
    link: &Bound<'py, PyAny>,
    now: f64,
    patience: &mut Option<Patience<'py>>,
) -> PyResult<Option<f64>> {
    let (py, slots, hop) = (link.py(), &names.slots, HopNames::of(link.py())?);
    if !slots.dozes.holds(link)? || !slots.listening.holds(link)? || !slots.idle.holds(link)? {
        return Ok(None);
    }
    let number = |slot: &Slot| -> PyResult<f64> { slot.get(link)?.extract() };
    let (session, limits) = (slots.session.get(link)?, slots.limits.get(link)?);
    let patience = match patience {
        Some(known) if known.limits.is(&limits) => known,
        other => other.insert(Patience::of(limits)?),
    };
    let outbox = hop.session.outbox.get(&session)?;
    if patience.insists
        || !slots.patience.get(link)?.is(&names.never)
        || !slots.frame.get(link)?.is(&names.never)
        || !slots.burdened.get(link)?.is_none()
        || !slots.probed.get(link)?.is_none()
        || slots.owing.holds(link)?
        || slots.flushing.holds(link)?
        || slots.polled.number(link)? < 0
        || hop.outbox.waiting.number(&outbox)? > 0
        || hop.session.untrusted.holds(&session)?
        || hop.session.silent.holds(&session)?
        || hop.session.busy.holds(&session)?
    {
        return Ok(None);
    }
    let Some(stream) = Plain::of(names, slots.stream.get(link)?, true)? else { return Ok(None) };
    let taken = BUFFER.with_borrow_mut(|buffer| {
        buffer.resize(names.chunk, 0);
        match socket::read(stream.descriptor, buffer) {
            Ok(0) | Err(_) => None, // nothing; or the end, or an error, of which the poller is notified
            Ok(size) if names.only_pings(&buffer[..size]) => Some((size, None)),
            Ok(size) => Some((size, Some(PyBytes::new(py, &buffer[..size])))),
        }
    });
    let moment = || -> PyResult<Bound<'py, PyAny>> { Ok(now.into_pyobject(py)?.into_any()) };
    match taken {
        None => (),
        Some((size, None)) => {
            stream.count(size)?;
            hop.hear(&session, size)?;
            slots.heard.set(link, moment()?)?;
        }
        Some((_, Some(data))) => {
            stream.received(names, data.as_bytes())?;
            link.call_method1(intern!(py, "_feed"), (data,))?;
            return Ok(None);
        }
    }
    let silence = number(&slots.heard)? + patience.idle;
    let interval: f64 = hop.session.ping.get(&session)?.extract()?;
    let mut said = number(&slots.said)?;
    if now >= silence {
        return Ok(None);
    }
    if now >= said + interval {
        let Ok(1) = socket::write(stream.descriptor, &[names.ping]) else { return Ok(None) };
        hop.outbox.bytes.add(&outbox, 1)?;
        hop.outbox.packets.add(&outbox, 1)?;
        slots.said.set(link, moment()?)?;
        said = now;
    }
    Ok(Some(silence.min(said + interval)))
}

/// Ask those of *together* who are links that do nothing, and put each where it is asked next; returns the others.
#[pyfunction]
#[pyo3(signature = (deadlines, together, now, /))]
pub fn ask_idle<'py>(
    deadlines: Bound<'py, PyAny>,
    together: Bound<'py, PyDict>,
    now: f64,
) -> PyResult<Bound<'py, PyList>> {
    let py = deadlines.py();
    let others = PyList::empty(py);
    if !cfg!(unix) || current_turn::turn(py).is_some() {
        return Ok(together.keys());
    }
    let names = RoundNames::of(py)?;
    let slots = &names.slots;
    let rounds = deadlines.getattr(intern!(py, "_rounds"))?.cast_into::<PyDict>()?;
    let (mut patience, mut next) = (None, None::<(f64, Bound<'py, PyAny>, Bound<'py, PyDict>)>);
    for link in together.keys() {
        let due = match link.get_type().is(&names.link).then(|| look(names, &link, now, &mut patience)) {
            Some(Err(error)) if !error.is_instance_of::<PyException>(py) => return Err(error),
            Some(Ok(due)) => due,
            _ => None, // Python finds the error, too
        };
        let Some(due) = due else {
            others.append(link)?;
            continue;
        };
        let step: f64 = slots.step.get(&link)?.extract()?;
        let grain = f64::from_bits((step / names.grains).to_bits() & 0x7ff0_0000_0000_0000); // a power of two, at most that
        let time = (due.min(now + step) / grain).ceil() * grain;
        if next.as_ref().is_none_or(|(last, ..)| *last != time) {
            let key = time.into_pyobject(py)?.into_any();
            next = match rounds.get_item(&key)? {
                Some(table) => Some((time, key, table.cast_into()?)),
                None => None,
            };
        }
        match &next {
            Some((_, key, table)) => {
                slots.due.set(&link, key.clone())?;
                table.set_item(&link, py.None())?;
            }
            None => deadlines.call_method1(intern!(py, "add"), (&link, due, now)).map(|_| ())?,
        }
    }
    Ok(others)
}

// ------------------------------------------------------------------------------------------------ a round

/// The link whose *method* is bound here.
fn link_of<'py>(names: &RoundNames, bound: &Bound<'py, PyAny>, method: &Py<PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(bound_to(bound, method)?.filter(|owner| owner.get_type().is(&names.link)))
}

/// Read all that is ready, in no turn: `Poller.call`.
fn read<'py>(
    names: &RoundNames,
    poller: &Bound<'py, PyAny>,
    watched: &Bound<'py, PyDict>,
    system: &Bound<'py, PyAny>,
    ready: &[i32],
) -> PyResult<()> {
    let py = poller.py();
    for &descriptor in ready {
        let Some(entry) = watched.get_item(descriptor)? else { continue };
        let reader = entry.get_item(1)?;
        let usual = if reader.get_type().is(&names.link) { arrived(names, &reader, system) } else { Ok(false) };
        match usual {
            Ok(true) => (),
            Ok(false) => poller.call_method1(intern!(py, "call"), ([descriptor],)).map(|_| ())?,
            Err(error) if !error.is_instance_of::<PyException>(py) => return Err(error),
            Err(error) => poller.call_method1(intern!(py, "fail"), (descriptor, error.into_value(py))).map(|_| ())?,
        }
    }
    Ok(())
}

/// Do the calls of `System.after_slice`.
fn say<'py>(names: &RoundNames, system: &Bound<'py, PyAny>) -> PyResult<()> {
    let (py, slots) = (system.py(), &SystemNames::of(system.py())?.slots);
    let after = slots.after.get(system)?.cast_into::<PyList>()?;
    if after.is_empty() {
        return Ok(());
    }
    slots.after.set(system, PyList::empty(py).into_any())?;
    for call in after.iter() {
        match link_of(names, &call, &names.flush)? {
            Some(link) => flush(names, &link)?,
            None => call.call0().map(|_| ())?,
        }
    }
    Ok(())
}

/// Whether a system that is not at its end has nothing to do: the usual case of `System.parks`.
fn rests<'py>(names: &RoundNames, system: &Bound<'py, PyAny>) -> PyResult<bool> {
    let (py, slots) = (system.py(), &SystemNames::of(system.py())?.slots);
    if !slots.queue.get(system)?.is_empty()?
        || slots.after.holds(system)?
        || slots.quiet.holds(system)?
        || !slots.interrupt.get(system)?.is_none()
        || !slots.failure.get(system)?.is_none()
        || slots.signals.get(system)?.getattr(intern!(py, "noted"))?.is_truthy()?
    {
        return Ok(false);
    }
    let timers = slots.timers.get(system)?.cast_into::<PyList>()?;
    if !timers.is_empty() && timers.get_item(0)?.get_item(0)?.lt(slots.parked_until.get(system)?)? {
        return Ok(false);
    }
    if !slots.until_idle.holds(system)? {
        return Ok(true);
    }
    if slots.tasks.number(system)? <= 0 {
        return Ok(false);
    }
    for (actor, _) in slots.actors.get(system)?.cast_into::<PyDict>()?.iter() {
        if !names.daemon.holds(&actor)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A round: whether the pump goes on to wait, or `None` if this is not usual, and nothing was done.  What is to *look*
/// for more between pieces of long work is the poller's method.
fn round<'py>(
    poller: &Bound<'py, PyAny>,
    look: &Bound<'py, PyAny>,
    watched: &Bound<'py, PyDict>,
    ready: &[i32],
    moment: &mut Option<Moment>,
) -> PyResult<Option<bool>> {
    let py = poller.py();
    let names = RoundNames::of(py)?;
    let mut system: Option<Bound<'py, PyAny>> = None;
    for &descriptor in ready {
        let Some(entry) = watched.get_item(descriptor)? else { return Ok(None) };
        let each = entry.get_item(0)?;
        if !each.get_type().is(&SystemNames::of(py)?.class) || system.as_ref().is_some_and(|other| !other.is(&each)) {
            return Ok(None);
        }
        system = Some(each);
    }
    let Some(system) = system else { return Ok(None) };
    let slots = &SystemNames::of(py)?.slots;
    if !slots.parked.holds(&system)? {
        return Ok(None);
    }
    slots.parked.flag(&system, false)?;
    slots.inlet.set(&system, look.clone())?;
    MOMENT.set(Some(moment.take().unwrap_or_else(Moment::now)));
    let done = read(names, poller, watched, &system, ready)
        .and_then(|()| drain(&system, names.slice))
        .and_then(|()| say(names, &system));
    *moment = MOMENT.take();
    if let Err(error) = done {
        slots.interrupt.set(&system, error.into_value(py).into_bound(py).into_any())?;
    }
    slots.parked.flag(&system, true)?;
    Ok(Some(rests(names, &system)? || system.call_method0(intern!(py, "parks"))?.is_truthy()?))
}

/// Let those be called of whom something is *ready*, all of one system whose pump waits, and take the turns of that:
/// whether the pump goes on to wait.  `None` if they are not such, and nothing was done.
#[pyfunction]
#[pyo3(signature = (poller, watched, ready, /))]
pub fn make_round<'py>(
    poller: Bound<'py, PyAny>,
    watched: Bound<'py, PyDict>,
    ready: Vec<(i32, u32)>,
) -> PyResult<Option<bool>> {
    let py = poller.py();
    if !cfg!(unix) || current_turn::turn(py).is_some() {
        return Ok(None);
    }
    let descriptors = ready.iter().map(|&(descriptor, _)| descriptor).collect::<Vec<_>>();
    round(&poller, &poller.getattr(intern!(py, "look"))?, &watched, &descriptors, &mut None)
}

/// One round after the other, for *seconds* at most, as long as something comes and nobody else has anything to do; it is
/// waited for if *others* is the epoll object that trio waits for: whether that was done, and not left to Python.
#[pyfunction]
#[pyo3(signature = (poller, watched, number, others, seconds, /))]
pub fn make_rounds<'py>(
    poller: Bound<'py, PyAny>,
    watched: Bound<'py, PyDict>,
    number: i32,
    others: i32,
    seconds: f64,
) -> PyResult<bool> {
    let py = poller.py();
    if current_turn::turn(py).is_some() {
        return Ok(false);
    }
    let few = RoundNames::of(py)?.few;
    let gate: i32 = poller.getattr(intern!(py, "_gate"))?.extract()?;
    let due = poller.getattr(intern!(py, "_due"))?.cast_into::<PySet>()?;
    let (began, look) = (Instant::now(), poller.getattr(intern!(py, "look"))?);
    let (mut rounds, mut woken, mut wait) = (0, 0, 0.0);
    let (mut ready, mut crowd, mut moment) = (Vec::new(), Vec::new(), None);
    let done = loop {
        if !epoll::ready(py, number, epoll::MOST, wait, &mut ready) {
            break Ok(false);
        }
        let others_too = without(&mut ready, others);
        if without(&mut ready, gate) {
            if !epoll::ready(py, gate, few, 0.0, &mut crowd) {
                break Ok(false);
            }
            ready.append(&mut crowd); // behind all others
        }
        if ready.is_empty() {
            break Ok(true);
        }
        let done = match round(&poller, &look, &watched, &ready, &mut moment) {
            Ok(Some(done)) => {
                (rounds, woken) = (rounds + 1, woken + ready.len());
                Ok(done)
            }
            Ok(None) => look.call0().and_then(|done| done.is_truthy()),
            Err(error) => Err(error),
        };
        match done {
            Ok(true) if due.is_empty() && !others_too => {
                let left = seconds - began.elapsed().as_secs_f64();
                if left <= 0.0 {
                    break Ok(true);
                }
                wait = if others >= 0 { left } else { 0.0 };
            }
            Ok(_) => break Ok(true),
            Err(error) => break Err(error),
        }
    };
    for (name, more) in [(intern!(py, "rounds"), rounds), (intern!(py, "woken"), woken)] {
        poller.setattr(name, poller.getattr(name)?.extract::<usize>()? + more)?;
    }
    done
}

/// Take a number out of what is ready; whether it was there.
fn without(ready: &mut Vec<i32>, number: i32) -> bool {
    let place = ready.iter().position(|&each| each == number);
    if let Some(place) = place {
        ready.remove(place);
    }
    place.is_some()
}

#[cfg(target_os = "linux")]
mod epoll {
    use pyo3::prelude::*;
    use std::ffi::c_int;
    use std::io::{Error, ErrorKind};
    use std::mem::MaybeUninit;

    /// The most that are called in a round; the others are ready in the next.
    pub const MOST: usize = 256;

    /// The operating system's `epoll_event`: a descriptor is the first four bytes of its data.
    #[repr(C)]
    #[cfg_attr(target_arch = "x86_64", repr(packed))]
    #[derive(Clone, Copy)]
    struct Event {
        events: u32,
        data: [i32; 2],
    }

    extern "C" {
        fn epoll_wait(number: c_int, events: *mut Event, most: c_int, milliseconds: c_int) -> c_int;
    }

    /// List which of an epoll object's are ready, *most* and `MOST` at most, or become so within so many *seconds*; false
    /// where that cannot be done.
    pub fn ready(py: Python<'_>, number: i32, most: usize, seconds: f64, ready: &mut Vec<i32>) -> bool {
        let mut events = [const { MaybeUninit::<Event>::uninit() }; MOST];
        let mut wait = || {
            // SAFETY: the call writes so many events at most, and they outlive it.
            let count = unsafe {
                epoll_wait(number, events.as_mut_ptr().cast(), most.min(MOST) as c_int, (1000.0 * seconds).ceil() as c_int)
            };
            usize::try_from(count).map_err(|_| Error::last_os_error().kind())
        };
        let count = if seconds > 0.0 { py.detach(wait) } else { wait() };
        ready.clear();
        match count {
            // SAFETY: the call has written so many.
            Ok(count) => ready.extend(events[..count].iter().map(|event| unsafe { event.assume_init() }.data[0])),
            Err(ErrorKind::Interrupted) => (), // Python looks who has
            Err(_) => return false,
        }
        true
    }
}

#[cfg(not(target_os = "linux"))]
mod epoll {
    use pyo3::prelude::*;

    pub const MOST: usize = 0;

    pub fn ready(_: Python<'_>, _: i32, _: usize, _: f64, _: &mut Vec<i32>) -> bool {
        false
    }
}
