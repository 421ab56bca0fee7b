//! What both encodings of packets have in common: what they are read from and written to, their limits, and the atoms.
//!
//! Reading and writing give up, with `None`, on whatever is rare, wrong or beyond a limit: then the codec itself reads or
//! writes that packet, and says what is wrong with it.  Nothing is built before it is counted.

use crate::frozen::{is_exactly, is_leaf, untrack, Names};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString, PyTuple, PyType};
use std::marker::PhantomData;

/// Levels that are read and written here, whatever the limits allow: each takes a piece of the stack.
const LEVELS: usize = 64;
/// The bytes that nearly all packets fit in, and the parts: room for them is made at once.
const ROOM: usize = 256;
pub const PARTS: usize = 16;
/// The bytes from which on a text, or bytes, are copied once only: into the packet itself, when all of it is known.
const LARGE: usize = 1 << 12;
/// The first integer that has no hash of its own: 2**61 - 1.
const SMALL: i64 = (1 << 61) - 1;

/// The most keys and values of a dictionary that is read here; Python asks for it (`relay.protocol.codec.preserves_encoding`).
pub const FEW: usize = 16;

/// What a packet may have at most: values, levels of them, and bytes.
#[derive(Clone, Copy)]
pub struct Most {
    pub nodes: usize,
    pub levels: usize,
    pub bytes: usize,
}

/// One of the encodings.
pub trait Encoding: Sized {
    /// Write a part of a packet.
    fn put<'py>(writer: &mut Writer<'_, 'py, Self>, form: &Bound<'py, PyAny>, depth: usize) -> PyResult<Option<()>>;

    /// Read a part of a packet.
    fn value<'py>(
        reader: &mut Reader<'_, 'py, Self>,
        py: Python<'py>,
        depth: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>>;
}

// ------------------------------------------------------------------------------------------------ out

pub struct Writer<'a, 'py, E> {
    pub names: &'a Names,
    /// Symbols as they are written.
    pub written: &'a Bound<'py, PyDict>,
    pub reference: &'a Bound<'py, PyType>,
    nodes: usize,
    pub levels: usize,
    pub most: usize,
    pub data: Vec<u8>,
    /// What is large, each with its place among the `data`; so many bytes in all.
    large: Vec<(usize, Bound<'py, PyAny>)>,
    size: usize,
    encoding: PhantomData<E>,
}

/// The bytes of a packet; `None` if the codec has to look at it.
pub fn write<'py, E: Encoding>(
    form: &Bound<'py, PyAny>,
    written: &Bound<'py, PyDict>,
    reference: &Bound<'py, PyType>,
    most: Most,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let py = form.py();
    let mut writer = Writer {
        names: Names::of(py)?,
        written,
        reference,
        nodes: most.nodes,
        levels: most.levels.min(LEVELS),
        most: most.bytes,
        data: Vec::with_capacity(ROOM),
        large: Vec::new(),
        size: 0,
        encoding: PhantomData,
    };
    match E::put(&mut writer, form, 0)? {
        Some(()) if writer.fits() => writer.packet(py).map(Some),
        _ => Ok(None),
    }
}

/// The bytes of a text that has an encoding, or of bytes.
fn bytes_of<'a>(leaf: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    match leaf.cast_exact::<PyString>() {
        Ok(text) => Ok(text.to_str()?.as_bytes()),
        Err(_) => Ok(leaf.cast::<PyBytes>()?.as_bytes()),
    }
}

impl<'py, E> Writer<'_, 'py, E> {
    /// Whether what is written so far is within the limit.
    pub fn fits(&self) -> bool {
        self.data.len() + self.size <= self.most
    }

    /// Write what *leaf*, a text or bytes, holds: these *bytes*.
    pub fn leaf(&mut self, leaf: &Bound<'py, PyAny>, bytes: &[u8]) {
        if bytes.len() < LARGE {
            self.data.extend_from_slice(bytes);
        } else {
            self.large.push((self.data.len(), leaf.clone()));
            self.size += bytes.len();
        }
    }

    /// The bytes of all that is written.
    fn packet(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        if self.large.is_empty() {
            return Ok(PyBytes::new(py, &self.data));
        }
        PyBytes::new_with(py, self.data.len() + self.size, |packet| {
            let (mut rest, mut from) = (packet, 0);
            let mut put = |bytes: &[u8]| {
                let (first, last) = std::mem::take(&mut rest).split_at_mut(bytes.len());
                first.copy_from_slice(bytes);
                rest = last;
            };
            for (place, leaf) in &self.large {
                put(&self.data[from..*place]);
                put(bytes_of(leaf)?);
                from = *place;
            }
            put(&self.data[from..]);
            Ok(())
        })
    }

    /// Whether so many more values are within the limit.
    pub fn count(&mut self, more: usize) -> bool {
        let within = more <= self.nodes;
        self.nodes = self.nodes.saturating_sub(more);
        within
    }

    /// Whose a reference is, and its number; `None` if it has caveats.
    pub fn numbers(&self, reference: &Bound<'py, PyAny>) -> PyResult<Option<[i64; 2]>> {
        let py = reference.py();
        if !reference.getattr(intern!(py, "caveats"))?.cast::<PyTuple>()?.is_empty() {
            return Ok(None);
        }
        let mut numbers = [0; 2];
        for (place, name) in numbers.iter_mut().zip([intern!(py, "whose"), intern!(py, "oid")]) {
            let Ok(number) = reference.getattr(name)?.extract::<i64>() else { return Ok(None) };
            *place = number;
        }
        Ok(Some(numbers))
    }

    /// What a form is that begins with a tag, and is no sequence: one of these atoms, or rare.
    pub fn tagged(&self, form: &Bound<'py, PyTuple>) -> PyResult<Option<Tagged>> {
        let names = self.names;
        if form.is(&names.yes) || form.is(&names.no) {
            return Ok(Some(Tagged::Truth(form.is(&names.yes))));
        }
        if form.is(&names.minus_two) {
            return Ok(Some(Tagged::MinusTwo));
        }
        if form.len() == 2 && form.get_borrowed_item(0)?.is(&names.double) {
            let number = form.get_item(1)?;
            return Ok(number.cast_exact::<PyBytes>()?.as_bytes().try_into().ok().map(Tagged::Double));
        }
        Ok(None) // a large integer, a set, a dictionary
    }
}

pub enum Tagged {
    Truth(bool),
    MinusTwo,
    Double([u8; 8]),
}

// ------------------------------------------------------------------------------------------------ in

pub struct Reader<'a, 'py, E> {
    pub names: &'a Names,
    pub data: &'a [u8],
    pub at: usize,
    /// Symbols and references that the codec has seen before.
    pub symbols: &'a Bound<'py, PyDict>,
    pub references: &'a Bound<'py, PyDict>,
    pub nodes: usize,
    pub levels: usize,
    /// The parts so far of all compounds that are open, where their number is not said before.
    pub parts: Vec<Bound<'py, PyAny>>,
    /// Whether there was not all that was to be read.
    pub short: bool,
    encoding: PhantomData<E>,
}

/// A packet and where it ends; one whose bytes have not all come; one that the codec has to look at.
pub enum Read<'py> {
    Whole(Bound<'py, PyAny>, usize),
    Short,
    Rare,
}

impl<'py> Read<'py> {
    /// The packet, if it is there.
    pub fn whole(self) -> Option<(Bound<'py, PyAny>, usize)> {
        match self {
            Read::Whole(form, end) => Some((form, end)),
            Read::Short | Read::Rare => None,
        }
    }
}

/// The packet in *data* that begins *at* a place.
pub fn read<'py, E: Encoding>(
    data: &Bound<'py, PyBytes>,
    at: usize,
    symbols: &Bound<'py, PyDict>,
    references: &Bound<'py, PyDict>,
    most: Most,
) -> PyResult<Read<'py>> {
    let py = data.py();
    let mut reader = Reader::new(Names::of(py)?, data.as_bytes(), at, symbols, references, most);
    Ok(match E::value(&mut reader, py, 0)? {
        Some(form) if reader.at - at <= most.bytes => Read::Whole(form, reader.at),
        None if reader.short => Read::Short,
        _ => Read::Rare,
    })
}

impl<'a, 'py, E> Reader<'a, 'py, E> {
    pub fn new(
        names: &'a Names,
        data: &'a [u8],
        at: usize,
        symbols: &'a Bound<'py, PyDict>,
        references: &'a Bound<'py, PyDict>,
        most: Most,
    ) -> Self {
        let (nodes, levels) = (most.nodes, most.levels.min(LEVELS));
        Reader { names, data, at, symbols, references, nodes, levels, parts: Vec::new(), short: false, encoding: PhantomData }
    }

    #[inline]
    pub fn bytes(&mut self, size: usize) -> Option<&'a [u8]> {
        let Some(bytes) = self.data.get(self.at..self.at.checked_add(size)?) else {
            self.short = true;
            return None;
        };
        self.at += size;
        Some(bytes)
    }

    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        let Some(byte) = self.data.get(self.at) else {
            self.short = true;
            return None;
        };
        self.at += 1;
        Some(*byte)
    }

    pub fn integer(&self, py: Python<'py>, number: Option<i64>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match number {
            Some(-2) => Some(self.names.minus_two.bind(py).clone()),
            Some(number) if -SMALL < number && number < SMALL => Some(number.into_pyobject(py)?.into_any()),
            _ => None,
        })
    }

    pub fn truth(&self, py: Python<'py>, is_true: bool) -> Bound<'py, PyAny> {
        if is_true { self.names.yes.bind(py).clone() } else { self.names.no.bind(py).clone() }
    }

    pub fn double(&self, py: Python<'py>, bytes: Option<&[u8]>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match bytes {
            Some(bytes) if bytes.len() == 8 => self.names.double_of(&PyBytes::new(py, bytes)).map(Some),
            _ => Ok(None),
        }
    }
}

/// The frozen form of a dictionary whose keys are all symbols, all strings or all integers; `None` for others, and where
/// one is there twice.
pub fn dictionary<'py>(
    names: &Names,
    py: Python<'py>,
    pairs: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut sorted = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        let place = if is_exactly(&key, &names.symbol) {
            let name = key.getattr(intern!(py, "name"))?;
            Place::Symbol(name.cast::<PyString>()?.to_str()?.to_owned())
        } else if let Ok(text) = key.cast_exact::<PyString>() {
            Place::Text(text.to_str()?.to_owned())
        } else if key.is_exact_instance_of::<PyInt>() {
            Place::Number(key.extract()?)
        } else {
            return Ok(None);
        };
        sorted.push((place, key, value));
    }
    sorted.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    for both in sorted.windows(2) {
        if both[0].0 == both[1].0 || std::mem::discriminant(&both[0].0) != std::mem::discriminant(&both[1].0) {
            return Ok(None);
        }
    }
    let keys = PyTuple::new(py, sorted.iter().map(|(_, key, _)| key))?.into_any();
    let leaves = sorted.iter().all(|(.., value)| is_leaf(names, value));
    let values = PyTuple::new(py, sorted.iter().map(|(.., value)| value))?.into_any();
    let form = PyTuple::new(py, [names.dict.bind(py), &keys, &values])?.into_any();
    // SAFETY: keys are atoms; the others are taken from the list only if their parts are leaves.
    unsafe {
        untrack(&keys);
        if leaves {
            untrack(&values);
            untrack(&form);
        }
    }
    Ok(Some(form))
}

/// Where a key is in a dictionary.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Number(i64),
    Text(String),
    Symbol(String),
}

/// A string; `None` if that is no UTF-8.
pub fn text<'py>(py: Python<'py>, bytes: Option<&[u8]>) -> Option<Bound<'py, PyAny>> {
    let bytes = bytes?;
    // SAFETY: so many bytes are read, and what is returned is owned, or null with an exception.
    unsafe {
        let text = ffi::PyUnicode_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as isize);
        Bound::from_owned_ptr_or_err(py, text).ok()
    }
}
