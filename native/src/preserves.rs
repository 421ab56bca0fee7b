//! Packets as binary Preserves, of the parts that nearly all of them have: `relay/protocol/codec/preserves.py` and
//! `preserves_encoding.py`.

use crate::frozen::{is_exactly, is_leaf, untrack};
use crate::packets::{self, text, Encoding, Most, Tagged, PARTS};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString, PyTuple, PyType};

const END: u8 = 0x84;
/// What a reference without caveats counts: its tag, a sequence, two numbers, an end.
const REFERENCE_NODES: usize = 5;

type Writer<'a, 'py> = packets::Writer<'a, 'py, Preserves>;
type Reader<'a, 'py> = packets::Reader<'a, 'py, Preserves>;

pub struct Preserves;

impl Encoding for Preserves {
    fn put<'py>(writer: &mut Writer<'_, 'py>, form: &Bound<'py, PyAny>, depth: usize) -> PyResult<Option<()>> {
        writer.put(form, depth)
    }

    fn value<'py>(reader: &mut Reader<'_, 'py>, py: Python<'py>, depth: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        reader.parts.reserve(PARTS);
        reader.value(py, depth)
    }
}

// ------------------------------------------------------------------------------------------------ out

/// The bytes of a packet; `None` if the codec has to look at it.
#[pyfunction]
#[pyo3(signature = (form, written, reference, nodes, levels, most, /))]
pub fn write_preserves<'py>(
    form: Bound<'py, PyAny>,
    written: Bound<'py, PyDict>,
    reference: Bound<'py, PyType>,
    nodes: usize,
    levels: usize,
    most: usize,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    packets::write::<Preserves>(&form, &written, &reference, Most { nodes, levels, bytes: most })
}

impl<'py> Writer<'_, 'py> {
    fn put(&mut self, form: &Bound<'py, PyAny>, depth: usize) -> PyResult<Option<()>> {
        if let Ok(items) = form.cast_exact::<PyTuple>() {
            return self.compound(items, depth);
        }
        if form.get_type().is(self.reference) {
            let Some(numbers) = self.numbers(form)? else { return Ok(None) };
            if !self.count(REFERENCE_NODES) {
                return Ok(None);
            }
            self.data.extend_from_slice(&[0x86, 0xB5]);
            numbers.into_iter().for_each(|number| self.integer(number));
            self.data.push(END);
            return Ok(Some(()));
        }
        if !self.count(1) {
            return Ok(None);
        }
        if let Ok(text) = form.cast_exact::<PyString>() {
            let Ok(text) = text.to_str() else { return Ok(None) };
            self.length(0xB1, text.len());
            self.leaf(form, text.as_bytes());
        } else if is_exactly(form, &self.names.symbol) {
            let Some(symbol) = self.written.get_item(form)? else { return Ok(None) };
            self.data.extend_from_slice(symbol.cast::<PyBytes>()?.as_bytes());
        } else if form.is_exact_instance_of::<PyInt>() {
            let Ok(number) = form.extract::<i64>() else { return Ok(None) };
            self.integer(number);
        } else if let Ok(data) = form.cast_exact::<PyBytes>() {
            let data = data.as_bytes();
            self.length(0xB2, data.len());
            self.leaf(form, data);
        } else {
            return Ok(None);
        }
        Ok(Some(()))
    }

    fn compound(&mut self, items: &Bound<'py, PyTuple>, depth: usize) -> PyResult<Option<()>> {
        let py = items.py();
        if items.is_empty() || !self.fits() {
            return Ok(None);
        }
        let head = items.get_borrowed_item(0)?;
        let sequence = head.is(&self.names.seq);
        if is_exactly(&head, &self.names.tag) && !sequence {
            if !self.count(1) {
                return Ok(None);
            }
            match self.tagged(items)? {
                Some(Tagged::Truth(is_true)) => self.data.push(if is_true { 0x81 } else { 0x80 }),
                Some(Tagged::MinusTwo) => self.integer(-2),
                Some(Tagged::Double(bytes)) => {
                    self.data.extend_from_slice(&[0x87, 8]);
                    self.data.extend_from_slice(&bytes);
                }
                None => return Ok(None),
            }
            return Ok(Some(()));
        }
        if depth >= self.levels || !self.count(2) {
            return Ok(None);
        }
        self.data.push(if sequence { 0xB5 } else { 0xB4 });
        for (place, item) in items.iter_borrowed().enumerate() {
            if place == 0 && item.is(self.names.seq.bind(py)) {
                continue;
            }
            if self.put(&item, depth + 1)?.is_none() {
                return Ok(None);
            }
        }
        self.data.push(END);
        Ok(Some(()))
    }

    /// The head of a text or of bytes.
    fn length(&mut self, tag: u8, mut size: usize) {
        self.data.push(tag);
        while size > 127 {
            self.data.push(size as u8 & 127 | 128);
            size >>= 7;
        }
        self.data.push(size as u8);
    }

    fn integer(&mut self, number: i64) {
        let bits = 64 - (if number < 0 { !number } else { number }).leading_zeros() as usize;
        let size = if number == 0 { 0 } else { bits / 8 + 1 };
        if size > 8 {
            self.data.extend_from_slice(&[0xB0, size as u8, if number < 0 { 0xFF } else { 0 }]);
            self.data.extend_from_slice(&number.to_be_bytes());
        } else {
            self.data.extend_from_slice(&[0xB0, size as u8]);
            self.data.extend_from_slice(&number.to_be_bytes()[8 - size..]);
        }
    }
}

// ------------------------------------------------------------------------------------------------ in

/// The packet in *data* that begins *at* a place, and where it ends; `None` if the codec has to look at it.
#[pyfunction]
#[pyo3(signature = (data, at, symbols, references, nodes, levels, most, /))]
pub fn read_preserves<'py>(
    data: Bound<'py, PyBytes>,
    at: usize,
    symbols: Bound<'py, PyDict>,
    references: Bound<'py, PyDict>,
    nodes: usize,
    levels: usize,
    most: usize,
) -> PyResult<Option<(Bound<'py, PyAny>, usize)>> {
    Ok(packets::read::<Preserves>(&data, at, &symbols, &references, Most { nodes, levels, bytes: most })?.whole())
}

impl<'a, 'py> Reader<'a, 'py> {
    /// The bytes after their length, which is in groups of seven bits, three at most.
    #[inline]
    fn counted(&mut self) -> Option<&'a [u8]> {
        let mut size = 0;
        for place in 0..3 {
            let byte = self.byte()?;
            size |= usize::from(byte & 127) << (7 * place);
            if byte < 128 {
                if byte == 0 && place > 0 {
                    return None;
                }
                return self.bytes(size);
            }
        }
        None
    }

    /// The next tag or end, which counts.
    #[inline]
    fn tag(&mut self) -> Option<u8> {
        self.nodes = self.nodes.checked_sub(1)?;
        self.byte()
    }

    fn number(&mut self) -> Option<i64> {
        let bytes = self.counted()?;
        if bytes.len() > 8 {
            return None;
        }
        let first = if bytes.first().is_some_and(|byte| byte & 128 != 0) { -1 } else { 0 };
        Some(bytes.iter().fold(first, |number, byte| number << 8 | i64::from(*byte)))
    }

    fn value(&mut self, py: Python<'py>, depth: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(tag) = self.tag() else { return Ok(None) };
        self.tagged(py, tag, depth)
    }

    fn tagged(&mut self, py: Python<'py>, tag: u8, depth: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match tag {
            0xB0 => {
                let number = self.number();
                return self.integer(py, number);
            }
            0xB1 => text(py, self.counted()),
            0xB2 => self.counted().map(|bytes| PyBytes::new(py, bytes).into_any()),
            0xB3 => match self.counted() {
                Some(name) => self.symbols.get_item(PyBytes::new(py, name))?,
                None => None,
            },
            0xB4 | 0xB5 => return self.compound(py, tag == 0xB5, depth),
            0x80 | 0x81 => Some(self.truth(py, tag == 0x81)),
            0x86 => return self.reference(py, depth),
            0x87 => {
                let bytes = self.counted();
                return self.double(py, bytes);
            }
            _ => None,
        })
    }

    fn compound(&mut self, py: Python<'py>, sequence: bool, depth: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        if depth >= self.levels {
            return Ok(None);
        }
        let first = self.parts.len();
        if sequence {
            self.parts.push(self.names.seq.bind(py).clone());
        }
        let mut leaves = true;
        loop {
            match self.tag() {
                None => return Ok(None),
                Some(END) => break,
                Some(tag) => {
                    let Some(part) = self.tagged(py, tag, depth + 1)? else { return Ok(None) };
                    leaves = leaves && is_leaf(self.names, &part);
                    self.parts.push(part);
                }
            }
        }
        if self.parts.len() == first {
            return Ok(None); // a record without a label
        }
        let form = PyTuple::new(py, self.parts.drain(first..))?.into_any();
        if leaves {
            // SAFETY: all its parts are leaves, and SEQ lasts as long as the program.
            unsafe { untrack(&form) };
        }
        Ok(Some(form))
    }

    /// A reference without caveats that the codec has seen before.
    fn reference(&mut self, py: Python<'py>, depth: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        if depth >= self.levels || self.tag() != Some(0xB5) {
            return Ok(None);
        }
        let mut numbers = [0; 2];
        for number in &mut numbers {
            match self.tag() {
                Some(0xB0) => match self.number() {
                    Some(read) => *number = read,
                    None => return Ok(None),
                },
                _ => return Ok(None),
            }
        }
        if self.tag() != Some(END) {
            return Ok(None);
        }
        self.references.get_item(PyTuple::new(py, numbers)?)
    }
}
