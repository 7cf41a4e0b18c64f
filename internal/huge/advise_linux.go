package huge

import (
	"syscall"
	"unsafe"
)

// side is the size of a huge page on the processors that matter; where they are larger, the advice is of no use and no harm.
const side = 2 << 20

// advise asks for huge pages where whole ones lie within a slice. That the system does not have them is no error.
func advise[T float32 | float64](s []T) {
	var zero T
	bytes := uintptr(len(s)) * unsafe.Sizeof(zero)
	if bytes < side {
		return
	}
	first := uintptr(unsafe.Pointer(&s[0]))
	from := (first+side-1)&^(side-1) - first
	to := (first+bytes)&^(side-1) - first
	if first+from < first+to {
		_ = syscall.Madvise(unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), bytes)[from:to], syscall.MADV_HUGEPAGE)
	}
}
