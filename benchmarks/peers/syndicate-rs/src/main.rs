// Dataspace workloads on the crate `syndicate`, one thread: `bench WORKLOAD` prints events a second of processor time.
use std::sync::{Arc, Mutex};
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::Duration;
#[repr(C)] struct Ts { s: i64, n: i64 }
extern "C" { fn clock_gettime(c: i32, t: *mut Ts) -> i32; }
fn cpu() -> f64 { let mut t = Ts { s: 0, n: 0 }; unsafe { clock_gettime(2, &mut t); } t.s as f64 + t.n as f64 * 1e-9 }
use syndicate::actor::*;
use syndicate::dataspace::Dataspace;
use syndicate::during::entity;
use syndicate::language;
use syndicate::schemas::dataspace::Observe;
use syndicate::schemas::dataspace_patterns as p;
use syndicate::value::{Map, NestedValue, Value};

fn rec(label: &str, fields: Vec<AnyValue>) -> AnyValue {
    let mut r = Value::simple_record(label, fields.len());
    r.fields_vec_mut().extend(fields);
    r.finish().wrap()
}
fn bind() -> p::Pattern { p::Pattern::Bind { pattern: Box::new(p::Pattern::Discard) } }
fn lit(i: i64) -> p::Pattern { p::Pattern::Lit { value: Box::new(p::AnyAtom::Int(i.into())) } }
fn pat(label: &str, ps: Vec<p::Pattern>) -> p::Pattern {
    p::Pattern::Group {
        type_: Box::new(p::GroupType::Rec { label: AnyValue::symbol(label) }),
        entries: Map::from_iter(ps.into_iter().enumerate().map(|(i, x)| (p::_Any::new(i as i64), x))),
    }
}
fn observe(t: &mut Activation, ds: &Arc<Cap>, pattern: p::Pattern, observer: Arc<Cap>) {
    ds.assert(t, language(), &Observe { pattern, observer });
}
type T = Arc<Mutex<(Option<f64>, f64)>>;
fn int(m: &AnyValue) -> i64 {
    let seq = m.value().to_sequence().unwrap();
    i64::try_from(seq[0].value().to_signedinteger().unwrap()).unwrap()
}

fn run<F: 'static + Send + FnOnce(&mut Activation, T, tokio::sync::mpsc::UnboundedSender<()>) -> ActorResult>(rt: &tokio::runtime::Runtime, f: F) -> f64 {
    let r: T = Arc::new(Mutex::new((None, 0.0)));
    let r2 = r.clone();
    rt.block_on(async move {
        let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
        let h = Actor::top(None, move |t| { let _ = t.prevent_inert_check(); f(t, r2, tx) });
        rx.recv().await;
        h.abort();
        tokio::time::sleep(Duration::from_millis(20)).await;
    });
    let x = r.lock().unwrap().1;
    x
}
fn begin(r: &T) { r.lock().unwrap().0 = Some(cpu()); }
fn end(r: &T) { let mut g = r.lock().unwrap(); g.1 = cpu() - g.0.unwrap(); }

fn a(rt: &tokio::runtime::Runtime, n: i64, k: i64, per_turn: bool) -> f64 {
    k as f64 / run(rt, move |t, r, tx| {
        let ds = Cap::new(&t.create(Dataspace::new(None)));
        let r1 = r.clone(); let ds1 = ds.clone();
        t.spawn(None, move |t| {
            let _ = t.prevent_inert_check();
            let c = Arc::new(AtomicU64::new(0));
            for i in (1..n).chain(std::iter::once(0)) {
                let (r1, tx, c) = (r1.clone(), tx.clone(), c.clone());
                let e = entity(()).on_message(move |_, _t, _m: AnyValue| {
                    if c.fetch_add(1, Relaxed) + 1 == k as u64 { end(&r1); let _ = tx.send(()); }
                    Ok(())
                }).create_cap(t);
                observe(t, &ds1, pat("speak", vec![lit(i), bind()]), e);
            }
            Ok(())
        });
        let ds2 = ds.clone();
        t.spawn(None, move |t| {
            let _ = t.prevent_inert_check();
            if per_turn {
                let ds3 = ds2.clone();
                let e = entity(()).on_message(move |_, t, m: AnyValue| {
                    let j = int(&m);
                    ds3.message(t, &(), &rec("speak", vec![AnyValue::new(0i64), AnyValue::new(j)]));
                    if j + 1 < k { ds3.message(t, &(), &rec("Tick", vec![AnyValue::new(j + 1)])); }
                    Ok(())
                }).create_cap(t);
                observe(t, &ds2, pat("Tick", vec![bind()]), e);
            }
            t.after(Duration::from_millis(300), move |t| {
                begin(&r);
                if per_turn { ds2.message(t, &(), &rec("Tick", vec![AnyValue::new(0i64)])); }
                else { for j in 0..k { ds2.message(t, &(), &rec("speak", vec![AnyValue::new(0i64), AnyValue::new(j)])); } }
                Ok(())
            });
            Ok(())
        });
        Ok(())
    })
}

fn b(rt: &tokio::runtime::Runtime, n: i64, k: i64, all: bool) -> f64 {
    let want = 2 * k * if all { n } else { 1 };
    want as f64 / run(rt, move |t, r, tx| {
        let ds = Cap::new(&t.create(Dataspace::new(None)));
        let r1 = r.clone(); let ds1 = ds.clone();
        t.spawn(None, move |t| {
            let _ = t.prevent_inert_check();
            let c = Arc::new(AtomicU64::new(0));
            for i in (1..n).chain(std::iter::once(0)) {
                let (r1, tx, c) = (r1.clone(), tx.clone(), c.clone());
                let hit = move || { if c.fetch_add(1, Relaxed) + 1 == want as u64 { end(&r1); let _ = tx.send(()); } };
                let e = entity(()).on_asserted(move |_, _t, _m: AnyValue| {
                    hit();
                    let hit = hit.clone();
                    Ok(Some(Box::new(move |_, _t| { hit(); Ok(()) })))
                }).create_cap(t);
                observe(t, &ds1, if all { pat("speak", vec![p::Pattern::Discard, bind()]) } else { pat("speak", vec![lit(i), bind()]) }, e);
            }
            Ok(())
        });
        t.spawn(None, move |t| {
            let _ = t.prevent_inert_check();
            t.after(Duration::from_millis(300), move |t| {
                begin(&r);
                let hs: Vec<Handle> = (0..k).map(|j| ds.assert(t, &(), &rec("speak", vec![AnyValue::new(0i64), AnyValue::new(j)])).unwrap()).collect();
                t.after(Duration::from_millis(0), move |t| { for h in hs { t.retract(h); } Ok(()) });
                Ok(())
            });
            Ok(())
        });
        Ok(())
    })
}

fn d(rt: &tokio::runtime::Runtime, k: i64) -> f64 {
    k as f64 / run(rt, move |t, r, tx| {
        let ds = Cap::new(&t.create(Dataspace::new(None)));
        let ds1 = ds.clone();
        t.spawn(None, move |t| {
            let _ = t.prevent_inert_check();
            let v = t.named_field("v", 0i64);
            let (ds2, v2) = (ds1.clone(), v.clone());
            let mut h = None;
            t.dataflow(move |t| { let x = *t.get(&v2); ds2.update(t, &mut h, &(), Some(&rec("box-state", vec![AnyValue::new(x)]))); Ok(()) })?;
            let e = entity(()).on_message(move |_, t, m: AnyValue| { t.set(&v, int(&m)); Ok(()) }).create_cap(t);
            observe(t, &ds1, pat("set-box", vec![bind()]), e);
            Ok(())
        });
        t.spawn(None, move |t| {
            let _ = t.prevent_inert_check();
            let ds2 = ds.clone();
            let e = entity(()).on_asserted(move |_, t, m: AnyValue| {
                let v = int(&m);
                if v == 0 { begin(&r); }
                if v == k { end(&r); let _ = tx.send(()); }
                else { ds2.message(t, &(), &rec("set-box", vec![AnyValue::new(v + 1)])); }
                Ok(None)
            }).create_cap(t);
            observe(t, &ds, pat("box-state", vec![bind()]), e);
            Ok(())
        });
        Ok(())
    })
}

fn e(rt: &tokio::runtime::Runtime, u: i64) -> f64 {
    (u * u) as f64 / run(rt, move |t, r, tx| {
        let ds = Cap::new(&t.create(Dataspace::new(None)));
        begin(&r);
        let c = Arc::new(AtomicU64::new(0));
        for i in 0..u {
            let (ds, r, tx, c) = (ds.clone(), r.clone(), tx.clone(), c.clone());
            t.spawn(None, move |t| {
                let _ = t.prevent_inert_check();
                ds.assert(t, &(), &rec("present", vec![AnyValue::new(format!("user{}", i))]));
                let e = entity(()).on_asserted(move |_, _t, _m: AnyValue| {
                    if c.fetch_add(1, Relaxed) + 1 == (u * u) as u64 { end(&r); let _ = tx.send(()); }
                    Ok(None)
                }).create_cap(t);
                observe(t, &ds, pat("present", vec![bind()]), e);
                Ok(())
            });
        }
        Ok(())
    })
}

fn main() {
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let work = std::env::args().nth(1).expect("one of: messages turns churn churn-all box presence");
    let rate = match work.as_str() {
        "messages" => a(&rt, 1000, 200000, false),
        "turns" => a(&rt, 1000, 50000, true),
        "churn" => b(&rt, 1000, 50000, false),
        "churn-all" => b(&rt, 1000, 200, true),
        "box" => d(&rt, 50000),
        "presence" => e(&rt, 100),
        _ => panic!("no such workload"),
    };
    println!("{{\"rate\": {:.0}}}", rate);
}
