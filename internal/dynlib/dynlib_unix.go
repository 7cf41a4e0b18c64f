//go:build !windows

package dynlib

import "github.com/ebitengine/purego"

// open loads a shared library, and returns its handle.
func open(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_LAZY|purego.RTLD_LOCAL)
}

func closeHandle(handle uintptr) { _ = purego.Dlclose(handle) }

// symbol returns the address of a function or variable of a library.
func symbol(handle uintptr, name string) (uintptr, error) { return purego.Dlsym(handle, name) }
