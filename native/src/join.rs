//! What two sides of a join give because of what arrives at either.

use crate::arrangement::{halves, word, Arranged, Arriving};
use crate::hash_table::{Set, Word, BLOCK, NONE};
use crate::words::{too_large, Data, LARGE};
use pyo3::prelude::*;

struct Product<'a> {
    left: &'a Arranged,
    right: &'a Arranged,
    out: Data,
    is_large: bool,
}

impl Product<'_> {
    #[inline]
    fn emit(&mut self, key: &[Word], left: &[Word], right: &[Word], weight: i64) {
        if weight != 0 {
            self.is_large |= weight.unsigned_abs() >= LARGE as u64;
            self.out.push([key, left, right], weight);
        }
    }

    /// A row of the left side with all that the right side has of its key, whose number is given.
    #[inline]
    fn forth(&mut self, row: &[Word], weight: i64, number: u32) {
        let (key, value) = row.split_at(self.left.keys.width);
        self.forth_of(key, value, weight, self.right.first(number));
    }

    #[inline]
    fn forth_of(&mut self, key: &[Word], value: &[Word], weight: i64, mut entry: u32) {
        let right = self.right;
        while entry != NONE {
            let (other, its_weight, next) = right.read(entry);
            self.emit(key, value, other, weight * its_weight);
            entry = next;
        }
    }

    #[inline]
    fn back(&mut self, row: &[Word], weight: i64, number: u32) {
        let (key, value) = row.split_at(self.right.keys.width);
        let left = self.left;
        let mut entry = left.first(number);
        while entry != NONE {
            let (other, its_weight, next) = left.read(entry);
            self.emit(key, other, value, weight * its_weight);
            entry = next;
        }
    }

    /// All of both sides: by the keys of that which has fewer.
    fn all(&mut self) {
        let (left, right) = (self.left, self.right);
        let is_left = left.keys.len() <= right.keys.len();
        let (one, other) = if is_left { (left, right) } else { (right, left) };
        let (mut mine, mut others, mut all) = (Vec::new(), Vec::new(), 0usize);
        let mut number = 0;
        other.keys.find_all(one.keys.len(), |at| one.keys.row(at as u32), |_, met| {
            if met != NONE {
                mine.push(number);
                others.push(met);
                all = all.saturating_add(one.count(number).saturating_mul(other.count(met)));
            }
            number += 1;
        });
        self.out = Data::new(self.out.width, all);
        for at in 0..mine.len() {
            one.ahead(&mine, at);
            other.ahead(&others, at);
            let (lefts, rights) = if is_left { (mine[at], others[at]) } else { (others[at], mine[at]) };
            let key = one.keys.row(mine[at]);
            let mut each = left.first(lefts);
            while each != NONE {
                let (value, weight, following) = left.read(each);
                self.forth_of(key, value, weight, right.first(rights));
                each = following;
            }
        }
    }

    /// Both sides change: a key that changes on both gives each pair of values once, whatever of it changes.
    fn both(&mut self, arriving_a: &Arriving, arriving_b: &Arriving) {
        let width = self.left.keys.width;
        let (a, b) = (&arriving_a.data, &arriving_b.data);
        let mut keys = Set::new(width, 1, b.len()); // beside a key: its last row of b, of a, and one each
        let mut before_b = vec![0u32; b.len()];
        let mut before_a: Vec<(u32, u32)> = Vec::new(); // rows of a of shared keys: the row, and the one before
        let mut hashes = [0; BLOCK];
        for (at, before) in before_b.iter_mut().enumerate() {
            let key = &b.row(at)[..width];
            if at % BLOCK == 0 {
                keys.ahead(at..b.len().min(at + BLOCK), |at| &b.row(at)[..width], &mut hashes);
            }
            let hashed = hashes[at % BLOCK];
            let number = keys.find(hashed, key).unwrap_or_else(|| keys.insert(hashed, key));
            let place = &mut keys.beside_mut(number)[0];
            *before = *place as u32;
            *place = at as Word + 1;
        }
        let mut shared = Vec::new();
        let (met, all) = keys_before(self.right, a);
        let (met_back, all_back) = keys_before(self.left, b);
        self.out = Data::new(self.out.width, all + all_back + 8);
        for at in 0..a.len() {
            self.right.ahead(&met, at);
            let key = &a.row(at)[..width];
            if at % BLOCK == 0 {
                keys.ahead(at..a.len().min(at + BLOCK), |at| &a.row(at)[..width], &mut hashes);
            }
            match keys.find(hashes[at % BLOCK], key) {
                None => self.forth(a.row(at), a.weights[at], met[at]),
                Some(number) => {
                    let (last_b, last_a) = halves(keys.beside(number)[0]);
                    if last_a == 0 {
                        shared.push(number);
                    }
                    before_a.push((at as u32, last_a));
                    keys.beside_mut(number)[0] = word(last_b, before_a.len() as u32);
                }
            }
        }
        let mut is_shared = vec![false; b.len()];
        let (mut lefts, mut rights) = (Vec::new(), Vec::new());
        for number in shared {
            let (mut last_b, mut last_a) = halves(keys.beside(number)[0]);
            lefts.clear();
            rights.clear();
            let (mut of_left, mut of_right) = (NONE, NONE);
            while last_a != 0 {
                let (at, before) = before_a[last_a as usize - 1];
                lefts.push(changed(self.left, arriving_a, at as usize));
                of_right = met[at as usize];
                last_a = before;
            }
            while last_b != 0 {
                let at = last_b as usize - 1;
                rights.push(changed(self.right, arriving_b, at));
                of_left = met_back[at];
                is_shared[at] = true;
                last_b = before_b[at];
            }
            self.of_both(keys.row(number), &lefts, &rights, (of_left, of_right));
        }
        for at in 0..b.len() {
            self.left.ahead(&met_back, at);
            if !is_shared[at] {
                self.back(b.row(at), b.weights[at], met_back[at]);
            }
        }
    }

    /// A key that changes on both sides, what changes of it, and its numbers.
    fn of_both(&mut self, key: &[Word], lefts: &[Change<'_>], rights: &[Change<'_>], numbers: (u32, u32)) {
        let (left, right) = (self.left, self.right);
        for one in lefts {
            for other in rights {
                let (new, old) = (one.new.saturating_mul(other.new), one.old.saturating_mul(other.old));
                self.emit(key, one.value, other.value, new.saturating_sub(old));
            }
        }
        let mut entry = right.first(numbers.1);
        let others = if entry == NONE { Vec::new() } else { entries(rights) };
        while entry != NONE {
            if others.binary_search(&entry).is_err() {
                for one in lefts {
                    let weight = (one.new - one.old).saturating_mul(right.weight(entry));
                    self.emit(key, one.value, right.value(entry), weight);
                }
            }
            entry = right.next(entry);
        }
        let mut entry = left.first(numbers.0);
        let mine = if entry == NONE { Vec::new() } else { entries(lefts) };
        while entry != NONE {
            if mine.binary_search(&entry).is_err() {
                for other in rights {
                    let weight = left.weight(entry).saturating_mul(other.new - other.old);
                    self.emit(key, left.value(entry), other.value, weight);
                }
            }
            entry = left.next(entry);
        }
    }
}

/// The keys of rows on a side, less what arrives there; and how many entries these keys have.
fn keys_before(side: &Arranged, data: &Data) -> (Vec<u32>, usize) {
    if side.is_first() { (vec![NONE; data.len()], 0) } else { side.keys_of(data) }
}

/// The entries of values that change, in order.
fn entries(changes: &[Change<'_>]) -> Vec<u32> {
    let mut entries: Vec<u32> = changes.iter().map(|change| change.entry).collect();
    entries.sort_unstable();
    entries
}

/// A value whose weight changes, and its entry if it has one.
struct Change<'a> {
    value: &'a [Word],
    entry: u32,
    old: i64,
    new: i64,
}

fn changed<'a>(side: &Arranged, arriving: &'a Arriving, at: usize) -> Change<'a> {
    let entry = arriving.entry(at);
    let old = if entry == NONE { 0 } else { side.weight(entry) };
    let value = &arriving.data.row(at)[side.keys.width..];
    Change { value, entry, old, new: old + arriving.data.weights[at] }
}

/// What two sides give together because of what arrives at either: rows of key, left value, right value.
pub fn join(left: &Arranged, right: &Arranged) -> PyResult<Data> {
    let width = left.keys.width + left.width + right.width;
    let out = Data::new(width, 0);
    let mut product = Product { left, right, out, is_large: false };
    match (&left.arriving, &right.arriving) {
        (Some(a), Some(b)) if a.data.len() > 0 && b.data.len() > 0 => {
            if left.is_first() && right.is_first() {
                product.all();
            } else {
                product.both(a, b);
            }
        }
        (a, b) => {
            for a in a.iter().map(|arriving| &arriving.data) {
                let (keys, all) = right.keys_of(a);
                product.out = Data::new(width, all);
                for (at, &number) in keys.iter().enumerate() {
                    right.ahead(&keys, at);
                    product.forth(a.row(at), a.weights[at], number);
                }
            }
            for b in b.iter().map(|arriving| &arriving.data) {
                let (keys, all) = left.keys_of(b);
                if product.out.len() == 0 {
                    product.out = Data::new(width, all);
                }
                for (at, &number) in keys.iter().enumerate() {
                    left.ahead(&keys, at);
                    product.back(b.row(at), b.weights[at], number);
                }
            }
        }
    }
    if product.is_large {
        return Err(too_large());
    }
    Ok(product.out)
}
