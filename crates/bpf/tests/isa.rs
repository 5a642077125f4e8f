//! Each instruction on both engines, against values computed by hand from RFC 9669.

use crate::support::{add, code, exit, insn, mov, mov_reg, run};
use fairground_bpf::Insn;

/// r0 = left `op` right, with `op` as an instruction on r0 and r1.
fn binary(op: Insn, left: u64, right: u64) -> u64 {
    run(code().value(0, left).value(1, right).op(op).op(exit())).expect("no trap")
}

fn alu64(code: u8, off: i16, left: u64, right: u64) -> u64 {
    binary(insn(code | 0x0f, 0, 1, off, 0), left, right)
}

fn alu32(code: u8, off: i16, left: u64, right: u64) -> u64 {
    binary(insn(code | 0x0c, 0, 1, off, 0), left, right)
}

#[test]
fn arithmetic_wraps() {
    assert_eq!(alu64(0x00, 0, u64::MAX, 2), 1);
    assert_eq!(alu32(0x00, 0, 0xffff_ffff, 2), 1);
    assert_eq!(alu64(0x10, 0, 0, 1), u64::MAX);
    assert_eq!(alu32(0x10, 0, 0, 1), 0xffff_ffff);
    assert_eq!(alu64(0x20, 0, 1 << 63, 2), 0);
    assert_eq!(alu32(0x20, 0, 0x1_0000_0003, 5), 15);
}

#[test]
fn division_by_zero_gives_zero_and_its_remainder_the_dividend() {
    assert_eq!(alu64(0x30, 0, 7, 0), 0);
    assert_eq!(alu64(0x90, 0, 7, 0), 7);
    assert_eq!(alu32(0x30, 0, 7, 1 << 32), 0);
    assert_eq!(alu32(0x90, 0, 0xa_0000_0007, 0), 7);
    assert_eq!(alu64(0x30, 1, 7, 0), 0);
    assert_eq!(alu64(0x90, 1, 7, 0), 7);
    for imm in [0x37, 0x97] {
        let expected = if imm == 0x37 { 0 } else { 7 };
        let result = run(code().op(mov(0, 7)).op(insn(imm, 0, 0, 0, 0)).op(exit()));
        assert_eq!(result, Ok(expected));
    }
}

#[test]
fn signed_division_truncates_and_its_overflow_wraps() {
    let minus = |value: i64| (-value) as u64;
    assert_eq!(alu64(0x30, 1, minus(7), 2), minus(3));
    assert_eq!(alu64(0x90, 1, minus(7), 2), minus(1));
    assert_eq!(alu64(0x90, 1, 7, minus(2)), 1);
    assert_eq!(alu64(0x30, 1, i64::MIN as u64, u64::MAX), i64::MIN as u64);
    assert_eq!(alu64(0x90, 1, i64::MIN as u64, u64::MAX), 0);
    assert_eq!(alu32(0x30, 1, 0x8000_0000, 0xffff_ffff), 0x8000_0000);
    assert_eq!(alu32(0x90, 1, 0x8000_0000, 0xffff_ffff), 0);
    assert_eq!(alu64(0x30, 0, minus(7), 2), 0x7fff_ffff_ffff_fffc);
    let by_imm = run(code().op(mov(0, -7)).op(insn(0x37, 0, 0, 1, -1)).op(exit()));
    assert_eq!(by_imm, Ok(7));
}

#[test]
fn shifts_use_the_low_bits_of_their_count() {
    assert_eq!(alu64(0x60, 0, 1, 65), 2);
    assert_eq!(alu32(0x60, 0, 1, 33), 2);
    assert_eq!(alu64(0x70, 0, 1 << 63, 127), 1);
    assert_eq!(alu32(0x70, 0, 0xf_8000_0000, 31), 1);
    assert_eq!(alu64(0xc0, 0, 1 << 63, 63), u64::MAX);
    assert_eq!(alu32(0xc0, 0, 0x8000_0000, 31), 0xffff_ffff);
}

#[test]
fn narrow_results_are_zero_extended() {
    let all = u64::MAX;
    assert_eq!(alu32(0xb0, 0, 0, all), 0xffff_ffff);
    assert_eq!(alu32(0x40, 0, 0, all), 0xffff_ffff);
    assert_eq!(alu32(0xa0, 0, all, 1), 0xffff_fffe);
    assert_eq!(binary(insn(0x84, 0, 0, 0, 0), 1, 0), 0xffff_ffff);
    assert_eq!(binary(insn(0x87, 0, 0, 0, 0), 1, 0), u64::MAX);
    // A 32-bit move of an immediate: its bits, not its sign.
    assert_eq!(binary(insn(0xb4, 0, 0, 0, -1), 5, 0), 0xffff_ffff);
}

#[test]
fn moves_sign_extend() {
    assert_eq!(alu64(0xb0, 8, 0, 0x80), 0xffff_ffff_ffff_ff80);
    assert_eq!(alu64(0xb0, 16, 0, 0x8000), 0xffff_ffff_ffff_8000);
    assert_eq!(alu64(0xb0, 32, 0, 0x8000_0000), 0xffff_ffff_8000_0000);
    assert_eq!(alu32(0xb0, 8, 0, 0x80), 0xffff_ff80);
    assert_eq!(alu32(0xb0, 16, 0, 0x7fff), 0x7fff);
}

#[test]
fn bytes_swap() {
    let value = 0x0102_0304_0506_0708;
    assert_eq!(binary(insn(0xd7, 0, 0, 0, 64), value, 0), 0x0807_0605_0403_0201);
    assert_eq!(binary(insn(0xd7, 0, 0, 0, 32), value, 0), 0x0807_0605);
    assert_eq!(binary(insn(0xdc, 0, 0, 0, 16), value, 0), 0x0807);
    assert_eq!(binary(insn(0xd4, 0, 0, 0, 16), value, 0), 0x0708);
    assert_eq!(binary(insn(0xd4, 0, 0, 0, 64), value, 0), value);
}

#[test]
fn every_comparison_in_both_widths() {
    // The left and right operands, then the opcodes whose jump is taken.
    let jumps = [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xa0, 0xb0, 0xc0, 0xd0];
    let cases: [(u64, u64, &[u8], &[u8]); 4] = [
        (5, 5, &[0x10, 0x30, 0x40, 0x70, 0xb0, 0xd0], &[0x10, 0x30, 0x40, 0x70, 0xb0, 0xd0]),
        (1, 2, &[0x50, 0xa0, 0xb0, 0xc0, 0xd0], &[0x50, 0xa0, 0xb0, 0xc0, 0xd0]),
        // -1 and 1.
        (u64::MAX, 1, &[0x20, 0x30, 0x40, 0x50, 0xc0, 0xd0], &[0x20, 0x30, 0x40, 0x50, 0xc0, 0xd0]),
        // Equal in the low half only.
        (
            1 << 32 | 1,
            1,
            &[0x20, 0x30, 0x40, 0x50, 0x60, 0x70],
            &[0x10, 0x30, 0x40, 0x70, 0xb0, 0xd0],
        ),
    ];
    for (left, right, wide, narrow) in cases {
        for jump in jumps {
            for (class, taken) in [(0x0d, wide), (0x0e, narrow)] {
                let program = code()
                    .value(1, left)
                    .value(2, right)
                    .op(mov(0, 1))
                    .op(insn(jump | class, 1, 2, 1, 0))
                    .op(mov(0, 0))
                    .op(exit());
                let expected = u64::from(taken.contains(&jump));
                assert_eq!(run(program), Ok(expected), "{jump:#x} {class:#x} {left:#x} {right:#x}");
            }
        }
    }
}

#[test]
fn memory_on_the_stack_in_every_width() {
    let program = code()
        .value(1, 0x8182_8384_8586_8788)
        .op(insn(0x7b, 10, 1, -8, 0))
        .op(insn(0x71, 0, 10, -8, 0))
        .op(insn(0x69, 2, 10, -8, 0))
        .op(insn(0x0f, 0, 2, 0, 0))
        .op(insn(0x61, 2, 10, -4, 0))
        .op(insn(0x0f, 0, 2, 0, 0))
        .op(insn(0x91, 2, 10, -1, 0))
        .op(insn(0x0f, 0, 2, 0, 0))
        .op(exit());
    let expected = 0x88 + 0x8788 + 0x8182_8384 - 0x7f;
    assert_eq!(run(program), Ok(expected));
    let immediate = code()
        .op(insn(0x7a, 10, 0, -8, -2))
        .op(insn(0x62, 10, 0, -8, 7))
        .op(insn(0x79, 0, 10, -8, 0))
        .op(exit());
    assert_eq!(run(immediate), Ok(0xffff_ffff_0000_0007));
}

#[test]
fn atomics() {
    // The cell holds 10, r1 = 3, r0 = 10: cell * 100 + (what the instruction left in r1 and r0).
    let atomic = |imm: i32, class: u8| {
        let program = code()
            .op(insn(0x7a, 10, 0, -8, 10))
            .op(mov(0, 10))
            .op(mov(1, 3))
            .op(insn(class, 10, 1, -8, imm))
            .op(insn(0x79, 2, 10, -8, 0))
            .op(insn(0x27, 2, 0, 0, 100))
            .op(insn(0x0f, 0, 1, 0, 0))
            .op(insn(0x0f, 0, 2, 0, 0))
            .op(exit());
        run(program).expect("no trap")
    };
    for class in [0xdb, 0xc3] {
        assert_eq!(atomic(0x00, class), 1313);
        assert_eq!(atomic(0x01, class), 1320);
        assert_eq!(atomic(0x40, class), 1113);
        assert_eq!(atomic(0x50, class), 213);
        assert_eq!(atomic(0xa1, class), 920);
        assert_eq!(atomic(0xe1, class), 320);
        assert_eq!(atomic(0xf1, class), 313);
    }
    let missed = code()
        .op(insn(0x7a, 10, 0, -8, 10))
        .op(mov(0, 11))
        .op(mov(1, 3))
        .op(insn(0xdb, 10, 1, -8, 0xf1))
        .op(insn(0x79, 2, 10, -8, 0))
        .op(insn(0x0f, 0, 2, 0, 0))
        .op(exit());
    assert_eq!(run(missed), Ok(20));
}

#[test]
fn long_jumps_and_loops() {
    // gotol over two instructions.
    let program = code().op(mov(0, 1)).op(insn(0x06, 0, 0, 0, 1)).op(mov(0, 2)).op(exit());
    assert_eq!(run(program), Ok(1));
    // Sum of 1…10.
    let program = code()
        .op(mov(0, 0))
        .op(mov(1, 10))
        .op(insn(0x0f, 0, 1, 0, 0))
        .op(add(1, -1))
        .op(insn(0x55, 1, 0, -3, 0))
        .op(exit());
    assert_eq!(run(program), Ok(55));
}

#[test]
fn r10_can_be_copied() {
    let program = code()
        .op(mov_reg(2, 10))
        .op(add(2, -16))
        .op(insn(0x7a, 2, 0, 8, 42))
        .op(insn(0x79, 0, 10, -8, 0))
        .op(exit());
    assert_eq!(run(program), Ok(42));
}
