//! Kfuncs on objects that a program owns: allocation, red-black trees, lists (`kernel/bpf/helpers.c`), and resilient
//! spin locks (`kernel/bpf/rqspinlock.c`).
//!
//! A tree is a sorted sequence of nodes. An insertion calls `less` along a binary search: a new node comes after
//! equal ones, as in the kernel, and the number of comparisons is logarithmic. The compared nodes may differ from the
//! kernel's.

use super::handles::function;
use super::kfuncs::kfuncs;
use crate::call::{Call, HelperFn};
use crate::env::Host;
use crate::errno::{EDEADLK, EINVAL};
use crate::state::{MAX_HELD_LOCKS, MAX_OBJECTS, OBJECT_ALIGN, OwnedObject};
use crate::trap::Trap;

type Ret = Result<u64, Trap>;

kfuncs! {
    "bpf_obj_new_impl" | "bpf_obj_new" => obj_new,
    "bpf_obj_drop_impl" | "bpf_obj_drop" => |call, args| drop_object(call, args[0]),
    "bpf_refcount_acquire_impl" | "bpf_refcount_acquire" => acquire,
    "bpf_rbtree_add_impl" | "bpf_rbtree_add" => tree_add,
    "bpf_rbtree_remove" => tree_remove,
    "bpf_rbtree_first" | "bpf_list_front" => |call, args| {
        Ok(end(call, args[0], false).unwrap_or(0))
    },
    "bpf_list_back" => |call, args| Ok(end(call, args[0], true).unwrap_or(0)),
    "bpf_list_push_front_impl" | "bpf_list_push_front" => |call, args| list_push(call, args, false),
    "bpf_list_push_back_impl" | "bpf_list_push_back" => |call, args| list_push(call, args, true),
    "bpf_list_pop_front" => |call, args| list_pop(call, args[0], false),
    "bpf_list_pop_back" => |call, args| list_pop(call, args[0], true),
    "bpf_res_spin_lock" => |call, args| lock(call, args[0]),
    "bpf_res_spin_lock_irqsave" => |call, args| {
        call.memory().store_u64(args[1], 0)?;
        lock(call, args[0])
    },
    "bpf_res_spin_unlock" | "bpf_res_spin_unlock_irqrestore" => |call, args| {
        unlock(call, args[0])
    },
}

/// The guest address of a pointer: its low 32 bits.
fn address(pointer: u64) -> u64 {
    u64::from(pointer as u32)
}

/// `bpf_obj_new_impl(local_type_id, meta)`: a zeroed object; NULL if there are [`MAX_OBJECTS`] or no memory is left.
fn obj_new<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Ret {
    let state = call.state();
    let number = args[0] as u32;
    let Some(structure) = state.program.linked.objects.get(&number) else {
        return Err(Trap::helper(format!("bpf_obj_new(): the object has no structure {number}")));
    };
    if state.owned.objects.len() >= MAX_OBJECTS {
        return Ok(0);
    }
    let bytes = structure.size;
    let Ok(addr) = state.memory.alloc(u64::from(bytes), OBJECT_ALIGN) else { return Ok(0) };
    state.owned.objects.insert(addr, OwnedObject { number, bytes, references: 1 });
    Ok(addr)
}

/// `bpf_obj_drop_impl(object, meta)`: drops a reference; frees the object, with what it owns, with the last one.
fn drop_object<H: Host>(call: &mut Call<H>, pointer: u64) -> Ret {
    let addr = address(pointer);
    if !call.state().drop_object(addr) {
        return Err(Trap::helper(format!("bpf_obj_drop(): no object at {addr:#x}")));
    }
    call.drop_references();
    Ok(0)
}

/// `bpf_refcount_acquire_impl(object, meta)`.
fn acquire<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Ret {
    let addr = address(args[0]);
    match call.state().owned.objects.get_mut(&addr) {
        Some(object) => {
            object.references = object.references.saturating_add(1);
            Ok(args[0])
        }
        None => Err(Trap::helper(format!("bpf_refcount_acquire(): no object at {addr:#x}"))),
    }
}

/// Whether a node can be linked. If it is linked already, drops the reference that the program passed, as the kernel
/// does.
fn is_unlinked<H: Host>(call: &mut Call<H>, node: u64) -> Result<bool, Trap> {
    let owned = &call.state().owned;
    let Some(object) = owned.object_at(node) else {
        return Err(Trap::helper(format!(
            "the node at {node:#x} is in no object of bpf_obj_new()"
        )));
    };
    let free = owned.owner(node).is_none();
    if !free {
        drop_object(call, object)?;
    }
    Ok(free)
}

/// `bpf_rbtree_add_impl(root, node, less, meta, off)`: 0, or -EINVAL for a node that is linked already.
fn tree_add<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Ret {
    let (root, node) = (address(args[0]), address(args[1]));
    let less = function(args[2])?;
    if !is_unlinked(call, node)? {
        return Ok(EINVAL as u64);
    }
    let (mut low, mut high) = (0, call.state().owned.len(root));
    while low < high {
        let middle = low + (high - low) / 2;
        let Some(other) = call.state().owned.at(root, middle) else { break };
        if call.callback(less, [node, other, 0, 0, 0])? as u8 != 0 {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    call.state().owned.insert(root, low, node);
    Ok(0)
}

/// `bpf_rbtree_remove(root, node)`: the node, or NULL if it is not in that tree.
fn tree_remove<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Ret {
    let (root, node) = (address(args[0]), address(args[1]));
    Ok(if call.state().owned.remove(root, node) { args[1] } else { 0 })
}

/// The first or last node of a tree or list.
fn end<H: Host>(call: &mut Call<H>, root: u64, last: bool) -> Option<u64> {
    let (owned, root) = (&call.state().owned, address(root));
    owned.at(root, if last { owned.len(root).checked_sub(1)? } else { 0 })
}

/// `bpf_list_push_front_impl(head, node, meta, off)` and `bpf_list_push_back_impl`: 0, or -EINVAL for a node that is
/// linked already.
fn list_push<H: Host>(call: &mut Call<H>, args: [u64; 5], last: bool) -> Ret {
    let (head, node) = (address(args[0]), address(args[1]));
    if !is_unlinked(call, node)? {
        return Ok(EINVAL as u64);
    }
    let owned = &mut call.state().owned;
    let position = if last { owned.len(head) } else { 0 };
    owned.insert(head, position, node);
    Ok(0)
}

/// `bpf_list_pop_front(head)` and `bpf_list_pop_back`: the node, or NULL if the list is empty.
fn list_pop<H: Host>(call: &mut Call<H>, head: u64, last: bool) -> Ret {
    let Some(node) = end(call, head, last) else { return Ok(0) };
    call.state().owned.remove(address(head), node);
    Ok(node)
}

/// `bpf_res_spin_lock(lock)`: 0, or -EDEADLK if the lock is held: one CPU runs a program at a time, so the holder is
/// the caller.
fn lock<H: Host>(call: &mut Call<H>, lock: u64) -> Ret {
    let (owned, lock) = (&mut call.state().owned, address(lock));
    if owned.held.contains(&lock) {
        return Ok(EDEADLK as u64);
    }
    if owned.held.len() >= MAX_HELD_LOCKS {
        return Err(Trap::helper(format!(
            "more than {MAX_HELD_LOCKS} bpf_res_spin_locks are held"
        )));
    }
    owned.held.push(lock);
    Ok(0)
}

/// `bpf_res_spin_unlock(lock)`: traps unless `lock` was taken last.
fn unlock<H: Host>(call: &mut Call<H>, lock: u64) -> Ret {
    let (owned, lock) = (&mut call.state().owned, address(lock));
    if owned.held.pop() != Some(lock) {
        return Err(Trap::helper("bpf_res_spin_unlock of a lock that was not the last taken"));
    }
    Ok(0)
}
