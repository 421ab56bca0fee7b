//! Packets as msgpack, of the parts that nearly all of them have: `relay/protocol/codec/msgpack.py`.

use crate::frozen::{is_exactly, is_leaf, untrack, Names};
use crate::packets::{self, text, Encoding, Most, Read, Tagged};
use crate::object_slots::Slot;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString, PyTuple, PyType};

static REFERENCE_NAMES: PyOnceLock<ReferenceNames> = PyOnceLock::new();

/// Where a reference on the wire has its parts.
struct ReferenceNames {
    whose: Slot,
    oid: Slot,
    caveats: Slot,
}

pub const SYMBOL: u8 = 1;
pub const REFERENCE: u8 = 3;
/// How an array of keys and values begins: an extension of no bytes.
const DICTIONARY: [u8; 3] = [0xC7, 0, 5];
/// What a reference without caveats counts, besides itself.
pub const REFERENCE_NODES: usize = 3;

type Writer<'a, 'py> = packets::Writer<'a, 'py, Msgpack>;
type Reader<'a, 'py> = packets::Reader<'a, 'py, Msgpack>;

pub struct Msgpack;

impl Encoding for Msgpack {
    fn put<'py>(writer: &mut Writer<'_, 'py>, form: &Bound<'py, PyAny>, depth: usize) -> PyResult<Option<()>> {
        writer.put(form, depth)
    }

    fn value<'py>(reader: &mut Reader<'_, 'py>, py: Python<'py>, depth: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        reader.value(py, depth)
    }
}

// ------------------------------------------------------------------------------------------------ out

/// The bytes of a packet; `None` if the codec has to look at it.
#[pyfunction]
#[pyo3(signature = (form, written, reference, nodes, levels, most, /))]
pub fn write_msgpack<'py>(
    form: Bound<'py, PyAny>,
    written: Bound<'py, PyDict>,
    reference: Bound<'py, PyType>,
    nodes: usize,
    levels: usize,
    most: usize,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    packets::write::<Msgpack>(&form, &written, &reference, Most { nodes, levels, bytes: most })
}

impl<'py> Writer<'_, 'py> {
    fn put(&mut self, form: &Bound<'py, PyAny>, depth: usize) -> PyResult<Option<()>> {
        if let Ok(text) = form.cast_exact::<PyString>() {
            let Ok(text) = text.to_str() else { return Ok(None) };
            let size = text.len();
            match size {
                0..=31 => self.data.push(0xA0 | size as u8),
                _ => self.length(0xD9, size),
            }
            self.leaf(form, text.as_bytes());
        } else if is_exactly(form, &self.names.symbol) {
            let Some(extension) = self.written.get_item(form)? else { return Ok(None) };
            let name = extension.cast::<PyTuple>()?.get_item(1)?;
            self.extension(SYMBOL, name.cast::<PyBytes>()?.as_bytes());
        } else if form.is_exact_instance_of::<PyInt>() {
            let Ok(number) = form.extract::<i64>() else { return Ok(None) };
            integer(&mut self.data, number);
        } else if let Ok(data) = form.cast_exact::<PyBytes>() {
            let data = data.as_bytes();
            self.length(0xC4, data.len());
            self.leaf(form, data);
        } else if let Ok(items) = form.cast_exact::<PyTuple>() {
            return self.array(items, depth);
        } else if form.get_type().is(self.reference) {
            let Some(numbers) = self.numbers(form)? else { return Ok(None) };
            if !self.count(REFERENCE_NODES) {
                return Ok(None);
            }
            let mut data = vec![0x92];
            numbers.into_iter().for_each(|number| integer(&mut data, number));
            self.extension(REFERENCE, &data);
        } else {
            return Ok(None);
        }
        Ok(Some(()))
    }

    fn array(&mut self, items: &Bound<'py, PyTuple>, depth: usize) -> PyResult<Option<()>> {
        let py = items.py();
        let size = items.len();
        if size == 0 || depth >= self.levels || !self.fits() || !self.count(size) {
            return Ok(None);
        }
        let head = items.get_borrowed_item(0)?;
        if is_exactly(&head, &self.names.tag) && !head.is(&self.names.seq) {
            match self.tagged(items)? {
                Some(Tagged::Truth(is_true)) => self.data.push(if is_true { 0xC3 } else { 0xC2 }),
                Some(Tagged::MinusTwo) => self.data.push(0xFE),
                Some(Tagged::Double(bytes)) => {
                    self.data.push(0xCB);
                    self.data.extend_from_slice(&bytes);
                }
                None => return Ok(None),
            }
            return Ok(Some(()));
        }
        match size {
            0..=15 => self.data.push(0x90 | size as u8),
            16..=0xFFFF => {
                self.data.push(0xDC);
                self.data.extend_from_slice(&(size as u16).to_be_bytes());
            }
            _ => {
                self.data.push(0xDD);
                self.data.extend_from_slice(&(size as u32).to_be_bytes());
            }
        }
        for (place, item) in items.iter_borrowed().enumerate() {
            if place == 0 && item.is(self.names.seq.bind(py)) {
                self.data.push(0xC0);
            } else if self.put(&item, depth + 1)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    /// The head of a string or of bytes, of which *first* begins the one with a length of one byte.
    fn length(&mut self, first: u8, size: usize) {
        if let Ok(size) = u8::try_from(size) {
            self.data.extend_from_slice(&[first, size]);
        } else if let Ok(size) = u16::try_from(size) {
            self.data.push(first + 1);
            self.data.extend_from_slice(&size.to_be_bytes());
        } else {
            self.data.push(first + 2);
            self.data.extend_from_slice(&(size as u32).to_be_bytes());
        }
    }

    fn extension(&mut self, code: u8, data: &[u8]) {
        match data.len() {
            size @ (1 | 2 | 4 | 8 | 16) => self.data.push(0xD4 + size.trailing_zeros() as u8),
            size => self.length(0xC7, size),
        }
        self.data.push(code);
        self.data.extend_from_slice(data);
    }
}

fn integer(data: &mut Vec<u8>, number: i64) {
    if (-32..128).contains(&number) {
        data.push(number as u8);
    } else if number >= 0 {
        if let Ok(number) = u8::try_from(number) {
            data.extend_from_slice(&[0xCC, number]);
        } else if let Ok(number) = u16::try_from(number) {
            data.push(0xCD);
            data.extend_from_slice(&number.to_be_bytes());
        } else if let Ok(number) = u32::try_from(number) {
            data.push(0xCE);
            data.extend_from_slice(&number.to_be_bytes());
        } else {
            data.push(0xCF);
            data.extend_from_slice(&number.to_be_bytes());
        }
    } else if let Ok(number) = i8::try_from(number) {
        data.extend_from_slice(&[0xD0, number as u8]);
    } else if let Ok(number) = i16::try_from(number) {
        data.push(0xD1);
        data.extend_from_slice(&number.to_be_bytes());
    } else if let Ok(number) = i32::try_from(number) {
        data.push(0xD2);
        data.extend_from_slice(&number.to_be_bytes());
    } else {
        data.push(0xD3);
        data.extend_from_slice(&number.to_be_bytes());
    }
}

// ------------------------------------------------------------------------------------------------ in

/// The packet in *data* that begins *at* a place, and where it ends; nothing if its bytes have not all come, and `None`
/// if the codec has to look at it.
#[pyfunction]
#[pyo3(signature = (data, at, symbols, references, nodes, levels, most, /))]
pub fn read_msgpack<'py>(
    data: Bound<'py, PyBytes>,
    at: usize,
    symbols: Bound<'py, PyDict>,
    references: Bound<'py, PyDict>,
    nodes: usize,
    levels: usize,
    most: usize,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let py = data.py();
    Ok(match packets::read::<Msgpack>(&data, at, &symbols, &references, Most { nodes, levels, bytes: most })? {
        Read::Whole(form, end) => Some((form, end).into_pyobject(py)?),
        Read::Short => Some(PyTuple::empty(py)),
        Read::Rare => None,
    })
}

/// So many values, one after the other, of an array of a packet, the first of which begins *at* a place in *data*; where
/// the last ends, and how many *nodes* are left.  Nothing if their bytes have not all come, and `None` if the codec has to
/// look at them.
#[pyfunction]
#[pyo3(signature = (data, at, count, symbols, references, nodes, levels, /))]
pub fn read_items<'py>(
    data: Bound<'py, PyBytes>,
    at: usize,
    count: usize,
    symbols: Bound<'py, PyDict>,
    references: Bound<'py, PyDict>,
    nodes: usize,
    levels: usize,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let py = data.py();
    let most = Most { nodes, levels, bytes: 0 };
    let mut reader = Reader::new(Names::of(py)?, data.as_bytes(), at, &symbols, &references, most);
    let mut items = Vec::with_capacity(count.min(nodes));
    for _ in 0..count {
        match reader.value(py, 1)? {
            Some(item) => items.push(item),
            None if reader.short => return Ok(Some(PyTuple::empty(py))),
            None => return Ok(None),
        }
    }
    Ok(Some((PyTuple::new(py, items)?, reader.at, reader.nodes).into_pyobject(py)?))
}

/// How many items the long array has whose head is *at* a place; `None` if there is none, or not all of its head.
pub fn items(data: &[u8], at: usize) -> Option<usize> {
    match *data.get(at..)? {
        [0xDC, one, two, ..] => Some(usize::from(u16::from_be_bytes([one, two]))),
        [0xDD, one, two, three, four, ..] => Some(u32::from_be_bytes([one, two, three, four]) as usize),
        _ => None,
    }
}

/// A reference without caveats, as all encoders write it; `None` for any other.
fn reference<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (whose, oid) = match bytes {
        [0x92, whose @ 0..=1, oid @ 0..=0x7F] => (whose, u32::from(*oid)),
        [0x92, whose @ 0..=1, 0xCC, oid] => (whose, u32::from(*oid)),
        [0x92, whose @ 0..=1, 0xCD, high, low] => (whose, u32::from(u16::from_be_bytes([*high, *low]))),
        [0x92, whose @ 0..=1, 0xCE, oid @ ..] if oid.len() == 4 => {
            (whose, oid.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
        }
        _ => return Ok(None),
    };
    let names = REFERENCE_NAMES.get_or_try_init(py, || -> PyResult<_> {
        let class = py.import("relay.protocol.packets")?.getattr("WireRef")?.cast_into::<PyType>()?;
        let slot = |name| Slot::of(&class, name);
        Ok(ReferenceNames { whose: slot("whose")?, oid: slot("oid")?, caveats: slot("caveats")? })
    })?;
    let reference = names.oid.allocate(py)?;
    names.whose.set(&reference, whose.into_pyobject(py)?.to_owned().into_any())?;
    names.oid.set(&reference, oid.into_pyobject(py)?.into_any())?;
    names.caveats.set(&reference, PyTuple::empty(py).into_any())?;
    Ok(Some(reference))
}

impl<'py> Reader<'_, 'py> {
    #[inline]
    fn number(&mut self, size: usize) -> Option<u64> {
        Some(self.bytes(size)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn value(&mut self, py: Python<'py>, depth: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(tag) = self.byte() else { return Ok(None) };
        let form = match tag {
            0x00..=0x7F | 0xE0..=0xFF => return self.integer(py, Some(i64::from(tag as i8))),
            0x90..=0x9F => return self.array(py, usize::from(tag & 15), depth),
            0xDC | 0xDD => match self.number(if tag == 0xDC { 2 } else { 4 }) {
                Some(size) => return self.array(py, size as usize, depth),
                None => None,
            },
            0xA0..=0xBF => text(py, self.bytes(usize::from(tag & 31))),
            0xD9..=0xDB => {
                let size = self.number(1 << (tag - 0xD9));
                text(py, size.and_then(|size| self.bytes(size as usize)))
            }
            0xC4..=0xC6 => {
                let size = self.number(1 << (tag - 0xC4));
                let bytes = size.and_then(|size| self.bytes(size as usize));
                bytes.map(|bytes| PyBytes::new(py, bytes).into_any())
            }
            0xC2 | 0xC3 => Some(self.truth(py, tag == 0xC3)),
            0xCB => {
                let bytes = self.bytes(8);
                return self.double(py, bytes);
            }
            0xCC..=0xCF => {
                let number = self.number(1 << (tag - 0xCC)).and_then(|number| i64::try_from(number).ok());
                return self.integer(py, number);
            }
            0xD0..=0xD3 => {
                let size = 1 << (tag - 0xD0);
                let shift = 64 - 8 * size as u32;
                let number = self.number(size).map(|number| (number << shift) as i64 >> shift);
                return self.integer(py, number);
            }
            0xD4..=0xD8 => return self.extension(py, 1 << (tag - 0xD4)),
            0xC7..=0xC9 => match self.number(1 << (tag - 0xC7)) {
                Some(size) => return self.extension(py, size as usize),
                None => None,
            },
            _ => None, // nil in another place than the first, and what is no part of this encoding
        };
        Ok(form)
    }

    /// A symbol that the codec has seen before, or a reference without caveats.
    fn extension(&mut self, py: Python<'py>, size: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(code) = self.number(1) else { return Ok(None) };
        let Some(bytes) = self.bytes(size) else { return Ok(None) };
        match code as u8 {
            SYMBOL => self.symbols.get_item(PyBytes::new(py, bytes)),
            REFERENCE => {
                let Some(left) = self.nodes.checked_sub(REFERENCE_NODES) else { return Ok(None) };
                self.nodes = left;
                match self.references.get_item(PyBytes::new(py, bytes))? {
                    None => reference(py, bytes),
                    known => Ok(known),
                }
            }
            _ => Ok(None),
        }
    }

    fn array(&mut self, py: Python<'py>, size: usize, depth: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        if size == 0 || depth >= self.levels || size > self.nodes {
            return Ok(None);
        }
        self.nodes -= size;
        if self.data.get(self.at..).is_some_and(|data| data.starts_with(&DICTIONARY)) {
            self.at += DICTIONARY.len();
            return self.dictionary(py, size - 1, depth);
        }
        let mut leaves = true;
        // SAFETY: a tuple of this length, of which each place is filled before anybody else sees it; where that fails
        // it is released, and its empty places with it.
        unsafe {
            let form = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(size as isize))?;
            for place in 0..size {
                let part = if place == 0 && self.data.get(self.at) == Some(&0xC0) {
                    self.at += 1;
                    self.names.seq.bind(py).clone()
                } else {
                    let Some(part) = self.value(py, depth + 1)? else { return Ok(None) };
                    leaves = leaves && is_leaf(self.names, &part);
                    part
                };
                ffi::PyTuple_SET_ITEM(form.as_ptr(), place as isize, part.into_ptr());
            }
            if leaves {
                untrack(&form);
            }
            Ok(Some(form))
        }
    }

    /// A dictionary of so many keys and values together, if they are few.
    fn dictionary(&mut self, py: Python<'py>, size: usize, depth: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        if size % 2 != 0 || size > packets::FEW {
            return Ok(None);
        }
        let mut pairs = Vec::with_capacity(size / 2);
        for _ in 0..size / 2 {
            let Some(key) = self.value(py, depth + 1)? else { return Ok(None) };
            let Some(value) = self.value(py, depth + 1)? else { return Ok(None) };
            pairs.push((key, value));
        }
        packets::dictionary(self.names, py, pairs)
    }
}
