# Assembly without debugging information: a fuzzer's seed holds only what a loader reads.
/^\t\.(section|text|data|bss)/ { skipping = /\.debug/ }
/^\t\.(loc|file|cfi_sections)/ { next }
# The compiler writes a zero-extending move in a way that the assembler does not read.
/^\tr[0-9]+ = w[0-9]+$/ { sub(/\tr/, "\tw") }
!skipping
