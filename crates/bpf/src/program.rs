//! The part of an image that does not depend on the host: the linked object, its memory layout, its decoded functions.

use crate::decode::{self, Op};
use crate::error::Fault;
use crate::layout::Layout;
use crate::linked::{Fixup, Linked};

/// A function, decoded.
#[derive(Debug)]
pub(crate) struct DecodedFunction {
    pub(crate) name: String,
    pub(crate) ops: Vec<Op>,
}

/// A linked and decoded object.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) linked: Linked,
    pub(crate) layout: Layout,
    /// By index of [`Linked::functions`].
    pub(crate) functions: Vec<DecodedFunction>,
    /// Ticks per second, for `bpf_jiffies64`.
    pub(crate) hz: u64,
}

impl Program {
    /// Checks and decodes every instruction.
    ///
    /// # Errors
    /// Malformed instructions; maps that do not fit into the region.
    pub(crate) fn new(linked: Linked, hz: u64) -> Result<Program, Fault> {
        let layout = Layout::new(&linked)?;
        let decoded = linked.functions.iter().map(|function| {
            let ops = decode::decode(&linked, function, &layout)?;
            Ok(DecodedFunction { name: function.name.clone(), ops })
        });
        let functions = decoded.collect::<Result<_, Fault>>()?;
        Ok(Program { linked, layout, functions, hz })
    }

    /// Why an instruction cannot be executed: the text of its [`Fixup::Poison`].
    pub(crate) fn poison(&self, function: usize, insn: usize) -> String {
        match self.linked.functions[function].fixups.get(&insn) {
            Some(Fixup::Poison(text)) => text.clone(),
            _ => "no reason was given".to_owned(),
        }
    }
}
