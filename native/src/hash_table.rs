//! Hash tables of numbers of rows: open addressing, a slot is eight bytes, and rows lie elsewhere, one after the other.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

pub type Word = u64;

static SEED: OnceLock<(u64, u64)> = OnceLock::new();

/// Two odd numbers of this process, so that nobody outside can prepare rows whose hashes meet.
#[inline]
fn seed() -> (u64, u64) {
    *SEED.get_or_init(|| {
        let state = RandomState::new();
        let number = |n: u64| {
            let mut hasher = state.build_hasher();
            hasher.write_u64(n);
            hasher.finish() | 1
        };
        (number(1), number(2))
    })
}

/// The hash of a row: each word is multiplied to 128 bits and folded, with a secret of this process.
#[inline]
pub fn hash(words: &[Word]) -> u64 {
    let (first, second) = seed();
    let mut mixed = first;
    for &word in words {
        let product = u128::from(mixed ^ word) * u128::from(second);
        mixed = (product as u64) ^ ((product >> 64) as u64) ^ first.rotate_left(23);
    }
    let product = u128::from(mixed) * u128::from(first);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Whether two rows are equal: a few words, for which a call of another function would be too much.
#[inline]
pub fn same(one: &[Word], other: &[Word]) -> bool {
    one.iter().zip(other).all(|(one, other)| one == other)
}

/// Ask for what will be read soon: many such reads under way at once cost little more than one.
#[inline]
pub fn prefetch<T>(all: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if at < all.len() {
        // SAFETY: a hint about a place within the slice.
        unsafe { std::arch::x86_64::_mm_prefetch(all.as_ptr().add(at).cast(), std::arch::x86_64::_MM_HINT_T0) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (all, at);
}

/// So many rows are looked up at once.
pub const BLOCK: usize = 32;

/// No row.
pub const NONE: u32 = u32::MAX;

/// Numbers of rows by the hash of the row.
///
/// Half of the hash is beside the number, so that rows that are others are seldom looked at, and none when slots move.
#[derive(Default)]
pub struct Slots {
    slots: Vec<u64>, // half of a hash, and a number and one, or 0
    used: usize,
}

impl Slots {
    pub fn with_room(rows: usize) -> Slots {
        let mut slots = Slots::default();
        slots.resize(rows);
        slots
    }

    pub fn len(&self) -> usize {
        self.used
    }

    #[inline]
    fn place(&self, hash: u64) -> usize {
        hash as usize & self.slots.len().wrapping_sub(1)
    }

    /// The row with this hash that is the same.
    #[inline]
    pub fn find(&self, hash: u64, same: impl Fn(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let half = hash as u32;
        let mut at = half as usize & mask;
        loop {
            match self.slots[at] {
                0 => return None,
                slot if (slot >> 32) as u32 == half && same(slot as u32 - 1) => return Some(slot as u32 - 1),
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// Put in a row that is not there.
    #[inline]
    pub fn insert(&mut self, hash: u64, row: u32) {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.resize(self.used * 2 + 4);
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as u32 as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = hash << 32 | u64::from(row + 1);
        self.used += 1;
    }

    fn room(rows: usize) -> usize {
        (rows * 4 / 3 + 1).next_power_of_two().max(8)
    }

    /// Have no more room than is needed, where no more rows come soon.
    fn fit(&mut self) {
        if Slots::room(self.used) < self.slots.len() {
            self.resize(self.used);
        }
    }

    fn resize(&mut self, rows: usize) {
        let room = Slots::room(rows);
        let old = std::mem::replace(&mut self.slots, vec![0; room]);
        let mask = room - 1;
        for slot in old {
            if slot != 0 {
                let mut at = (slot >> 32) as usize & mask;
                while self.slots[at] != 0 {
                    at = (at + 1) & mask;
                }
                self.slots[at] = slot;
            }
        }
    }

    /// Take out a row that is there: what follows it moves up, so that no mark is left.
    pub fn remove(&mut self, hash: u64, row: u32) {
        let mask = self.slots.len() - 1;
        let mut at = hash as u32 as usize & mask;
        while self.slots[at] as u32 != row + 1 {
            if self.slots[at] == 0 {
                return;
            }
            at = (at + 1) & mask;
        }
        self.used -= 1;
        let mut next = at;
        loop {
            next = (next + 1) & mask;
            let slot = self.slots[next];
            if slot == 0 {
                break;
            }
            let home = (slot >> 32) as usize & mask;
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(at) & mask) {
                self.slots[at] = slot;
                at = next;
            }
        }
        self.slots[at] = 0;
    }
}

/// Rows found by their first words; what is beside these, in the same row, is the owner's.
#[derive(Default)]
pub struct Set {
    pub width: usize,
    pub stride: usize,
    pub rows: Vec<Word>,
    pub slots: Slots,
    free: Vec<u32>,
}

impl Set {
    /// Rows of *width* words, each with so many more *beside* them.
    pub fn new(width: usize, beside: usize, room: usize) -> Set {
        let stride = width + beside;
        Set { width, stride, rows: Vec::with_capacity(room * stride), slots: Slots::with_room(room), free: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// One more than the largest number of a row.
    pub fn end(&self) -> usize {
        self.slots.len() + self.free.len()
    }

    #[inline]
    pub fn row(&self, number: u32) -> &[Word] {
        &self.rows[number as usize * self.stride..][..self.width]
    }

    /// What is beside a row.
    #[inline]
    pub fn beside(&self, number: u32) -> &[Word] {
        &self.rows[number as usize * self.stride..][self.width..self.stride]
    }

    #[inline]
    pub fn beside_mut(&mut self, number: u32) -> &mut [Word] {
        &mut self.rows[number as usize * self.stride..][self.width..self.stride]
    }

    #[inline]
    pub fn find(&self, hashed: u64, row: &[Word]) -> Option<u32> {
        self.slots.find(hashed, |number| same(self.row(number), row))
    }

    /// Have slots for no more rows than there are.
    pub fn fit(&mut self) {
        self.slots.fit();
    }

    /// The number of a row that is not there, with zeros beside it.
    #[inline]
    pub fn insert(&mut self, hashed: u64, row: &[Word]) -> u32 {
        let number = match self.free.pop() {
            Some(number) => {
                let place = &mut self.rows[number as usize * self.stride..][..self.stride];
                place[..self.width].copy_from_slice(row);
                place[self.width..].fill(0);
                number
            }
            None => {
                self.rows.extend_from_slice(row);
                self.rows.resize(self.rows.len() + self.stride - self.width, 0);
                self.slots.len() as u32
            }
        };
        self.slots.insert(hashed, number);
        number
    }

    pub fn remove(&mut self, number: u32) {
        let hashed = hash(self.row(number));
        self.slots.remove(hashed, number);
        self.free.push(number);
    }

    /// The numbers of many rows, each of which begins where it is said to; NONE for what is not there.
    pub fn find_all<'a>(&self, count: usize, row: impl Fn(usize) -> &'a [Word], mut found: impl FnMut(&Set, u32)) {
        let mut ahead = Ahead::new(self, count, &row);
        while let Some((block, hashes)) = ahead.next(self, &row) {
            for (at, &hashed) in block.zip(&hashes) {
                found(self, self.find(hashed, row(at)).unwrap_or(NONE));
            }
        }
    }

    /// The hashes of some rows, each of which begins where it is said to; what is soon read of them is asked for.
    #[inline]
    pub fn ahead<'a>(&self, rows: std::ops::Range<usize>, row: impl Fn(usize) -> &'a [Word], hashes: &mut [u64; BLOCK]) {
        let count = rows.len();
        self.slots_ahead(rows, row, hashes);
        self.rows_ahead(&hashes[..count]);
    }

    /// The hashes of some rows, whose slots are soon read.
    #[inline]
    fn slots_ahead<'a>(&self, rows: std::ops::Range<usize>, row: impl Fn(usize) -> &'a [Word], hashes: &mut [u64; BLOCK]) {
        for (at, hashed) in rows.zip(hashes.iter_mut()) {
            *hashed = hash(row(at));
            prefetch(&self.slots.slots, self.slots.place(*hashed));
        }
    }

    /// What these slots name is soon read.
    #[inline]
    fn rows_ahead(&self, hashes: &[u64]) {
        if !self.slots.slots.is_empty() {
            for &hashed in hashes {
                let number = self.slots.slots[self.slots.place(hashed)];
                let start = (number as u32).wrapping_sub(1) as usize * self.stride;
                prefetch(&self.rows, start);
                if self.stride > 2 {
                    prefetch(&self.rows, (start + self.stride).wrapping_sub(1)); // maybe another line of the cache
                }
            }
        }
    }

    /// Whether most of the space is empty.
    pub fn is_sparse(&self) -> bool {
        self.end() > 1024 && self.end() > 4 * self.len()
    }

    /// The numbers of the rows that are there.
    pub fn numbers(&self) -> Vec<u32> {
        if self.free.is_empty() {
            return (0..self.end() as u32).collect();
        }
        let mut gone = vec![false; self.end()];
        for &number in &self.free {
            gone[number as usize] = true;
        }
        (0..self.end() as u32).filter(|&number| !gone[number as usize]).collect()
    }

    /// The same in as little room as it takes; the rows get other numbers.
    pub fn compacted(&self) -> Set {
        let mut set = Set::new(self.width, self.stride - self.width, self.len());
        for number in self.numbers() {
            let fresh = set.insert(hash(self.row(number)), self.row(number));
            set.beside_mut(fresh).copy_from_slice(self.beside(number));
        }
        set
    }
}

/// Many rows, a block after the other, what is read of which is asked for before: the rows that slots name when their
/// block comes, and the slots of the next block then, so that the memory is read while the block is worked on.
pub struct Ahead {
    count: usize,
    start: usize, // of the next block
    hashes: [u64; BLOCK],
}

impl Ahead {
    pub fn new<'a>(set: &Set, count: usize, row: impl Fn(usize) -> &'a [Word]) -> Ahead {
        let mut ahead = Ahead { count, start: 0, hashes: [0; BLOCK] };
        ahead.read(set, row);
        ahead
    }

    fn block(&self) -> std::ops::Range<usize> {
        self.start..self.count.min(self.start + BLOCK)
    }

    fn read<'a>(&mut self, set: &Set, row: impl Fn(usize) -> &'a [Word]) {
        set.slots_ahead(self.block(), row, &mut self.hashes);
    }

    /// The next rows, and their hashes; the set may have changed since.
    #[inline]
    pub fn next<'a>(
        &mut self,
        set: &Set,
        row: impl Fn(usize) -> &'a [Word],
    ) -> Option<(std::ops::Range<usize>, [u64; BLOCK])> {
        let (block, hashes) = (self.block(), self.hashes);
        if block.is_empty() {
            return None;
        }
        set.rows_ahead(&hashes[..block.len()]);
        self.start = block.end;
        self.read(set, row);
        Some((block, hashes))
    }
}
