//! A step of a whole circuit whose nodes all work on words, in one call.
//!
//! What it does is what the nodes do one by one, through the same functions: see `syndicate/flow/pipeline.py`.

use crate::arrangement::{Arranged, Summed, Weighed};
use crate::extremes::Ranked;
use crate::join::join;
use crate::words::{origins, Data, Origin, Table, Words};
use pyo3::exceptions::PyOverflowError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::sync::Arc;

/// What a node keeps, and what it does with a batch.
enum Store {
    Arranged(Py<Arranged>),
    Weighed(Py<Weighed>),
    Summed(Py<Summed>, Option<usize>),
    Ranked(Py<Ranked>),
}

/// What is done with the batches of a step, each of which has a place; *to*: the place of what comes of it.
enum Stage {
    Keep { from: usize, columns: Vec<usize>, once: bool, store: Store, to: usize },
    Join { left: Py<Arranged>, right: Py<Arranged>, to: usize },
    Gather { parts: Vec<(usize, Vec<Origin>)>, to: usize },
    Show { from: usize, columns: Option<Vec<usize>>, shape: Py<PyAny> },
}

/// The batches of a step.
type Batches = Vec<Option<Arc<Data>>>;

#[pyclass(module = "syndicate._native")]
pub struct Pipeline {
    words: Py<Words>,
    places: usize,
    stages: Vec<Stage>,
}

impl Pipeline {
    pub fn new(words: Py<Words>, places: usize) -> Pipeline {
        Pipeline { words, places, stages: Vec::new() }
    }

    /// All of a step.  None where a node has to take rows; what has been done until then is to be taken back.
    fn pass(&self, py: Python<'_>, mut batches: Batches) -> PyResult<Option<Vec<Option<Table>>>> {
        let mut shown = Vec::new();
        for stage in &self.stages {
            let (to, data) = match stage {
                Stage::Show { from, columns, shape } => {
                    shown.push(self.shown(py, batches[*from].as_ref(), columns.as_deref(), shape));
                    continue;
                }
                Stage::Keep { from, columns, once, store, to } => {
                    let Some(batch) = &batches[*from] else { continue };
                    match self.kept(py, store, batch, columns, *once)? {
                        Some(Some(data)) => (*to, data),
                        Some(None) => continue,
                        None => return Ok(None),
                    }
                }
                Stage::Join { left, right, to } => {
                    let (left, right) = (left.bind(py).try_borrow()?, right.bind(py).try_borrow()?);
                    if left.arriving_rows().is_none() && right.arriving_rows().is_none() {
                        continue;
                    }
                    (*to, join(&left, &right)?)
                }
                Stage::Gather { parts, to } => {
                    let there: Vec<_> = parts
                        .iter()
                        .filter_map(|(from, columns)| Some((batches[*from].as_deref()?, &columns[..])))
                        .collect();
                    (*to, self.words.bind(py).get().gather(py, &there)?)
                }
            };
            batches[to] = (data.len() > 0).then(|| Arc::new(data));
        }
        for stage in &self.stages {
            if let Stage::Keep { store: Store::Arranged(store), .. } = stage {
                store.bind(py).try_borrow_mut()?.commit();
            }
        }
        Ok(Some(shown))
    }

    /// Let a node keep some columns of a batch; what comes of it, if anything, and None where it has to take rows.
    fn kept(
        &self,
        py: Python<'_>,
        store: &Store,
        batch: &Arc<Data>,
        columns: &[usize],
        once: bool,
    ) -> PyResult<Option<Option<Data>>> {
        let words = self.words.bind(py);
        let picked = || batch.picked(columns, once && columns.len() >= batch.width);
        Ok(match store {
            Store::Arranged(store) => {
                store.bind(py).try_borrow_mut()?.arrive(picked())?;
                Some(None)
            }
            Store::Weighed(store) => Some(Some(store.bind(py).try_borrow_mut()?.change(picked())?)),
            Store::Ranked(store) => Some(Some(store.bind(py).try_borrow_mut()?.change(words, picked())?)),
            Store::Summed(store, value) => {
                store.bind(py).try_borrow_mut()?.change(words, batch, columns, *value)?.map(Some)
            }
        })
    }

    /// What a sink gives.
    fn shown(
        &self,
        py: Python<'_>,
        data: Option<&Arc<Data>>,
        columns: Option<&[usize]>,
        shape: &Py<PyAny>,
    ) -> Option<Table> {
        let data = match columns {
            None => data?.clone(),
            Some(columns) => data?.picked(columns, false),
        };
        if data.len() == 0 {
            return None; // what cancels out is no change
        }
        let table = Table::sharing(data, shape.clone_ref(py), true);
        self.words.get().show(&table);
        Some(table)
    }
}

#[pymethods]
impl Pipeline {
    /// A batch is kept, of which these columns are what *store* takes; *once*: no row of them recurs.
    #[allow(clippy::too_many_arguments)]
    fn keep(
        &mut self,
        from: usize,
        columns: Vec<usize>,
        once: bool,
        store: Bound<'_, PyAny>,
        to: usize,
        value: Option<usize>,
    ) -> PyResult<()> {
        let store = if let Ok(arranged) = store.cast::<Arranged>() {
            Store::Arranged(arranged.clone().unbind())
        } else if let Ok(weighed) = store.cast::<Weighed>() {
            Store::Weighed(weighed.clone().unbind())
        } else if let Ok(ranked) = store.cast::<Ranked>() {
            Store::Ranked(ranked.clone().unbind())
        } else {
            Store::Summed(store.cast::<Summed>()?.clone().unbind(), value)
        };
        self.stages.push(Stage::Keep { from, columns, once, store, to });
        Ok(())
    }

    /// What arrives at two sides is joined.
    fn join(&mut self, left: Py<Arranged>, right: Py<Arranged>, to: usize) {
        self.stages.push(Stage::Join { left, right, to });
    }

    /// Batches one after the other, of each such columns.
    fn gather(&mut self, parts: Vec<(usize, Vec<Bound<'_, PyAny>>)>, to: usize) -> PyResult<()> {
        let read = |(from, columns)| Ok((from, origins(columns)?));
        self.stages.push(Stage::Gather { parts: parts.into_iter().map(read).collect::<PyResult<_>>()?, to });
        Ok(())
    }

    /// A batch is given out, of which these columns are taken, each row once; None: all, where no row recurs.
    fn show(&mut self, from: usize, columns: Option<Vec<usize>>, shape: Py<PyAny>) {
        self.stages.push(Stage::Show { from, columns, shape });
    }

    /// The versions of all that is kept.
    fn versions(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let stores = self.stages.iter().filter_map(|stage| match stage {
            Stage::Keep { store, .. } => Some(store),
            _ => None,
        });
        stores
            .map(|store| {
                Ok(match store {
                    Store::Arranged(store) => store.bind(py).try_borrow()?.version(),
                    Store::Weighed(store) => store.bind(py).try_borrow()?.version(),
                    Store::Summed(store, _) => store.bind(py).try_borrow()?.version(),
                    Store::Ranked(store) => store.bind(py).try_borrow()?.version(),
                })
            })
            .collect()
    }

    /// Let all that is kept be as at these versions.
    fn take_back(&self, py: Python<'_>, versions: Vec<u64>) -> PyResult<()> {
        let mut versions = versions.into_iter();
        for stage in &self.stages {
            let Stage::Keep { store, .. } = stage else { continue };
            let Some(version) = versions.next() else { break };
            match store {
                Store::Arranged(store) => {
                    let mut store = store.bind(py).try_borrow_mut()?;
                    store.discard();
                    store.take_back(version);
                }
                Store::Weighed(store) => store.bind(py).try_borrow_mut()?.take_back(version),
                Store::Summed(store, _) => store.bind(py).try_borrow_mut()?.take_back(version),
                Store::Ranked(store) => store.bind(py).try_borrow_mut()?.take_back(version),
            }
        }
        Ok(())
    }

    /// A step with such batches, each at its place; what is given out, in order.  None, and nothing is changed, where
    /// a batch is no table, or a node has to take rows.
    fn run(&self, py: Python<'_>, batches: Vec<(usize, Bound<'_, PyAny>)>) -> PyResult<Option<Vec<Option<Table>>>> {
        let mut places: Batches = vec![None; self.places];
        for (place, batch) in batches {
            let Ok(table) = batch.cast::<Table>() else { return Ok(None) };
            if table.get().data.len() > 0 {
                places[place] = Some(table.get().data.clone());
            }
        }
        let versions = self.versions(py)?;
        match self.pass(py, places) {
            Ok(Some(shown)) => return Ok(Some(shown)),
            Err(error) if !error.is_instance_of::<PyOverflowError>(py) => return Err(error),
            _ => (),
        }
        self.take_back(py, versions)?;
        Ok(None)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.words)?;
        for stage in &self.stages {
            match stage {
                Stage::Show { shape, .. } => visit.call(shape)?,
                Stage::Gather { parts, .. } => {
                    for origin in parts.iter().flat_map(|(_, columns)| columns) {
                        if let Origin::Constant(constant) = origin {
                            visit.call(constant)?;
                        }
                    }
                }
                _ => (),
            }
        }
        Ok(())
    }
}
