// differential-dataflow on the workloads join, group, distinct and closure: `ddbench WORKLOAD FILE`, whose lines are SIDE KEY VALUE WEIGHT, a step up to a line `#`.
use std::{cell::RefCell, rc::Rc, time::Instant, io::{BufRead, BufReader}};
use differential_dataflow::input::Input;
use differential_dataflow::operators::iterate::Iterate;
use timely::dataflow::operators::probe::Handle;

type Row = (i64, i64);
#[repr(C)] struct Ts { s: i64, n: i64 }
extern "C" { fn clock_gettime(c: i32, t: *mut Ts) -> i32; }
fn cpu() -> f64 { let mut t = Ts { s: 0, n: 0 }; unsafe { clock_gettime(2, &mut t); } t.s as f64 + t.n as f64 * 1e-9 }
fn rss() -> u64 {
    std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}
fn load(path: &str) -> Vec<[Vec<(Row, isize)>; 2]> {
    let mut out: Vec<[Vec<(Row, isize)>; 2]> = vec![Default::default()];
    for line in BufReader::new(std::fs::File::open(path).unwrap()).lines() {
        let line = line.unwrap();
        if line.starts_with('#') { out.push(Default::default()); continue; }
        let x: Vec<i64> = line.split(' ').map(|s| s.parse().unwrap()).collect();
        out.last_mut().unwrap()[x[0] as usize].push(((x[1], x[2]), x[3] as isize));
    }
    out
}
fn main() {
    let work = std::env::args().nth(1).unwrap();
    let path = std::env::args().nth(2).unwrap();
    timely::execute_directly(move |worker| {
        let steps = load(&path);
        let base = rss();
        let out: Rc<RefCell<(u64, i64, u64)>> = Rc::new(RefCell::new((0, 0, 0)));
        let mut probe = Handle::new();
        let o = out.clone();
        let (mut a, mut b) = worker.dataflow::<u64, _, _>(|scope| {
            let (ia, a) = scope.new_collection::<Row, isize>();
            let (ib, b) = scope.new_collection::<Row, isize>();
            let mix = |x: i64, y: i64, z: i64| x.wrapping_mul(1000003).wrapping_add(y.wrapping_mul(7919)).wrapping_add(z.wrapping_mul(104729)) % 1000000007;
            match work.as_str() {
                "join" => {
                    a.join_map(b, |k, x, y| (*k, *x, *y)).inspect(move |((k, x, y), _t, d)| { let mut o = o.borrow_mut(); o.0 += 1; o.1 += mix(*k, *x, *y) * *d as i64; }).probe_with(&mut probe);
                }
                "group" => {
                    a.explode(|(k, v)| Some((k, (1isize, v as isize)))).count()
                     .inspect(move |((k, (n, s)), _t, d)| { let mut o = o.borrow_mut(); o.0 += 1; o.1 += mix(*k, *n as i64, *s as i64) * *d as i64; }).probe_with(&mut probe);
                }
                "distinct" => {
                    a.map(|(k, _)| k).distinct().inspect(move |(k, _t, d)| { let mut o = o.borrow_mut(); o.0 += 1; o.1 += mix(*k, 0, 0) * *d as i64; }).probe_with(&mut probe);
                }
                "closure" => {
                    let edges = a;
                    edges.clone().map(|(x, y)| (y, x)).iterate(|scope, inner| {
                        let by = edges.clone().enter(scope);
                        let start = edges.clone().map(|(x, y)| (y, x)).enter(scope);
                        inner.join_map(by, |_k, x, z| (*z, *x)).concat(start).distinct()
                    }).consolidate().inspect(move |((y, x), _t, d)| { let mut o = o.borrow_mut(); o.0 += 1; o.1 += mix(*x, *y, 0) * *d as i64; }).probe_with(&mut probe);
                }
                _ => panic!(),
            }
            (ia, ib)
        });
        let mut times: Vec<f64> = vec![]; let mut walls: Vec<f64> = vec![];
        let mut first = 0.0; let mut mem = 0;
        for (t, step) in steps.into_iter().enumerate() {
            let n = step[0].len() + step[1].len();
            if n == 0 { continue; }
            let start = Instant::now(); let c0 = cpu();
            for (row, w) in &step[0] { a.update(*row, *w); }
            for (row, w) in &step[1] { b.update(*row, *w); }
            let next = t as u64 + 1;
            a.advance_to(next); b.advance_to(next); a.flush(); b.flush();
            while probe.less_than(a.time()) { worker.step(); }
            let wall = start.elapsed().as_secs_f64(); let took = cpu() - c0; walls.push(wall * 1e3);
            if t == 0 { first = took; mem = rss() - base; } else { times.push(took * 1e3); }
        }
        walls.remove(0); walls.sort_by(|x, y| x.partial_cmp(y).unwrap()); times.sort_by(|x, y| x.partial_cmp(y).unwrap());
        let o = out.borrow();
        println!("{{\"load_s\": {:.4}, \"cpu_ms\": {:.5}, \"wall_ms\": {:.5}, \"p90_ms\": {:.5}, \"n\": {}, \"out\": {}, \"check\": {}, \"mem\": {}}}", first, times[times.len() / 2], walls[walls.len() / 2], times[times.len() * 9 / 10], times.len(), o.0, o.1, mem);
    });
}
