//! The kfuncs and helpers that a program calls, resolved to host functions, and their prices.

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
    /// By helper number; sorted.
    pub(crate) helpers: Vec<(u32, HostCall<H>)>,
    /// By index of [`Linked::kfuncs`]: an index into the list of prices.
    kfunc_prices: Vec<Option<u8>>,
    /// By helper number: an index into the list of prices.
    helper_prices: Vec<(u32, u8)>,
}

impl<H: Host> HostCalls<H> {
    /// Resolves every kfunc and helper that the functions call. A function of `env` replaces a built-in one.
    ///
    /// # Errors
    /// A kfunc or helper that neither this crate nor `env` has.
    pub(crate) fn resolve(linked: &Linked, env: &Env<H>) -> Result<HostCalls<H>, Fault> {
        let kfuncs = linked.kfuncs.iter().map(|name| kfunc(name, env)).collect::<Result<_, _>>()?;
        let mut helpers: Vec<(u32, HostCall<H>)> = Vec::new();
        for function in &linked.functions {
            for (slot, fixup) in &function.fixups {
                let Fixup::Call(Callee::Helper(number)) = fixup else { continue };
                if let Err(at) = helpers.binary_search_by_key(number, |(number, _)| *number) {
                    helpers.insert(at, (*number, helper(*number, env, function, *slot)?));
                }
            }
        }
        let (kfunc_prices, helper_prices) = prices(linked, env);
        Ok(HostCalls { kfuncs, helpers, kfunc_prices, helper_prices })
    }
}

impl<H> HostCalls<H> {
    /// The index of a callee's price, if it has one.
    pub(crate) fn price(&self, callee: Callee) -> Option<u8> {
        match callee {
            Callee::Function(_) => None,
            Callee::Kfunc(index) => self.kfunc_prices.get(index).copied().flatten(),
            Callee::Helper(number) => {
                let priced = self.helper_prices.iter().find(|(known, _)| *known == number);
                priced.map(|(_, price)| *price)
            }
        }
    }

    /// The helper of that number, if the program calls it.
    pub(crate) fn helper(&self, number: u32) -> Option<HostCall<H>> {
        let at = self.helpers.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(self.helpers[at].1)
    }
}

fn kfunc<H: Host>(name: &str, env: &Env<H>) -> Result<HostCall<H>, Fault> {
    if let Some((_, function)) = env.kfuncs.iter().find(|(known, _)| *known == name) {
        return Ok(HostCall::Env(*function));
    }
    let builtin = helpers::builtin_kfunc(name).map(HostCall::Builtin);
    builtin.ok_or_else(|| LoadCause::UnknownKfunc { name: name.to_owned(), nearest: None }.into())
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

/// The price indices by kfunc of the object, and by helper.
fn prices<H>(linked: &Linked, env: &Env<H>) -> (Vec<Option<u8>>, Vec<(u32, u8)>) {
    let of_kfunc = |name: &String| {
        let is_it =
            |callable: &Callable| matches!(callable, Callable::Kfunc(known) if known == name);
        env.prices.iter().find(|(callable, _)| is_it(callable)).map(|(_, price)| *price)
    };
    let of_helper = |(callable, price): &(Callable, u8)| match callable {
        Callable::Helper(number) => Some((*number, *price)),
        Callable::Kfunc(_) => None,
    };
    let helper_prices = env.prices.iter().filter_map(of_helper).collect();
    (linked.kfuncs.iter().map(of_kfunc).collect(), helper_prices)
}
