package machine

import "syscall"

// PreferHugePages asks the kernel to back a large buffer that was not written yet by huge pages (2
// MiB on x86-64, not 4 KiB). Filling the buffer then takes fewer page faults, which are half of the
// time to read a file into fresh memory.
func PreferHugePages(b []byte) {
	if len(b) > 0 {
		syscall.Madvise(b, syscall.MADV_HUGEPAGE) // a hint: not every kernel has huge pages
	}
}
