package ort

import (
	"sync"

	"github.com/noether-ml/noether/internal/dynlib"
)

// trim returns to the system what the engine has freed. When a session is opened or ends, glibc keeps
// much of the memory that was freed in parts: of a ViT-B/16 up to 350 MiB, in some runs and not in
// others.
func trim() {
	if f := mallocTrim(); f != nil {
		f(0)
	}
}

// mallocTrim is nil if the C library lacks the function.
var mallocTrim = sync.OnceValue(func() (f func(pad uintptr) int32) {
	if libc, err := dynlib.Open("libc.so.6"); err == nil {
		_ = libc.Bind(&f, "malloc_trim")
	}
	return f
})
