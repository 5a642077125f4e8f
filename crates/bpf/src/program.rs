//! The part of an image that does not depend on the host: the linked object, its memory layout, its decoded functions.

use std::sync::Arc;

use crate::decode::{self, Op};
use crate::error::Fault;
use crate::fold::{Frozen, fold, reachable};
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
    pub(crate) linked: Arc<Linked>,
    pub(crate) layout: Arc<Layout>,
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
        Ok(Program { linked: Arc::new(linked), layout: Arc::new(layout), functions, hz })
    }

    /// The program without what can never execute with these constants.
    pub(crate) fn folded(&self, frozen: &Frozen) -> Program {
        let mut ops: Vec<Vec<Op>> =
            self.functions.iter().map(|function| fold(&function.ops, frozen)).collect();
        // The kernel calls functions in sections of their own; those in `.text` are called by the program.
        let is_entry = |index: &usize| self.linked.functions[*index].section != ".text";
        let entries = (0..ops.len()).filter(is_entry).collect();
        let live = reachable(&ops, entries);
        for ops in ops.iter_mut().zip(live).filter_map(|(ops, live)| (!live).then_some(ops)) {
            ops.fill(Op::Nop);
            ops[0] = Op::Poison;
        }
        let functions = self.functions.iter().zip(ops);
        let named = functions.map(|(of, ops)| DecodedFunction { name: of.name.clone(), ops });
        Program {
            linked: Arc::clone(&self.linked),
            layout: Arc::clone(&self.layout),
            functions: named.collect(),
            hz: self.hz,
        }
    }

    /// Why an instruction cannot be executed: the text of its [`Fixup::Poison`].
    pub(crate) fn poison(&self, function: usize, insn: usize) -> String {
        match self.linked.functions[function].fixups.get(&insn) {
            Some(Fixup::Poison(text)) => text.clone(),
            _ => "no reason was given".to_owned(),
        }
    }
}
