//! The kfuncs and helpers that a program calls, resolved to host functions, and their prices.

use std::collections::BTreeMap;

use crate::call::HostCall;
use crate::env::{Callable, Env, Host};
use crate::error::{Fault, LoadCause};
use crate::helpers;
use crate::linked::{Callee, Fixup, Function, Linked};

/// The resolved host functions of one image.
#[derive(Debug)]
pub(crate) struct HostCalls<H> {
    /// By index of [`Linked::kfuncs`].
    pub(crate) kfuncs: Vec<HostCall<H>>,
    /// By helper number.
    pub(crate) helpers: BTreeMap<u32, HostCall<H>>,
    /// The callees that have a price: an index into the list of prices.
    prices: Vec<(Callee, u8)>,
}

impl<H: Host> HostCalls<H> {
    /// Resolves every kfunc and helper that the functions call. A function of `env` replaces a built-in one.
    ///
    /// # Errors
    /// A kfunc or helper that neither this crate nor `env` has.
    pub(crate) fn resolve(linked: &Linked, env: &Env<H>) -> Result<HostCalls<H>, Fault> {
        let kfuncs = linked.kfuncs.iter().map(|name| kfunc(name, env)).collect::<Result<_, _>>()?;
        let mut helpers = BTreeMap::new();
        for function in &linked.functions {
            for (slot, fixup) in &function.fixups {
                let Fixup::Call(Callee::Helper(number)) = fixup else { continue };
                if !helpers.contains_key(number) {
                    helpers.insert(*number, helper(*number, env, function, *slot)?);
                }
            }
        }
        let priced = |(callable, price): &(Callable, u8)| {
            let callee = match callable {
                Callable::Helper(number) => Callee::Helper(*number),
                Callable::Kfunc(name) => {
                    Callee::Kfunc(linked.kfuncs.iter().position(|known| known == *name)?)
                }
            };
            Some((callee, *price))
        };
        let prices = env.prices.iter().filter_map(priced).collect();
        Ok(HostCalls { kfuncs, helpers, prices })
    }
}

impl<H> HostCalls<H> {
    /// The index of a callee's price, if it has one.
    pub(crate) fn price(&self, callee: Callee) -> Option<u8> {
        self.prices.iter().find(|(known, _)| *known == callee).map(|(_, price)| *price)
    }
}

fn kfunc<H: Host>(name: &str, env: &Env<H>) -> Result<HostCall<H>, Fault> {
    if let Some((_, function)) = env.kfuncs.iter().find(|(known, _)| *known == name) {
        return Ok(HostCall::Env(*function));
    }
    let builtin = helpers::builtin_kfunc(name).map(HostCall::Builtin);
    builtin.ok_or_else(|| LoadCause::UnknownKfunc { name: name.to_owned() }.into())
}

fn helper<H: Host>(
    number: u32,
    env: &Env<H>,
    function: &Function,
    slot: usize,
) -> Result<HostCall<H>, Fault> {
    if let Some((_, function)) = env.helpers.iter().find(|(known, _)| *known == number) {
        return Ok(HostCall::Env(*function));
    }
    helpers::builtin_helper(number).map(HostCall::Builtin).ok_or_else(|| {
        let name = helpers::name(number).unwrap_or("unknown name");
        let cause = LoadCause::Unsupported(format!("BPF helper {number} ({name})"));
        Fault::at_instruction(&function.name, &function.section, slot, cause)
    })
}
