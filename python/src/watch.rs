//! Ctrl-C in the middle of a run.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use fairground_session::Watch;
use pyo3::prelude::*;

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
    pub(crate) fn into_raised(self) -> Option<PyErr> {
        self.raised.into_inner()
    }
}

impl Watch for Signals {
    fn name(&self, _: &str) {}

    fn advance(&self, _: u64) {
        if self.looked.get().elapsed() < PERIOD {
            return;
        }
        let looked = Python::attach(|py| py.check_signals());
        self.looked.set(Instant::now());
        if let Err(raised) = looked {
            self.raised.borrow_mut().get_or_insert(raised);
        }
    }

    fn goes_on(&self) -> bool {
        self.raised.borrow().is_none()
    }
}
