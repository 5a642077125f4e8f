//! Ctrl-C in the middle of a run.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use fairground_session::{Failure, Watch};
use pyo3::prelude::*;

use crate::error;

/// Wall time between two looks.
const PERIOD: Duration = Duration::from_millis(100);

/// Asks Python now and then whether a signal came. Python handles signals in its main thread only; elsewhere nothing
/// ever comes.
pub(crate) struct Signals {
    looked: Cell<Instant>,
    raised: RefCell<Option<PyErr>>,
}

impl Signals {
    pub(crate) fn new() -> Self {
        Self { looked: Cell::new(Instant::now()), raised: RefCell::new(None) }
    }

    /// What a handler raised: `KeyboardInterrupt`, as a rule.
    fn into_raised(self) -> Option<PyErr> {
        self.raised.into_inner()
    }

    /// Asks Python, where that was not done for a while.
    fn look(&self) {
        if self.looked.get().elapsed() < PERIOD {
            return;
        }
        let looked = Python::attach(|py| py.check_signals());
        self.looked.set(Instant::now());
        if let Err(raised) = looked {
            self.raised.borrow_mut().get_or_insert(raised);
        }
    }
}

/// Does something long without the GIL, which is taken now and then to ask for Ctrl-C: what its handler raises comes
/// before any other result.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    long: impl FnOnce(&Signals) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let (done, raised) = py.detach(|| {
        let signals = Signals::new();
        let done = long(&signals);
        (done, signals.into_raised())
    });
    match raised {
        Some(raised) => Err(raised),
        None => done.map_err(error),
    }
}

impl Watch for Signals {
    fn name(&self, _: &str) {}

    fn advance(&self, _: u64) {
        self.look();
    }

    fn goes_on(&self) -> bool {
        self.look();
        self.raised.borrow().is_none()
    }
}
