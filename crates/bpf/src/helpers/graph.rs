//! Kfuncs on objects that a program owns: allocation, red-black trees, lists (`kernel/bpf/helpers.c`), and the lock that can
//! fail (`kernel/bpf/rqspinlock.c`).
//!
//! A tree is an ordered row of nodes here. `less` is asked along a binary search, so the order among equal keys is the kernel's
//! (a new node comes after its equals), and the number of questions is logarithmic; which nodes are compared may differ.

use super::HelperFn;
use crate::env::Host;
use crate::exec::Call;
use crate::graph::{MAX_HELD_LOCKS, MAX_OBJECTS, Owned};
use crate::maps::EINVAL;
use crate::trap::Trap;

type Ret = Result<u64, Trap>;

const EDEADLK: i64 = -35;
/// What objects are aligned to.
const ALIGN: u64 = 8;

/// Names of the kfuncs in this file.
pub(super) const NAMES: [&str; 22] = [
    "bpf_obj_new_impl",
    "bpf_obj_drop_impl",
    "bpf_refcount_acquire_impl",
    "bpf_rbtree_add_impl",
    "bpf_rbtree_remove",
    "bpf_rbtree_first",
    "bpf_list_push_front_impl",
    "bpf_list_push_back_impl",
    "bpf_list_pop_front",
    "bpf_list_pop_back",
    "bpf_list_front",
    "bpf_list_back",
    "bpf_res_spin_lock",
    "bpf_res_spin_unlock",
    "bpf_res_spin_lock_irqsave",
    "bpf_res_spin_unlock_irqrestore",
    "bpf_obj_new",
    "bpf_obj_drop",
    "bpf_refcount_acquire",
    "bpf_rbtree_add",
    "bpf_list_push_front",
    "bpf_list_push_back",
];

/// The kfunc of that name.
pub(super) fn kfunc<H: Host>(name: &str) -> Option<HelperFn<H>> {
    Some(match name {
        "bpf_obj_new_impl" | "bpf_obj_new" => obj_new,
        "bpf_obj_drop_impl" | "bpf_obj_drop" => |call, args| drop_object(call, args[0]),
        "bpf_refcount_acquire_impl" | "bpf_refcount_acquire" => acquire,
        "bpf_rbtree_add_impl" | "bpf_rbtree_add" => tree_add,
        "bpf_rbtree_remove" => tree_remove,
        "bpf_rbtree_first" => |call, args| Ok(end(call, args[0], false).unwrap_or(0)),
        "bpf_list_push_front_impl" | "bpf_list_push_front" => {
            |call, args| list_push(call, args, false)
        }
        "bpf_list_push_back_impl" | "bpf_list_push_back" => {
            |call, args| list_push(call, args, true)
        }
        "bpf_list_pop_front" => |call, args| list_pop(call, args[0], false),
        "bpf_list_pop_back" => |call, args| list_pop(call, args[0], true),
        "bpf_list_front" => |call, args| Ok(end(call, args[0], false).unwrap_or(0)),
        "bpf_list_back" => |call, args| Ok(end(call, args[0], true).unwrap_or(0)),
        "bpf_res_spin_lock" => |call, args| lock(call, args[0]),
        "bpf_res_spin_unlock" => |call, args| unlock(call, args[0]),
        "bpf_res_spin_lock_irqsave" => |call, args| {
            call.memory().store_u64(args[1], 0)?;
            lock(call, args[0])
        },
        "bpf_res_spin_unlock_irqrestore" => |call, args| unlock(call, args[0]),
        _ => return None,
    })
}

/// Guest addresses have 32 bits.
fn address(pointer: u64) -> u64 {
    u64::from(pointer as u32)
}

/// `bpf_obj_new_impl(local_type_id, meta)`: a zeroed object; NULL when there are too many, or no memory.
fn obj_new<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Ret {
    let core = call.core();
    let number = args[0] as u32;
    let Some(bytes) = core.image.linked.objects.get(&number).copied() else {
        return Err(Trap::helper(format!("bpf_obj_new(): the object has no structure {number}")));
    };
    if core.graph.objects.len() >= MAX_OBJECTS {
        return Ok(0);
    }
    let Ok(addr) = core.memory.alloc(u64::from(bytes), ALIGN) else { return Ok(0) };
    core.graph.objects.insert(addr, Owned { bytes, references: 1 });
    Ok(addr)
}

/// `bpf_obj_drop_impl(object, meta)`: gives a reference back; the last one frees the object.
fn drop_object<H: Host>(call: &mut Call<H>, object: u64) -> Ret {
    let core = call.core();
    let addr = address(object);
    let Some(owned) = core.graph.objects.get_mut(&addr) else {
        return Err(Trap::helper(format!("bpf_obj_drop(): no object lies at {addr:#x}")));
    };
    owned.references -= 1;
    if owned.references == 0 {
        let bytes = owned.bytes;
        core.graph.objects.remove(&addr);
        core.memory.free(addr, u64::from(bytes), ALIGN);
    }
    Ok(0)
}

/// `bpf_refcount_acquire_impl(object, meta)`.
fn acquire<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Ret {
    let addr = address(args[0]);
    match call.core().graph.objects.get_mut(&addr) {
        Some(owned) => {
            owned.references = owned.references.saturating_add(1);
            Ok(args[0])
        }
        None => Err(Trap::helper(format!("bpf_refcount_acquire(): no object lies at {addr:#x}"))),
    }
}

/// A node that is to be hung up; false: it hangs somewhere already, and the reference that was handed over is given back.
fn is_free<H: Host>(call: &mut Call<H>, node: u64) -> Result<bool, Trap> {
    let graph = &call.core().graph;
    let Some(object) = graph.object_at(node) else {
        return Err(Trap::helper(format!(
            "the node at {node:#x} lies in no object of bpf_obj_new()"
        )));
    };
    let free = graph.owner(node).is_none();
    if !free {
        drop_object(call, object)?;
    }
    Ok(free)
}

/// `bpf_rbtree_add_impl(root, node, less, meta, off)`: 0, or -EINVAL for a node that hangs somewhere already.
fn tree_add<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Ret {
    let (root, node) = (address(args[0]), address(args[1]));
    let less = super::function(args[2])?;
    if !is_free(call, node)? {
        return Ok(EINVAL as u64);
    }
    let (mut low, mut high) = (0, call.core().graph.len(root));
    while low < high {
        let middle = low + (high - low) / 2;
        let Some(other) = call.core().graph.at(root, middle) else { break };
        if call.callback(less, [node, other, 0, 0, 0])? as u8 != 0 {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    call.core().graph.insert(root, low, node);
    Ok(0)
}

/// `bpf_rbtree_remove(root, node)`: the node, or NULL if it does not hang in that tree.
fn tree_remove<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Ret {
    let (root, node) = (address(args[0]), address(args[1]));
    Ok(if call.core().graph.remove(root, node) { args[1] } else { 0 })
}

/// The first or last node.
fn end<H: Host>(call: &mut Call<H>, root: u64, last: bool) -> Option<u64> {
    let (graph, root) = (&call.core().graph, address(root));
    graph.at(root, if last { graph.len(root).checked_sub(1)? } else { 0 })
}

/// `bpf_list_push_front_impl(head, node, meta, off)` and its twin: 0, or -EINVAL for a node that hangs somewhere already.
fn list_push<H: Host>(call: &mut Call<H>, args: [u64; 5], last: bool) -> Ret {
    let (head, node) = (address(args[0]), address(args[1]));
    if !is_free(call, node)? {
        return Ok(EINVAL as u64);
    }
    let graph = &mut call.core().graph;
    let position = if last { graph.len(head) } else { 0 };
    graph.insert(head, position, node);
    Ok(0)
}

/// `bpf_list_pop_front(head)` and its twin: the node, or NULL of an empty list.
fn list_pop<H: Host>(call: &mut Call<H>, head: u64, last: bool) -> Ret {
    let Some(node) = end(call, head, last) else { return Ok(0) };
    call.core().graph.remove(address(head), node);
    Ok(node)
}

/// `bpf_res_spin_lock(lock)`: 0; -EDEADLK for a lock that is held already (one CPU runs a program at a time, so nobody else can
/// hold it).
fn lock<H: Host>(call: &mut Call<H>, lock: u64) -> Ret {
    let (graph, lock) = (&mut call.core().graph, address(lock));
    if graph.held.contains(&lock) {
        return Ok(EDEADLK as u64);
    }
    if graph.held.len() >= MAX_HELD_LOCKS {
        return Err(Trap::helper(format!(
            "more than {MAX_HELD_LOCKS} bpf_res_spin_locks are held"
        )));
    }
    graph.held.push(lock);
    Ok(0)
}

/// `bpf_res_spin_unlock(lock)`: the lock that was taken last.
fn unlock<H: Host>(call: &mut Call<H>, lock: u64) -> Ret {
    let (graph, lock) = (&mut call.core().graph, address(lock));
    if graph.held.pop() != Some(lock) {
        return Err(Trap::helper("bpf_res_spin_unlock of a lock that was not the last taken"));
    }
    Ok(0)
}
