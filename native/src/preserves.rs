//! Packets as binary Preserves, of the parts that nearly all of them have: `relay/protocol/codec/preserves.py` and
//! `encoding.py`.
//!
//! As with msgpack, both functions give up with `None` on whatever is rare, wrong or beyond a limit.

use crate::frozen::{is_exactly, is_leaf, untrack, Names};
use crate::msgpack::{Most, Read, LEVELS, SMALL};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString, PyTuple, PyType};

const END: u8 = 0x84;
/// What a reference without caveats counts: its tag, a sequence, two numbers, an end.
const REFERENCE_NODES: usize = 5;

// ------------------------------------------------------------------------------------------------ out

struct Writer<'a, 'py> {
    names: &'a Names,
    written: &'a Bound<'py, PyDict>,
    reference: &'a Bound<'py, PyType>,
    nodes: usize,
    levels: usize,
    most: usize,
    data: Vec<u8>,
}

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
    write(&form, &written, &reference, Most { nodes, levels, bytes: most })
}

pub fn write<'py>(
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
        data: Vec::new(),
    };
    Ok(match writer.put(form, 0)? {
        Some(()) if writer.data.len() <= most.bytes => Some(PyBytes::new(py, &writer.data)),
        _ => None,
    })
}

impl<'py> Writer<'_, 'py> {
    fn put(&mut self, form: &Bound<'py, PyAny>, depth: usize) -> PyResult<Option<()>> {
        let py = form.py();
        if let Ok(items) = form.cast_exact::<PyTuple>() {
            return self.compound(items, depth);
        }
        if form.get_type().is(self.reference) {
            let caveats = form.getattr(intern!(py, "caveats"))?;
            if !caveats.cast::<PyTuple>()?.is_empty() || !self.count(REFERENCE_NODES) {
                return Ok(None);
            }
            self.data.extend_from_slice(&[0x86, 0xB5]);
            for name in [intern!(py, "whose"), intern!(py, "oid")] {
                let Ok(number) = form.getattr(name)?.extract::<i64>() else { return Ok(None) };
                self.integer(number);
            }
            self.data.push(END);
            return Ok(Some(()));
        }
        if !self.count(1) {
            return Ok(None);
        }
        if let Ok(text) = form.cast_exact::<PyString>() {
            let Ok(text) = text.to_str() else { return Ok(None) };
            self.counted(0xB1, text.as_bytes());
        } else if is_exactly(form, &self.names.symbol) {
            let Some(symbol) = self.written.get_item(form)? else { return Ok(None) };
            self.data.extend_from_slice(symbol.cast::<PyBytes>()?.as_bytes());
        } else if form.is_exact_instance_of::<PyInt>() {
            let Ok(number) = form.extract::<i64>() else { return Ok(None) };
            self.integer(number);
        } else if let Ok(data) = form.cast_exact::<PyBytes>() {
            self.counted(0xB2, data.as_bytes());
        } else {
            return Ok(None);
        }
        Ok(Some(()))
    }

    fn compound(&mut self, items: &Bound<'py, PyTuple>, depth: usize) -> PyResult<Option<()>> {
        let py = items.py();
        if items.is_empty() || self.data.len() > self.most {
            return Ok(None);
        }
        let head = items.get_borrowed_item(0)?;
        let sequence = head.is(&self.names.seq);
        if is_exactly(&head, &self.names.tag) && !sequence {
            if !self.count(1) {
                return Ok(None);
            }
            if items.is(&self.names.yes) || items.is(&self.names.no) {
                self.data.push(if items.is(&self.names.yes) { 0x81 } else { 0x80 });
            } else if items.is(&self.names.minus_two) {
                self.integer(-2);
            } else if head.is(&self.names.double) && items.len() == 2 {
                let number = items.get_item(1)?;
                let bytes = number.cast_exact::<PyBytes>()?.as_bytes();
                if bytes.len() != 8 {
                    return Ok(None);
                }
                self.counted(0x87, bytes);
            } else {
                return Ok(None); // a large integer, a set, a dictionary
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

    /// Whether so many more values are within the limit.
    fn count(&mut self, more: usize) -> bool {
        let within = more <= self.nodes;
        self.nodes = self.nodes.saturating_sub(more);
        within
    }

    fn counted(&mut self, tag: u8, data: &[u8]) {
        self.data.push(tag);
        let mut size = data.len();
        while size > 127 {
            self.data.push(size as u8 & 127 | 128);
            size >>= 7;
        }
        self.data.push(size as u8);
        self.data.extend_from_slice(data);
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

struct Reader<'a, 'py> {
    names: &'a Names,
    data: &'a [u8],
    at: usize,
    symbols: &'a Bound<'py, PyDict>,
    references: &'a Bound<'py, PyDict>,
    nodes: usize,
    levels: usize,
    /// The parts so far of all compounds that are open.
    parts: Vec<Bound<'py, PyAny>>,
    /// Whether there was not all that was to be read.
    short: bool,
}

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
    Ok(match read(&data, at, &symbols, &references, Most { nodes, levels, bytes: most })? {
        Read::Whole(form, end) => Some((form, end)),
        Read::Short | Read::Rare => None,
    })
}

pub fn read<'py>(
    data: &Bound<'py, PyBytes>,
    at: usize,
    symbols: &Bound<'py, PyDict>,
    references: &Bound<'py, PyDict>,
    most: Most,
) -> PyResult<Read<'py>> {
    let py = data.py();
    let mut reader = Reader {
        names: Names::of(py)?,
        data: data.as_bytes(),
        at,
        symbols,
        references,
        nodes: most.nodes,
        levels: most.levels.min(LEVELS),
        parts: Vec::new(),
        short: false,
    };
    Ok(match reader.value(py, 0)? {
        Some(form) if reader.at - at <= most.bytes => Read::Whole(form, reader.at),
        None if reader.short => Read::Short,
        _ => Read::Rare,
    })
}

impl<'a, 'py> Reader<'a, 'py> {
    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let Some(byte) = self.data.get(self.at) else {
            self.short = true;
            return None;
        };
        self.at += 1;
        Some(*byte)
    }

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
                let Some(bytes) = self.data.get(self.at..self.at.checked_add(size)?) else {
                    self.short = true;
                    return None;
                };
                self.at += size;
                return Some(bytes);
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
            0xB0 => match self.number() {
                Some(-2) => Some(self.names.minus_two.bind(py).clone()),
                Some(number) if -SMALL < number && number < SMALL => Some(number.into_pyobject(py)?.into_any()),
                _ => None,
            },
            0xB1 => {
                let text = self.counted().and_then(|bytes| std::str::from_utf8(bytes).ok());
                text.map(|text| PyString::new(py, text).into_any())
            }
            0xB2 => self.counted().map(|bytes| PyBytes::new(py, bytes).into_any()),
            0xB3 => match self.counted() {
                Some(name) => self.symbols.get_item(PyBytes::new(py, name))?,
                None => None,
            },
            0xB4 | 0xB5 => return self.compound(py, tag == 0xB5, depth),
            0x80 => Some(self.names.no.bind(py).clone()),
            0x81 => Some(self.names.yes.bind(py).clone()),
            0x86 => return self.reference(py, depth),
            0x87 => match self.counted() {
                Some(bytes) if bytes.len() == 8 => {
                    let bytes = PyBytes::new(py, bytes);
                    Some(self.names.double_of(&bytes)?)
                }
                _ => None,
            },
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
